package websocket

import (
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"io"
	"log"
	"log/slog"
	"net"
	"net/http"
	"net/http/httptest"
	"runtime"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/rondo-go/rondo"
	"github.com/rondo-go/rondo/httpd"
	"github.com/rondo-go/rondo/internal/pick"
	"github.com/rondo-go/rondo/internal/testcert"
	"github.com/rondo-go/rondo/internal/testkit"
	"github.com/rondo-go/rondo/rondotest"
	"github.com/rondo-go/rondo/rtls"
	"github.com/rondo-go/rondo/wsframe"
)

// quiet is a log that nobody reads.
func quiet() *log.Logger { return log.New(io.Discard, "", 0) }

// certificates are for "localhost".
var certificates = sync.OnceValues(func() (server, client *tls.Config) {
	a := testcert.New("test")
	return &tls.Config{Certificates: []tls.Certificate{a.Issue(testcert.ECDSA, "localhost")}}, &tls.Config{RootCAs: a.Pool(), ServerName: "localhost"}
})

// dialTLS connects to a server on real sockets, with TLS if secure.
func dialTLS(t *testing.T, address string, secure bool) net.Conn {
	t.Helper()
	c := testkit.Dial(t, address)
	if !secure {
		return c
	}
	_, config := certificates()
	return tls.Client(c, config)
}

// serveHTTP serves h with package httpd, on a backend.
func serveHTTP(t *testing.T, backend string, h http.Handler, secure bool) (address string) {
	t.Helper()
	s := &httpd.Server{HTTP: &http.Server{Handler: h, ErrorLog: quiet()}}
	open := rondo.OpenFunc(s.Open)
	if secure {
		config, _ := certificates()
		open = rondo.Filtered(open, rtls.Server(config))
	}
	return testkit.Listen(t, &rondo.Engine{NumLoops: 2, Backend: backend, Logger: slog.New(slog.DiscardHandler)}, open)
}

// serveNetHTTP serves h with net/http's server.
func serveNetHTTP(t *testing.T, h http.Handler, secure bool) (address string) {
	t.Helper()
	s := httptest.NewUnstartedServer(h)
	s.Config.ErrorLog = quiet()
	if secure {
		config, _ := certificates()
		s.TLS = config.Clone()
		s.StartTLS()
	} else {
		s.Start()
	}
	t.Cleanup(s.Close)
	return s.Listener.Addr().String()
}

// An unwrapper is middleware's ResponseWriter.
type unwrapper struct{ http.ResponseWriter }

func (u unwrapper) Unwrap() http.ResponseWriter { return u.ResponseWriter }

// A hijacker is middleware's ResponseWriter that hijacks by itself.
type hijacker struct {
	http.ResponseWriter
	http.Hijacker
}

// wrap makes middleware.
func wrap(h http.Handler, with func(w http.ResponseWriter) http.ResponseWriter) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) { h.ServeHTTP(with(w), r) })
}

