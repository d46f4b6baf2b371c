//go:build promtool

package metrics

import (
	"context"
	"crypto/tls"
	"net"
	"net/http"
	"net/http/httptest"
	"os/exec"
	"testing"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/promhttp"

	"github.com/rondo-go/rondo"
	"github.com/rondo-go/rondo/httpd"
	"github.com/rondo-go/rondo/loopstats"
	"github.com/rondo-go/rondo/proxy"
	"github.com/rondo-go/rondo/redis"
	"github.com/rondo-go/rondo/rtls"
	"github.com/rondo-go/rondo/websocket"
	"github.com/rondo-go/rondo/wsframe"
)

// TestPromtool: promtool has nothing to say of what a program with all collectors shows.
func TestPromtool(t *testing.T) {
	engine := &rondo.Engine{NumLoops: 2, MaxBufferBytes: 1 << 30}
	defer engine.Close()
	stop, err := loopstats.Measure(engine)
	if err != nil {
		t.Fatal(err)
	}
	defer stop()
	target := listening(t)
	ln, err := target.Listen("tcp", "127.0.0.1:0", rondo.SocketOptions{}, func(*rondo.Conn) rondo.Handler {
		return rondo.HandlerFunc((*rondo.Conn).Write)
	})
	if err != nil {
		t.Fatal(err)
	}
	keys := &redis.Server{Engine: engine}
	client, err := keys.NewClient()
	if err != nil {
		t.Fatal(err)
	}
	if _, err := client.Do(context.Background(), "SET", "a", "b"); err != nil {
		t.Fatal(err)
	}
	front := &proxy.Server{Engine: engine}
	if err := front.Apply(proxy.Config{
		Listeners: []proxy.Listener{{Network: "tcp", Address: "127.0.0.1:0", Pool: "web"}},
		Pools:     []proxy.Pool{{Name: "web", Targets: []proxy.Target{{Network: "tcp", Address: ln.Addr().String()}}}},
	}); err != nil {
		t.Fatal(err)
	}
	exchange(t, front.Addrs()[0].String())
	sockets := &websocket.Server{Open: func(*websocket.Conn, *http.Request) websocket.Handler {
		return websocket.HandlerFunc((*websocket.Conn).WriteMessage)
	}}
	site := &httpd.Server{HTTP: &http.Server{Handler: sockets}}
	web, err := engine.Listen("tcp", "127.0.0.1:0", rondo.SocketOptions{}, site.Open)
	if err != nil {
		t.Fatal(err)
	}
	nc, err := net.Dial("tcp", web.Addr().String())
	if err != nil {
		t.Fatal(err)
	}
	stream, _, err := new(websocket.Dialer).OpenStream(context.Background(), nc, "ws://"+web.Addr().String())
	if err != nil {
		t.Fatal(err)
	}
	stream.Close(wsframe.CodeNormal, "")
	failing, err := engine.Listen("tcp", "127.0.0.1:0", rondo.SocketOptions{}, rondo.Filtered(site.Open, rtls.Server(&tls.Config{
		GetCertificate: func(*tls.ClientHelloInfo) (*tls.Certificate, error) { return nil, nil },
	})))
	if err != nil {
		t.Fatal(err)
	}
	if c, err := tls.Dial("tcp", failing.Addr().String(), &tls.Config{InsecureSkipVerify: true}); err == nil {
		c.Close()
		t.Error("a handshake without a certificate succeeded")
	}

	registry := prometheus.NewPedanticRegistry()
	registry.MustRegister(Engine(engine), Redis(client), Proxy(front), HTTP(site), WebSocket(sockets))
	shown := httptest.NewRecorder()
	promhttp.HandlerFor(registry, promhttp.HandlerOpts{}).ServeHTTP(shown, httptest.NewRequest("GET", "/metrics", nil))
	ctx, cancel := context.WithTimeout(context.Background(), time.Minute)
	defer cancel()
	check := exec.CommandContext(ctx, "promtool", "check", "metrics")
	check.Stdin = shown.Body
	if out, err := check.CombinedOutput(); err != nil || len(out) > 0 {
		t.Errorf("promtool check metrics: %v\n%s", err, out)
	}
}
