package proxy_test

import (
	"crypto/tls"
	"fmt"
	"io"
	"net"
	"strings"
	"testing"
	"time"

	"github.com/rondo-go/rondo"
	"github.com/rondo-go/rondo/filter"
	"github.com/rondo-go/rondo/internal/testcert"
	"github.com/rondo-go/rondo/proxy"
	"github.com/rondo-go/rondo/rondotest"
	"github.com/rondo-go/rondo/rtls"
)

var authority = testcert.New("proxy")

// certificate returns the configuration of a TLS server of this name.
func certificate(name string) *tls.Config {
	return &tls.Config{Certificates: []tls.Certificate{authority.Issue(testcert.ECDSA, name)}}
}

// wants returns the configuration of a TLS client of a server.
func wants(name string) *tls.Config {
	return &tls.Config{RootCAs: authority.Pool(), ServerName: name, CurvePreferences: []tls.CurveID{tls.X25519}}
}

// serveTLS makes a target that ends TLS, says its port and echoes.
func (w *world) serveTLS(port int, name string) {
	w.t.Helper()
	w.Listen(new(rondo.Engine), "tcp", fmt.Sprintf("127.0.0.1:%d", port), rondo.Filtered(func(c *rondo.Conn) rondo.Handler {
		fmt.Fprintf(c, "%d.", port)
		return rondo.HandlerFunc((*rondo.Conn).Write)
	}, rtls.Server(certificate(name))))
}

// single is a connection that sends one byte at a time.
type single struct {
	net.Conn
	w *world
}

func (s single) Write(p []byte) (int, error) {
	for i := range p {
		if _, err := s.Conn.Write(p[i : i+1]); err != nil {
			return i, err
		}
		if i < 120 {
			s.w.Run()
		}
	}
	return len(p), nil
}

// talkTLS connects a TLS client to the proxy, and returns what the server says to "hello".
func (w *world) talkTLS(config *tls.Config, byByte bool) (answer string, err error) {
	w.t.Helper()
	raw := w.Dial("tcp", front)
	defer raw.Close()
	raw.SetDeadline(w.Now().Add(time.Minute))
	conn := net.Conn(raw)
	if byByte {
		conn = single{raw, w}
	}
	w.Await(func() {
		c := tls.Client(conn, config)
		if _, err = io.WriteString(c, "hello"); err != nil {
			return
		}
		b := make([]byte, 7)
		_, err = io.ReadFull(c, b)
		answer = string(b)
	})
	return answer, err
}

// Routes by the name of the server: passed through, and ended here; without a name; a name
// that nobody has.
func TestRoutes(t *testing.T) {
	w := newWorld(t, rondotest.Options{})
	w.serveTLS(2, "a.test")
	w.serveTLS(3, "any.b.test")
	w.serve(4)
	w.serveTLS(5, "rest.test")
	listener := proxy.Listener{Network: "tcp", Address: front, Routes: []proxy.Route{
		{Names: []string{"a.test"}, Pool: "a"},
		{Names: []string{"*.b.test"}, Pool: "b"},
		{Names: []string{"plain.b.test", "Here.Test."}, Pool: "plain", TLS: &tls.Config{Certificates: append(certificate("plain.b.test").Certificates, certificate("here.test").Certificates...)}},
	}}
	pools := []proxy.Pool{{Name: "a", Targets: to(2)}, {Name: "b", Targets: to(3)}, {Name: "plain", Targets: to(4)}, {Name: "rest", Targets: to(5)}}
	w.applyAll(proxy.Config{Listeners: []proxy.Listener{listener}, Pools: pools})
	for _, byByte := range []bool{false, true} {
		for name, want := range map[string]string{"a.test": "2.hello", "any.b.test": "3.hello", "plain.b.test": "4.hello", "here.test": "4.hello"} {
			if byByte && name != "a.test" && name != "here.test" {
				continue
			}
			if got, err := w.talkTLS(wants(name), byByte); got != want || err != nil {
				t.Errorf("client of %s: %q, %v, want %q", name, got, err, want)
			}
			w.idle()
			if got := w.logged("name"); got != name {
				t.Errorf("logged name=%s, want %s", got, name)
			}
		}
	}
	const alert = "unrecognized name"
	if _, err := w.talkTLS(wants("rest.test"), false); err == nil || !strings.Contains(err.Error(), alert) {
		t.Errorf("a client of an unknown server: %v, want the alert unrecognized_name", err)
	}
	if _, err := w.talkTLS(&tls.Config{InsecureSkipVerify: true}, false); err == nil || !strings.Contains(err.Error(), alert) {
		t.Errorf("a client without a name: %v", err)
	}
	if n := w.proxy.Stats().Listeners[0].Refused; n != 2 {
		t.Errorf("%d clients were refused", n)
	}
	w.idle()
	listener.Pool = "rest"
	w.applyAll(proxy.Config{Listeners: []proxy.Listener{listener}, Pools: pools})
	for _, config := range []*tls.Config{wants("rest.test"), {InsecureSkipVerify: true}} {
		if got, err := w.talkTLS(config, false); got != "5.hello" || err != nil {
			t.Errorf("client of %q: %q, %v", config.ServerName, got, err)
		}
	}
	w.idle()
}