// TestUpgrade takes connections from all kinds of servers and handlers.
func TestUpgrade(t *testing.T) {
	var handlers sync.Map
	engine := &rondo.Engine{NumLoops: 1}
	defer engine.Close()
	s := &Server{Engine: engine, Subprotocols: []string{"chat"}}
	upgrade := http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		w.Header().Set("Set-Cookie", "a=b")
		rec := newRecorder()
		ref, err := s.Upgrade(w, r, echoAndTell{rec})
		if err != nil || ref == (Ref{}) { // the client may have left already
			t.Errorf("Upgrade: %v, %v", ref, err)
		}
		if n, err := w.Write([]byte("x")); n > 0 || err != http.ErrHijacked {
			t.Errorf("a Write afterwards: %d, %v", n, err)
		}
		handlers.Store(r.URL.Query().Get("id"), rec)
	})
	kinds := []struct {
		name  string
		serve func(t *testing.T, backend string, secure bool) string
		once  bool // not on each backend
	}{
		{"goroutine", func(t *testing.T, b string, secure bool) string { return serveHTTP(t, b, upgrade, secure) }, false},
		{"loop", func(t *testing.T, b string, secure bool) string {
			return serveHTTP(t, b, httpd.OnLoop(upgrade), secure)
		}, false},
		{"unwrapped", func(t *testing.T, b string, secure bool) string {
			return serveHTTP(t, b, wrap(upgrade, func(w http.ResponseWriter) http.ResponseWriter { return unwrapper{unwrapper{w}} }), secure)
		}, true},
		{"hijacked", func(t *testing.T, b string, secure bool) string {
			return serveHTTP(t, b, wrap(upgrade, func(w http.ResponseWriter) http.ResponseWriter { return hijacker{w, w.(http.Hijacker)} }), secure)
		}, false},
		{"nethttp", func(t *testing.T, _ string, secure bool) string { return serveNetHTTP(t, upgrade, secure) }, true},
	}
	for _, k := range kinds {
		for _, backend := range pick.Available() {
			for _, secure := range []bool{false, true} {
				t.Run(fmt.Sprintf("%s/%s/tls %t", k.name, backend, secure), func(t *testing.T) {
					address := k.serve(t, backend, secure)
					for _, size := range []int{1 << 20, 1, 100} {
						p := upgraded(t, dialTLS(t, address, secure), size, t.Name(), text("at once")+ping("p"))
						if p.header.Get("Set-Cookie") != "a=b" || p.header.Get("Sec-Websocket-Protocol") != "chat" {
							t.Errorf("the answer's header is %v", p.header)
						}
						p.expect("text at once", "pong p")
						p.send(text("later"))
						p.expect("text later")
						p.send(bin(strings.Repeat("x", 100000)))
						p.expect("binary " + strings.Repeat("x", 100000))
						p.bye()
						p.c.Close()
						var rec any
						testkit.Until(t, "the handler", func() (ok bool) { // which may be behind its connection's end
							rec, ok = handlers.LoadAndDelete(t.Name())
							return ok
						})
						select {
						case err := <-rec.(*recorder).closed:
							if !isClosed(err, 1000, "") {
								t.Errorf("Closed got %v", err)
							}
						case <-time.After(patience):
							t.Fatal("Closed was not called")
						}
					}
				})
			}
			if k.once {
				break
			}
		}
	}
}

// echoAndTell echoes, and tells a recorder the end.
type echoAndTell struct{ *recorder }

func (echoAndTell) Message(c *Conn, op Opcode, p []byte) error { return c.WriteMessage(op, p) }

// upgraded does the handshake in pieces of size bytes, with more bytes right behind it.
func upgraded(t *testing.T, c net.Conn, size int, id, behind string) *peer {
	t.Helper()
	p := &peer{t: t, c: c, reader: wsframe.Reader{FromServer: true}}
	head := strings.Replace(request("Sec-WebSocket-Protocol: chat"), "GET /chat", "GET /chat?id="+strings.ReplaceAll(id, " ", "%20"), 1)
	p.chop(head+behind, size)
	p.answered()
	return p
}

// answered reads the answer to the handshake.
func (p *peer) answered() {
	p.t.Helper()
	for !strings.Contains(string(p.in), "\r\n\r\n") {
		if !p.receive() {
			p.t.Fatalf("no answer: %q", p.in)
		}
	}
	head, rest, _ := strings.Cut(string(p.in), "\r\n\r\n")
	r, err := readResponse([]byte(head+"\r\n\r\n"), nil)
	if err != nil || r.StatusCode != 101 {
		p.t.Fatalf("%v, the answer is %q", err, p.in)
	}
	p.header, p.in = r.Header, []byte(rest)
}

// TestUpgradeSimulated: handshakes in pieces on the simulated network, on the loop.
func TestUpgradeSimulated(t *testing.T) {
	for seed := range uint64(50) {
		n := rondotest.New(t, rondotest.Options{Seed: seed + 1, Faults: rondotest.Harmless(0.1)})
		rec := newRecorder()
		h := httpd.OnLoop(&Server{Open: func(*Conn, *http.Request) Handler { return echoAndTell{rec} }})
		s := &httpd.Server{HTTP: &http.Server{Handler: h, IdleTimeout: time.Second, WriteTimeout: time.Second}}
		n.Serve(":80", s.Open)
		p := upgraded(t, n.Dial("tcp", "127.0.0.1:80"), int(seed)+1, "x", text("hello"))
		p.expect("text hello")
		n.Advance(time.Minute) // the server's time limits are no longer meant
		p.send(text("still here"))
		p.expect("text still here")
		p.bye()
		p.c.Close()
		n.Run()
		if err := <-rec.closed; !isClosed(err, 1000, "") {
			t.Errorf("seed %d: Closed got %v", seed+1, err)
		}
		n.Close()
	}
}

