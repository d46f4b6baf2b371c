package httpd

import (
	"context"
	"crypto/tls"
	"errors"
	"log"
	"net"
	"net/http"
	"os"
	"runtime/debug"
	"sync"
	"sync/atomic"
	"syscall"
	"time"

	"github.com/rondo-go/rondo"
	"github.com/rondo-go/rondo/http1"
	"github.com/rondo-go/rondo/rtls"
)

// A Server serves HTTP/1 on an Engine of the caller's, with Open:
//
//	s := httpd.Server{HTTP: &http.Server{Handler: h}}
//	engine.Listen("tcp", ":80", rondo.SocketOptions{}, s.Open)
//
// It may serve several listeners and engines. Engine.Shutdown waits for the requests in
// progress; HTTP's own Shutdown and Close mean nothing here. A head must fit in the engine's
// MaxInput. [Serve] is for programs that have no engine.
type Server struct {
	// HTTP is the configuration. Do not change it afterwards. nil: the zero http.Server.
	HTTP *http.Server

	once    sync.Once
	base    context.Context
	rules   http1.Rules
	loops   rondo.LoopLocal[*loop]
	state   atomic.Int32 // of the server: serving, draining, closed
	mu      sync.Mutex
	conns   map[*conn]struct{}
	drained chan struct{} // closed when the server is draining and has no connections
}

// The states of a Server.
const (
	serving  = iota
	orphaned // the listener has failed: connections go on
	draining // connections close when they are idle
	closed   // connections are aborted
)

// A loop is what the connections of a loop share.
type loop struct {
	request http1.Request
}

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
	return s.serve(new(rondo.Engine), ln)
}

// ListenAndServe listens on a TCP address and serves h.
func ListenAndServe(addr string, h http.Handler) error {
	ln, err := net.Listen("tcp", addr)
	if err != nil {
		return err
	}
	return Serve(&http.Server{Handler: h}, ln)
}

// ServeTLS is Serve for TLS by package rtls, with srv.TLSConfig and the certificate of the
// two files, which may be empty if TLSConfig has one. It offers HTTP/1.1 alone.
func ServeTLS(srv *http.Server, ln net.Listener, certFile, keyFile string) error {
	config := new(tls.Config)
	if srv.TLSConfig != nil {
		config = srv.TLSConfig.Clone()
	}
	config.NextProtos = []string{"http/1.1"}
	if certFile != "" || keyFile != "" || len(config.Certificates) == 0 && config.GetCertificate == nil && config.GetConfigForClient == nil {
		cert, err := tls.LoadX509KeyPair(certFile, keyFile)
		if err != nil {
			ln.Close()
			return err
		}
		config.Certificates = []tls.Certificate{cert}
	}
	s := &Server{HTTP: srv}
	return s.serve(new(rondo.Engine), ln, rtls.Server(config))
}

func (s *Server) serve(engine *rondo.Engine, ln net.Listener, filters ...rondo.FilterOpenFunc) error {
	s.init(ln)
	engine.MaxInput = max(rondo.DefaultMaxInput, s.rules.Head+bodyAhead) // a head has to fit
	open := rondo.OpenFunc(s.Open)
	if len(filters) > 0 {
		open = rondo.Filtered(open, filters...)
	}
	g := newGate(s, ln.Addr())
	hide(s.HTTP, s.base)
	if err := s.listen(engine, ln, open, g); err != nil {
		engine.Close()
		ln.Close()
		return err
	}
	s.HTTP.RegisterOnShutdown(func() { s.drain(draining) }) // also when the listener has failed before
	err := s.HTTP.Serve(g)
	g.Close()
	go func() {
		<-s.drained
		engine.Close()
	}()
	return err
}

// listen makes the engine accept from ln, until g is closed or ln is.
func (s *Server) listen(engine *rondo.Engine, ln net.Listener, open rondo.OpenFunc, g *gate) error {
	socket, ok := ln.(interface {
		File() (*os.File, error)
		SyscallConn() (syscall.RawConn, error)
	})
	if !ok {
		g.stop = func() { ln.Close() }
		go func() { g.fail(acceptAll(engine, ln, open)) }()
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

// hide keeps the gate's connection from srv's hooks.
func hide(srv *http.Server, base context.Context) {
	srv.BaseContext = func(net.Listener) context.Context { return base }
	if hook := srv.ConnContext; hook != nil {
		srv.ConnContext = func(ctx context.Context, c net.Conn) context.Context {
			if _, ours := c.(*gateConn); ours {
				return ctx
			}
			return hook(ctx, c)
		}
	}
	if hook := srv.ConnState; hook != nil {
		srv.ConnState = func(c net.Conn, state http.ConnState) {
			if _, ours := c.(*gateConn); !ours {
				hook(c, state)
			}
		}
	}
}

// acceptAll passes the connections of a listener to the engine.
func acceptAll(engine *rondo.Engine, ln net.Listener, open rondo.OpenFunc) error {
	for {
		c, err := ln.Accept()
		if err != nil {
			var temporary net.Error
			if errors.As(err, &temporary) && temporary.Timeout() {
				time.Sleep(5 * time.Millisecond)
				continue
			}
			return err
		}
		if _, err := engine.Attach(c, open); err != nil {
			c.Close()
		}
	}
}

func (s *Server) init(ln net.Listener) {
	s.once.Do(func() {
		if s.HTTP == nil {
			s.HTTP = new(http.Server)
		}
		s.base = context.Background()
		if f := s.HTTP.BaseContext; f != nil && ln != nil {
			s.base = f(ln)
		}
		s.base = context.WithValue(s.base, http.ServerContextKey, s.HTTP)
		head := s.HTTP.MaxHeaderBytes
		if head <= 0 {
			head = http.DefaultMaxHeaderBytes
		}
		head += 4096 // as net/http
		s.rules = http1.Rules{Line: head, Head: head, Fields: head / 16, BareLF: true, NonASCII: true}
		s.loops.New = func(*rondo.Loop) *loop { return new(loop) }
		s.conns = make(map[*conn]struct{})
		s.drained = make(chan struct{})
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
	}
	s.mu.Unlock()
	if refused {
		return nil
	}
	c.opened()
	return c
}

// forget is called when a connection has gone.
func (s *Server) forget(c *conn) {
	s.mu.Lock()
	delete(s.conns, c)
	s.ended()
	s.mu.Unlock()
}

// ended closes drained if it is time. The caller has locked mu.
func (s *Server) ended() {
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
	}
	s.ended()
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

// OnLoop marks a handler that does not block: it runs on the connection's loop, without a
// goroutine. While it runs, all other connections of the loop wait. Only a request whose body
// has arrived runs there; the others get a goroutine. There is no Hijack on a loop.
//
// OnLoop has an effect on Server.Handler itself only, not on handlers in a ServeMux.
func OnLoop(h http.Handler) http.Handler { return onLoop{h} }

type onLoop struct{ http.Handler }
