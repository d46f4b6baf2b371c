package httpd

import (
	"context"
	"crypto/tls"
	"errors"
	"io"
	"log"
	"math"
	"net"
	"net/http"
	"os"
	"runtime/debug"
	"slices"
	"sync"
	"sync/atomic"
	"syscall"
	"time"

	"github.com/rondo-go/rondo"
	"github.com/rondo-go/rondo/http1"
	"github.com/rondo-go/rondo/internal/bridge"
	"github.com/rondo-go/rondo/internal/meter"
	"github.com/rondo-go/rondo/rtls"
)

// A Server serves HTTP on an Engine of the caller's, with Open:
//
//	s := httpd.Server{HTTP: &http.Server{Handler: h}}
//	engine.Listen("tcp", ":80", rondo.SocketOptions{}, s.Open)
//
// It may serve several listeners and engines. Engine.Shutdown waits for the requests in
// progress; HTTP's own Shutdown and Close mean nothing here. A head must fit in the engine's
// MaxInput. HighWater bounds the output of a connection, and MaxOutput only if it is 1 MiB more.
// [Serve] is for programs that have no engine.
type Server struct {
	// HTTP is the configuration. Do not change it afterwards. nil: the zero http.Server.
	HTTP *http.Server

	counts    meter.Sharded[counts]
	once      sync.Once
	base      context.Context
	original  *original
	protocols http.Protocols // that it speaks
	noHTTP2   error          // why there is none though HTTP wants it
	rules     http1.Rules
	loops     rondo.LoopLocal[*loop]
	state     atomic.Int32 // of the server: serving, draining, closed
	mu        sync.Mutex
	conns     map[*conn]struct{}
	open      atomic.Int64 // the number of conns
	stocks    map[*rondo.Engine]*stock
	drained   chan struct{} // closed when the server is draining and has no connections
	ended     chan struct{} // closed when connections of other protocols have ended too
	life      context.Context
	cut       context.CancelFunc // ends life: connections are aborted
}

// The states of a Server.
const (
	serving  = iota
	orphaned // the listener has failed: connections go on
	draining // connections close when they are idle
	closed   // connections are aborted
)

// Serve serves ln with srv's configuration until srv.Shutdown or srv.Close, and returns
// http.ErrServerClosed then, as srv.Serve does. It makes an engine with a loop for each
// processor, which ends with it. A listener that is neither TCP nor unix is accepted from by
// its own Accept.
//
// srv.Shutdown waits for the requests in progress, for as long as its context says.
// srv.Close ends them. A ConnState hook is called for the connections on the loops;
// SetKeepAlivesEnabled has no effect.
func Serve(srv *http.Server, ln net.Listener) error {
	s := &Server{HTTP: srv}
	return s.serve(&rondo.Engine{Spin: spin}, ln)
}

// spin is the Spin of Serve's engines. A client that waits for one answer before it sends the next
// request does so within this time.
const spin = 20 * time.Microsecond

// ListenAndServe listens on a TCP address and serves h.
func ListenAndServe(addr string, h http.Handler) error {
	ln, err := net.Listen("tcp", addr)
	if err != nil {
		return err
	}
	return Serve(&http.Server{Handler: h}, ln)
}

// ServeTLS is Serve for TLS by package rtls, with srv.TLSConfig and the certificate of the
// two files, which may be empty if TLSConfig has one. As srv.ServeTLS it offers HTTP/2,
// unless srv.Protocols or srv.TLSNextProto say otherwise. A handshake may take as long as the
// shortest of ReadTimeout, ReadHeaderTimeout and WriteTimeout says.
func ServeTLS(srv *http.Server, ln net.Listener, certFile, keyFile string) error {
	s := &Server{HTTP: srv}
	s.init(ln)
	if s.noHTTP2 != nil {
		ln.Close()
		return s.noHTTP2
	}
	config := new(tls.Config)
	if s.original.tls != nil {
		config = s.original.tls.Clone()
	}
	config.NextProtos = offered(config.NextProtos, s.protocols)
	if certFile != "" || keyFile != "" || len(config.Certificates) == 0 && config.GetCertificate == nil && config.GetConfigForClient == nil {
		cert, err := tls.LoadX509KeyPair(certFile, keyFile)
		if err != nil {
			ln.Close()
			return err
		}
		config.Certificates = []tls.Certificate{cert}
	}
	engine := &rondo.Engine{Spin: spin}
	engine.Trace = &rondo.Trace{FilterFailed: func(c *rondo.Conn, _ rondo.Filter, err error) {
		if _, done := rtls.ConnectionState(c); !done {
			s.logf("http: TLS handshake error from %s: %v", c.RemoteAddr(), err)
			bridge.Of(c).CloseWithin(lastTime, lastInput)
		}
	}}
	o := &rtls.Options{HandshakeTimeout: handshakeTime(srv)}
	return s.serve(engine, ln, newPlain, o.Server(config))
}