// TestUpgradeLate: what arrives while the HTTP handler thinks is not lost, not even the end.
func TestUpgradeLate(t *testing.T) {
	for _, backend := range pick.Available() {
		t.Run(backend, func(t *testing.T) {
			begun, goOn := make(chan bool), make(chan bool)
			rec := newRecorder()
			address := serveHTTP(t, backend, http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
				begun <- true
				<-goOn
				Upgrade(w, r, rec)
			}), false)
			p := &peer{t: t, c: testkit.Dial(t, address), reader: wsframe.Reader{FromServer: true}}
			p.send(request())
			<-begun
			p.send(text("one"))
			time.Sleep(20 * time.Millisecond)
			p.send(text("two"))
			p.c.(*net.TCPConn).CloseWrite()
			time.Sleep(20 * time.Millisecond)
			goOn <- true
			p.answered()
			p.c.Close()
			if err := <-rec.closed; err != io.ErrUnexpectedEOF {
				t.Errorf("Closed got %v", err)
			}
			rec.want(t, "text one", "text two")
		})
	}
}

// TestUpgradeRefused: the answer and the error for what is no correct request.
func TestUpgradeRefused(t *testing.T) {
	var got error
	var began bool
	s := &Server{
		Open:   echo,
		Accept: func(r *http.Request, _ http.Header) error { return errIf(r.URL.Path == "/no") },
	}
	h := http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if began = r.URL.Path == "/begun"; began {
			io.WriteString(w, "already")
		}
		_, got = s.Upgrade(w, r, nil)
	})
	n := rondotest.New(t, rondotest.Options{})
	n.Serve(":80", (&httpd.Server{HTTP: &http.Server{Handler: httpd.OnLoop(h), ErrorLog: quiet()}}).Open)
	for _, tt := range []struct{ name, in, status string }{
		{"no Upgrade", "GET /chat HTTP/1.1\r\nHost: x\r\n\r\n", "426"},
		{"another origin", request("Origin: http://example.org"), "403"},
		{"not accepted", strings.Replace(request(), "/chat", "/no", 1), "403"},
		{"a post", strings.Replace(request(), "GET", "POST", 1), "405"},
		{"a body", request("Content-Length: 5") + "hello", "400"},
		{"HTTP/1.0", strings.Replace(request(), "HTTP/1.1", "HTTP/1.0", 1), "505"},
		{"begun", strings.Replace(request(), "/chat", "/begun", 1), "200"},
	} {
		status, _ := answerTo(t, n, tt.in)
		if !strings.HasPrefix(strings.TrimPrefix(status, "HTTP/1.0 "), tt.status) || got == nil {
			t.Errorf("%s: %q and %v, want %s", tt.name, status, got, tt.status)
		}
		if e := new(RefusedError); !began && tt.name != "not accepted" && !errors.As(got, &e) {
			t.Errorf("%s: the error is %v", tt.name, got)
		}
	}
	// The connection goes on behind a refusal.
	status, all := answerTo(t, n, "GET /chat HTTP/1.1\r\nHost: x\r\n\r\n"+request())
	if !strings.HasPrefix(status, "426") || !strings.Contains(all, "HTTP/1.1 101 ") {
		t.Errorf("behind a refusal: %q", all)
	}
}

func errIf(wrong bool) error {
	if wrong {
		return errors.New("not you")
	}
	return nil
}

// handshakeRequest is a request as an HTTP server makes it.
func handshakeRequest(major int) *http.Request {
	r := httptest.NewRequest("GET", "/chat", nil)
	r.Proto, r.ProtoMajor, r.ProtoMinor = fmt.Sprintf("HTTP/%d.%d", major, 2-major), major, max(0, 2-major)
	r.Header = http.Header{"Upgrade": {"websocket"}, "Connection": {"Upgrade"}, "Sec-Websocket-Key": {sampleKey}, "Sec-Websocket-Version": {"13"}}
	return r
}

