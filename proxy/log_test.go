package proxy_test

import (
	"net"
	"strings"
	"testing"
	"time"

	"github.com/rondo-go/rondo/filter"
	"github.com/rondo-go/rondo/proxy"
	"github.com/rondo-go/rondo/rondotest"
)

// If the proxy stops, it has ended the connections of clients without a target, whatever
// these wait for.
func TestLogOfStop(t *testing.T) {
	secure := proxy.Listener{TLS: certificate("a.test")}
	for name, l := range map[string]proxy.Listener{
		"a target":       {},
		"TLS":            secure,
		"a PROXY header": {AcceptProxy: &filter.AcceptProxy{}},
		"a ClientHello":  {Routes: []proxy.Route{{Names: []string{"a.test"}}}},
	} {
		for _, stop := range []func(*world){
			func(w *world) { w.proxy.Engine.Close() },
			func(w *world) { w.proxy.Engine.Shutdown(w.Timeout(time.Minute)) },
		} {
			w := newWorld(t, rondotest.Options{})
			w.Blackhole("192.0.2.1")
			l.Network, l.Address = "tcp", front
			w.applyAll(proxy.Config{Listeners: []proxy.Listener{l}, Pools: []proxy.Pool{{Targets: []proxy.Target{{Network: "tcp", Address: "192.0.2.1:80"}}}}})
			c := w.Dial("tcp", front)
			w.Run()
			w.Await(func() { stop(w) })
			w.refused(c)
			if by := w.logged("ended_by"); by != "proxy" {
				t.Errorf("a client that waits for %s: logged ended_by=%s error=%s, want proxy", name, by, w.logged("error"))
			}
			w.idle()
		}
	}
}

// A peer that may not send a PROXY header is refused, counted, and logged with the reason.
func TestLogOfPeerNotTrusted(t *testing.T) {
	w := newWorld(t, rondotest.Options{})
	w.serve(2)
	nobody := func(net.Addr) bool { return false }
	w.applyAll(proxy.Config{
		Listeners: []proxy.Listener{{Network: "tcp", Address: front, AcceptProxy: &filter.AcceptProxy{Trust: nobody}}},
		Pools:     []proxy.Pool{{Targets: to(2)}},
	})
	c := w.Dial("tcp", front)
	w.refused(c)
	if by, err := w.logged("ended_by"), w.logged("error"); by != "proxy" || !strings.Contains(err, "may not send a PROXY header") {
		t.Errorf("logged ended_by=%s error=%s", by, err)
	}
	if l := w.proxy.Stats().Listeners[0]; l.Accepted != 1 || l.Refused != 1 {
		t.Errorf("the counts are %+v", l)
	}
	w.idle()
}