// Streams that begin with no ClientHello, with one that is too long, or with nothing.
func TestHelloAbuse(t *testing.T) {
	w := newWorld(t, rondotest.Options{})
	w.serve(2)
	w.applyAll(proxy.Config{
		Listeners: []proxy.Listener{{Network: "tcp", Address: front, Routes: []proxy.Route{{Names: []string{"a.test"}}}}},
		Pools:     []proxy.Pool{{Targets: to(2)}},
	})
	for what, in := range map[string]string{
		"HTTP":      "GET / HTTP/1.1\r\nHost: a.test\r\n\r\n",
		"too long":  "\x16\x03\x01\x40\x00\x01\xff\xff\xff",
		"in pieces": strings.Repeat("\x16\x03\x01\x00\x01\x01", 20_000),
		"nothing":   "",
		"a part":    "\x16\x03\x01\x02",
	} {
		began := w.Now()
		c := w.Dial("tcp", front)
		c.Write([]byte(in))
		w.refused(c)
		if d := w.Now().Sub(began); d > proxy.DefaultHelloTimeout+time.Second || d > time.Second && len(in) > 4 {
			t.Errorf("%s: refused after %v", what, d)
		}
		w.idle()
	}
	c := w.Dial("tcp", front)
	c.Send("\x16\x03\x01\x02")
	c.CloseWrite()
	c.ExpectEOF()
	c.Close()
	w.idle()
	if by := w.logged("ended_by"); by != "client" {
		t.Errorf("logged ended_by=%s", by)
	}
}

// TLS is ended for clients, begun towards targets, or both. A target whose certificate is
// wrong is passed over.
func TestEndAndBeginTLS(t *testing.T) {
	for _, faults := range []rondotest.Faults{{}, rondotest.Harmless(0.1)} {
		w := newWorld(t, rondotest.Options{Faults: faults})
		w.serve(2)
		w.serveTLS(3, "wrong.test")
		w.serveTLS(4, "127.0.0.1")
		listen := proxy.Listener{Network: "tcp", Address: front, TLS: certificate("front.test")}
		w.applyAll(proxy.Config{Listeners: []proxy.Listener{listen}, Pools: []proxy.Pool{{Targets: to(2)}}})
		if got, err := w.talkTLS(wants("front.test"), false); got != "2.hello" || err != nil {
			t.Errorf("ended: %q, %v", got, err)
		}
		w.idle()
		secure := proxy.Pool{Targets: to(3, 4), TLS: &tls.Config{RootCAs: authority.Pool()}, Check: proxy.Check{Kind: proxy.CheckTLS}}
		w.applyAll(proxy.Config{Listeners: []proxy.Listener{listen}, Pools: []proxy.Pool{secure}})
		for range 3 {
			if got, err := w.talkTLS(wants("front.test"), false); got != "4.hello" || err != nil {
				t.Errorf("ended and begun: %q, %v", got, err)
			}
		}
		secure.Check = proxy.Check{}
		secure.Targets = to(3, 2, 4) // 2 says no TLS
		secure.Tries = 3
		w.apply(secure)
		for range 3 {
			c := w.Dial("tcp", front)
			c.Send("early")
			c.Expect("4.early")
			c.Close()
		}
		w.idle()
		if p := w.pool(); p.Targets[2].Conns < 3 || p.Retries == 0 {
			t.Errorf("the counts are %+v", p)
		}
		secure.Targets = to(3)
		w.apply(secure)
		c := w.Dial("tcp", front)
		c.Send("hello")
		w.refused(c)
		if err := w.logged("error"); !strings.Contains(err, "certificate") {
			t.Errorf("logged error=%s", err)
		}
		if _, err := w.talkTLS(wants("front.test"), false); err == nil {
			t.Error("a client that speaks TLS is served by a listener without")
		}
		w.Await(func() { w.proxy.Close() })
		w.Advance(time.Minute)
	}
}