// TestUpgradeUnsupported: other servers than httpd, and other versions than HTTP/1.1.
func TestUpgradeUnsupported(t *testing.T) {
	w := httptest.NewRecorder()
	_, err := Upgrade(w, handshakeRequest(2), newRecorder())
	if e := new(RefusedError); !errors.As(err, &e) || w.Code != 505 || !strings.Contains(w.Body.String(), "HTTP/1.1") {
		t.Errorf("HTTP/2: %d %q, %v", w.Code, w.Body, err)
	}
	w = httptest.NewRecorder()
	_, err = Upgrade(w, handshakeRequest(1), newRecorder())
	if !errors.Is(err, http.ErrNotSupported) || w.Code != 501 || !strings.Contains(err.Error(), "Server.Engine") {
		t.Errorf("without an Engine: %d %q, %v", w.Code, w.Body, err)
	}
	w = httptest.NewRecorder()
	_, err = (&Server{Engine: new(rondo.Engine)}).Upgrade(w, handshakeRequest(1), newRecorder())
	if !errors.Is(err, http.ErrNotSupported) || w.Code != 501 {
		t.Errorf("without Hijack: %d %q, %v", w.Code, w.Body, err)
	}
	func() {
		defer func() {
			if v := recover(); v == nil {
				t.Error("neither Handler nor Open: no panic")
			}
		}()
		Upgrade(httptest.NewRecorder(), handshakeRequest(1), nil)
	}()
}

// TestUpgradeTwice: the second call of a handler fails.
func TestUpgradeTwice(t *testing.T) {
	errs := make(chan error, 1)
	address := serveHTTP(t, "", http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		Upgrade(w, r, HandlerFunc((*Conn).WriteMessage))
		_, err := Upgrade(w, r, newRecorder())
		errs <- err
	}), false)
	p := upgradeTo(t, testkit.Dial(t, address))
	if err := <-errs; !errors.Is(err, http.ErrHijacked) {
		t.Errorf("the second Upgrade: %v", err)
	}
	p.send(text("hello"))
	p.expect("text hello")
	p.bye()
}

// TestUpgradeOpenPanics: the connection ends, and Upgrade returns.
func TestUpgradeOpenPanics(t *testing.T) {
	errs := make(chan error, 1)
	s := &Server{Open: func(*Conn, *http.Request) Handler { panic("no") }}
	address := serveHTTP(t, "", http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		_, err := s.Upgrade(w, r, nil)
		errs <- err
	}), false)
	c := testkit.Dial(t, address)
	io.WriteString(c, request())
	if err := <-errs; err == nil {
		t.Error("Upgrade returns no error")
	}
	io.Copy(io.Discard, c)
}

// TestUpgradeLeaves: the server forgets the connection, and the request's goroutine ends.
func TestUpgradeLeaves(t *testing.T) {
	states := make(chan http.ConnState, 10)
	before := runtime.NumGoroutine()
	srv := &http.Server{
		Handler:     http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) { Upgrade(w, r, HandlerFunc((*Conn).WriteMessage)) }),
		ConnState:   func(_ net.Conn, s http.ConnState) { states <- s },
		BaseContext: func(net.Listener) context.Context { return endless{context.Background()} },
	}
	ln, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	ended := make(chan error, 1)
	go func() { ended <- httpd.Serve(srv, ln) }()
	p := upgradeTo(t, testkit.Dial(t, ln.Addr().String()))
	p.send(text("hello"))
	p.expect("text hello")
	for _, want := range []http.ConnState{http.StateNew, http.StateActive, http.StateHijacked} {
		if got := <-states; got != want {
			t.Errorf("the state is %v, want %v", got, want)
		}
	}

	// Shutdown says goodbye, and waits for the answer.
	done := make(chan error, 1)
	go func() { done <- srv.Shutdown(context.Background()) }()
	p.expect("close 1001")
	select {
	case err := <-done:
		t.Errorf("Shutdown does not wait: %v", err)
	case <-time.After(50 * time.Millisecond):
	}
	p.send(closeFrame(1001, ""))
	p.expect("end")
	p.c.Close()
	if err := <-done; err != nil {
		t.Errorf("Shutdown: %v", err)
	}
	if err := <-ended; !errors.Is(err, http.ErrServerClosed) {
		t.Errorf("Serve: %v", err)
	}
	testkit.Until(t, "the goroutines end", func() bool { return runtime.NumGoroutine() <= before })
}

// endless is a Context that costs a goroutine for each child that was not canceled.
type endless struct{ context.Context }

func (endless) Done() <-chan struct{} { return never }

var never = make(chan struct{})