// handshakeTime returns how long a handshake may take, as net/http; 0: the default.
func handshakeTime(srv *http.Server) (shortest time.Duration) {
	for _, d := range []time.Duration{srv.ReadTimeout, srv.ReadHeaderTimeout, srv.WriteTimeout} {
		if d > 0 && (shortest == 0 || d < shortest) {
			shortest = d
		}
	}
	return shortest
}

func (s *Server) serve(engine *rondo.Engine, ln net.Listener, filters ...rondo.FilterOpenFunc) error {
	s.init(ln)
	engine.MaxInput = max(rondo.DefaultMaxInput, s.rules.Head+bodyAhead) // a head has to fit
	open := rondo.OpenFunc(s.Open)
	if len(filters) > 0 {
		open = rondo.Filtered(open, filters...)
	}
	g := newGate(s, ln.Addr())
	g.start = func() error { return s.listen(engine, ln, open, g) }
	g.stop = func() { ln.Close() }
	hide(s.HTTP, s.original)
	defer unhide(s.HTTP)
	s.HTTP.RegisterOnShutdown(func() { s.drain(draining) }) // also when the listener has failed before
	err := s.HTTP.Serve(g)
	g.Close()
	go s.closeEngine(engine)
	return err
}

// closeEngine closes the engine when nobody uses it any more. Connections that handlers have
// taken over live on, as with net/http; without filters they are not the engine's.
func (s *Server) closeEngine(engine *rondo.Engine) {
	<-s.drained
	s.sayGoodbye(engine)
	close(s.ended)
	for wait := time.Millisecond; engine.Stats().Open > 0; wait = min(2*wait, 100*time.Millisecond) {
		time.Sleep(wait)
	}
	engine.Close()
}

// listen makes the engine accept from ln, until g is closed or ln is.
func (s *Server) listen(engine *rondo.Engine, ln net.Listener, open rondo.OpenFunc, g *gate) error {
	socket, ok := ln.(interface {
		File() (*os.File, error)
		SyscallConn() (syscall.RawConn, error)
	})
	if !ok {
		go func() { g.fail(s.acceptAll(engine, ln, open)) }()
		return engine.Start()
	}
	same, err := duplicate(socket)
	if err != nil {
		return err
	}
	raw, err := socket.SyscallConn()
	if err != nil {
		return err
	}
	on, err := engine.AttachListener(same, rondo.SocketOptions{}, open)
	if err != nil {
		return err
	}
	g.stop = func() {
		on.Close()
		ln.Close()
	}
	go watch(raw, ln, g)
	return nil
}

// duplicate returns a listener of the same socket, which the engine gets.
func duplicate(ln interface{ File() (*os.File, error) }) (net.Listener, error) {
	f, err := ln.File()
	if err != nil {
		return nil, err
	}
	defer f.Close()
	return net.FileListener(f)
}

// watch ends the server when somebody has closed ln, which tells nobody: so it asks.
func watch(raw syscall.RawConn, ln net.Listener, g *gate) {
	ticker := time.NewTicker(50 * time.Millisecond)
	defer ticker.Stop()
	for {
		select {
		case <-g.closed:
			return
		case <-ticker.C:
		}
		if raw.Control(func(uintptr) {}) != nil {
			g.fail(&net.OpError{Op: "accept", Net: ln.Addr().Network(), Addr: ln.Addr(), Err: net.ErrClosed})
			return
		}
	}
}

// acceptAll passes the connections of a listener to the engine.
func (s *Server) acceptAll(engine *rondo.Engine, ln net.Listener, open rondo.OpenFunc) error {
	wait := time.Duration(0)
	for {
		c, err := ln.Accept()
		if err != nil {
			var passing interface{ Temporary() bool }
			if !errors.As(err, &passing) || !passing.Temporary() {
				return err
			}
			wait = max(min(2*wait, time.Second), 5*time.Millisecond) // as net/http
			s.logf("http: Accept error: %v; retrying in %v", err, wait)
			time.Sleep(wait)
			continue
		}
		wait = 0
		switch c := c.(type) {
		case *tls.Conn:
			go s.attachTLS(engine, c, open)
		default:
			attach(engine, c, open)
		}
	}
}

func attach(engine *rondo.Engine, c net.Conn, open rondo.OpenFunc) {
	if _, err := engine.Attach(c, open); err != nil {
		c.Close()
	}
}

// attachTLS does the handshake of a connection that tls.NewListener has made.
func (s *Server) attachTLS(engine *rondo.Engine, tc *tls.Conn, open rondo.OpenFunc) {
	d := handshakeTime(s.HTTP)
	if d == 0 {
		d = rtls.DefaultHandshakeTimeout
	}
	tc.SetDeadline(time.Now().Add(d))
	if err := tc.Handshake(); err != nil {
		if e, ok := err.(tls.RecordHeaderError); ok && e.Conn != nil && slices.Contains(plainBegins, string(e.RecordHeader[:])) {
			io.WriteString(e.Conn, plainAnswer)
			err = errPlain
		}
		s.logf("http: TLS handshake error from %s: %v", tc.RemoteAddr(), err)
		tc.Close()
		return
	}
	tc.SetDeadline(time.Time{})
	state := tc.ConnectionState()
	attach(engine, tc, func(rc *rondo.Conn) rondo.Handler {
		h := open(rc)
		if c, served := h.(*conn); served {
			a := c.info()
			a.tls, a.keep = &state, true
		}
		return h
	})
}