// PROXY headers come in, byte by byte, and go out.
func TestProxyHeaders(t *testing.T) {
	for _, version := range []int{1, 2} {
		w := newWorld(t, rondotest.Options{})
		var got []filter.ProxyHeader
		accept := filter.AcceptProxy{Header: func(_ *rondo.Conn, h filter.ProxyHeader) error {
			got = append(got, h)
			return nil
		}}
		w.Listen(new(rondo.Engine), "tcp", "127.0.0.1:2", rondo.Filtered(func(c *rondo.Conn) rondo.Handler {
			fmt.Fprintf(c, "%s>%s.", c.RemoteAddr(), c.LocalAddr())
			return rondo.HandlerFunc((*rondo.Conn).Write)
		}, accept.Filter))
		listen := proxy.Listener{Network: "tcp", Address: front, AcceptProxy: &filter.AcceptProxy{Timeout: time.Second}}
		w.applyAll(proxy.Config{Listeners: []proxy.Listener{listen, {Network: "unix", Address: "/run/p"}},
			Pools: []proxy.Pool{{Targets: to(2), SendProxy: version, Balance: proxy.SourceHash}}})
		c := w.Dial("tcp", front)
		for _, b := range "PROXY TCP4 192.0.2.7 192.0.2.8 70 80\r\nhello" {
			c.Send(string(b))
			w.Run()
		}
		c.Expect("192.0.2.7:70>192.0.2.8:80.hello")
		c.Close()
		w.idle()
		if client := w.logged("client"); client != "192.0.2.7:70" {
			t.Errorf("logged client=%s", client)
		}
		if last := got[len(got)-1]; last.Version != version || last.Source.String() != "192.0.2.7:70" {
			t.Errorf("version %d: the target got %+v", version, last)
		}
		// A client without an address.
		u := w.Dial("unix", "/run/p")
		u.Send("x")
		w.Run()
		if last := got[len(got)-1]; last.Version != version || last.Source != nil {
			t.Errorf("version %d: for a unix client the target got %+v", version, last)
		}
		u.Close()
		for _, bad := range []string{"GET / HTTP/1.1\r\n\r\n", "PROXY TCP4 1.2.3.4", ""} {
			c := w.Dial("tcp", front)
			c.Send(bad)
			w.Await(func() { io.Copy(io.Discard, c) })
			c.Close()
			w.Advance(10 * time.Second)
			w.idle()
		}
	}
}

// Behind a PROXY header may come TLS, and a header of version 2 names the server. Checks send
// a header without addresses.
func TestProxyHeaderAndTLS(t *testing.T) {
	w := newWorld(t, rondotest.Options{})
	var last filter.ProxyHeader
	checks := 0
	accept := filter.AcceptProxy{Header: func(_ *rondo.Conn, h filter.ProxyHeader) error {
		if h.Source == nil {
			checks++
		} else {
			last = h
		}
		return nil
	}}
	w.Listen(new(rondo.Engine), "tcp", "127.0.0.1:2", rondo.Filtered(func(c *rondo.Conn) rondo.Handler {
		fmt.Fprint(c, "2.")
		return rondo.HandlerFunc((*rondo.Conn).Write)
	}, accept.Filter, rtls.Server(certificate("127.0.0.1"))))
	w.applyAll(proxy.Config{
		Listeners: []proxy.Listener{{Network: "tcp", Address: front, AcceptProxy: &filter.AcceptProxy{},
			Routes: []proxy.Route{{Names: []string{"a.test"}, TLS: certificate("a.test")}}}},
		Pools: []proxy.Pool{{Targets: to(2), SendProxy: 2, TLS: &tls.Config{RootCAs: authority.Pool()}, Check: proxy.Check{Kind: proxy.CheckTLS}}},
	})
	w.Advance(3 * time.Second)
	c := w.Dial("tcp", front)
	c.Send("PROXY TCP6 2001:db8::1 2001:db8::2 70 80\r\n")
	w.Await(func() {
		s := tls.Client(c, wants("a.test"))
		b := make([]byte, 7)
		io.WriteString(s, "hello")
		if _, err := io.ReadFull(s, b); err != nil || string(b) != "2.hello" {
			t.Errorf("the client got %q, %v", b, err)
		}
	})
	if last.Source == nil || last.Source.String() != "[2001:db8::1]:70" || len(last.TLVs) != 1 || string(last.TLVs[0].Value) != "a.test" {
		t.Errorf("the target got %+v", last)
	}
	if checks == 0 || w.state() != "up" {
		t.Errorf("%d checks, the target is %s", checks, w.state())
	}
	c.Close()
	w.Await(func() { w.proxy.Close() })
	w.Advance(time.Minute)
	w.idle()
}

// Values of TLS and of routes without meaning.
func TestRouteMistakes(t *testing.T) {
	a := func(f func(*proxy.Listener, *proxy.Pool)) proxy.Config {
		l, p := proxy.Listener{Network: "tcp", Address: ":1"}, proxy.Pool{Name: "web", Targets: to(2)}
		f(&l, &p)
		return proxy.Config{Listeners: []proxy.Listener{l}, Pools: []proxy.Pool{p}}
	}
	routes := func(all ...proxy.Route) proxy.Config {
		return a(func(l *proxy.Listener, _ *proxy.Pool) { l.Routes = all })
	}
	for want, c := range map[string]proxy.Config{
		"a route has no names": routes(proxy.Route{}),
		`route "*.": want a name, as in a.example, or *.example`: routes(proxy.Route{Names: []string{"*."}}),
		`route "a.*.test": want a name`:                          routes(proxy.Route{Names: []string{"a.*.test"}}),
		`route "A.test": another one has this name`:              routes(proxy.Route{Names: []string{"a.test"}}, proxy.Route{Names: []string{"A.test"}}),
		`route "a.test": there is no pool "app"`:                 routes(proxy.Route{Names: []string{"a.test"}, Pool: "app"}),
		`route "a.test": TLS has no certificate`:                 routes(proxy.Route{Names: []string{"a.test"}, TLS: new(tls.Config)}),
		"Listener.TLS has no certificate":                        a(func(l *proxy.Listener, _ *proxy.Pool) { l.TLS = new(tls.Config) }),
		"Listener.HelloTimeout is -1ns":                          a(func(l *proxy.Listener, _ *proxy.Pool) { l.HelloTimeout = -1 }),
		"AcceptProxy.Timeout is -1ns":                            a(func(l *proxy.Listener, _ *proxy.Pool) { l.AcceptProxy = &filter.AcceptProxy{Timeout: -1} }),
		"Pool.SendProxy is 3":                                    a(func(_ *proxy.Listener, p *proxy.Pool) { p.SendProxy = 3 }),
		"its address has no name for the certificate": a(func(_ *proxy.Listener, p *proxy.Pool) {
			p.Targets[0] = proxy.Target{Network: "unix", Address: "/x"}
			p.TLS = new(tls.Config)
		}),
		"Listener.TLS is for clients that no Route has": a(func(l *proxy.Listener, _ *proxy.Pool) {
			l.TLS, l.Routes = certificate("a.test"), []proxy.Route{{Names: []string{"a.test"}}}
		}),
	} {
		if err := c.Check(); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("Check: %v, want %q", err, want)
		}
	}
}