func (s *Server) init(ln net.Listener) {
	s.once.Do(func() {
		if s.HTTP == nil {
			s.HTTP = new(http.Server)
		}
		s.base = context.Background()
		s.original = originalOf(s.HTTP)
		if f := s.original.base; f != nil && ln != nil {
			s.base = f(ln)
		}
		s.base = context.WithValue(s.base, http.ServerContextKey, s.HTTP)
		head := s.HTTP.MaxHeaderBytes
		if head <= 0 {
			head = http.DefaultMaxHeaderBytes
		}
		head += 4096 // as net/http
		s.rules = http1.Rules{Line: head, Head: head, Fields: head / 16, BareLF: true, NonASCII: true}
		s.loops.New = func(on *rondo.Loop) *loop { return newLoop(s, on) }
		s.conns = make(map[*conn]struct{})
		s.drained, s.ended = make(chan struct{}), make(chan struct{})
		s.life, s.cut = context.WithCancel(context.Background())
		s.noHTTP2 = s.chooseProtocols()
	})
}

// Open makes the Handler of a connection.
func (s *Server) Open(rc *rondo.Conn) rondo.Handler {
	s.init(nil)
	c := &conn{server: s, conn: rc, loop: s.loops.Get(rc.Loop())}
	s.mu.Lock()
	refused := s.state.Load() != serving
	if !refused {
		s.conns[c] = struct{}{}
		s.open.Store(int64(len(s.conns)))
	}
	s.mu.Unlock()
	if refused {
		return nil
	}
	if l := rc.Limits(); l.MaxOutput-outputRoom < l.HighWater {
		l.MaxOutput = min(l.HighWater, math.MaxInt-outputRoom) + outputRoom
		rc.SetLimits(l)
	}
	c.opened()
	return c
}

// outputRoom is what may come when output is full: a piece of an answer, and its head. Otherwise
// an engine's MaxOutput would cut answers.
const outputRoom = 1 << 20

// forget is called when a connection has gone.
func (s *Server) forget(c *conn) {
	s.mu.Lock()
	delete(s.conns, c)
	s.open.Store(int64(len(s.conns)))
	s.settle()
	s.mu.Unlock()
}

// settle closes drained if it is time. The caller has locked mu.
func (s *Server) settle() {
	if s.state.Load() != serving && len(s.conns) == 0 {
		select {
		case <-s.drained:
		default:
			close(s.drained)
		}
	}
}

// drain closes connections: idle ones at once, the others behind their answer, or all of them
// at once. It does not wait.
func (s *Server) drain(state int32) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.state.Load() < state {
		s.state.Store(state)
	}
	if state >= draining {
		for c := range s.conns {
			c.conn.Ref().Do(c.drain)
		}
		s.drainStocks(state)
	}
	if state == closed {
		s.cut()
	}
	s.settle()
}

func (s *Server) handler(r *http.Request) http.Handler {
	h := s.HTTP.Handler
	if h == nil {
		h = http.DefaultServeMux
	}
	if r.RequestURI == "*" && r.Method == "OPTIONS" && !s.HTTP.DisableGeneralOptionsHandler {
		h = http.HandlerFunc(answerOptions)
	}
	return h
}

// answerOptions answers "OPTIONS *" for the server as a whole.
func answerOptions(w http.ResponseWriter, r *http.Request) {
	w.Header().Set("Content-Length", "0")
	if r.ContentLength != 0 {
		discard(http.MaxBytesReader(w, r.Body, 4<<10), 8<<10)
	}
}

func (s *Server) logf(format string, args ...any) {
	if l := s.HTTP.ErrorLog; l != nil {
		l.Printf(format, args...)
	} else {
		log.Printf(format, args...)
	}
}

// recovered logs a handler's panic.
func (s *Server) recovered(remote string, v any) {
	if v != nil && v != http.ErrAbortHandler {
		s.logf("http: panic serving %v: %v\n%s", remote, v, debug.Stack())
	}
}

// OnLoop marks a handler that does not block: it runs on the connection's loop, as a coroutine.
// When it waits for its request's body, or writes while the connection's output is full, the
// loop goes on with other connections. While it runs, and while it waits for anything else,
// all of them wait. No other goroutine may call the methods of its ResponseWriter and Body.
// There is no Hijack on a loop.
//
// OnLoop has an effect on Server.Handler itself only, not on handlers in a ServeMux.
func OnLoop(h http.Handler) http.Handler { return onLoop{h} }

type onLoop struct{ http.Handler }
