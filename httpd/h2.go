package httpd

import (
	"context"
	"crypto/tls"
	"errors"
	"maps"
	"net"
	"net/http"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/rondo-go/rondo"
	"github.com/rondo-go/rondo/internal/bridge"
	"github.com/rondo-go/rondo/netconn"
	"github.com/rondo-go/rondo/rtls"
)

// HTTP/2 is net/http's own. The loop keeps a connection until the client's preface is
// complete. Then a stock serves it, by an http.Server with the Server's configuration, on a
// blocking net.Conn over the loop.

// preface is how an HTTP/2 client begins.
const preface = "PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n"

// inadequate is an HTTP/2 server's empty settings and its GOAWAY for bad TLS.
const inadequate = "\x00\x00\x00\x04\x00\x00\x00\x00\x00" + "\x00\x00\x08\x07\x00\x00\x00\x00\x00" + "\x00\x00\x00\x00" + "\x00\x00\x00\x0c"

// isHTTP1 looks at the first bytes of a connection, and reports whether they are HTTP/1's.
// If it is not, isHTTP1 has closed it, given it to a stock, or wants more bytes.
func (c *conn) isHTTP1(in []byte) bool {
	may := c.server.protocols
	state := c.tlsState()
	secure := state != nil
	chosen := secure && state.NegotiatedProtocol == "h2"
	switch {
	case chosen || !secure && may.UnencryptedHTTP2():
		if n := min(len(in), len(preface)); string(in[:n]) != preface[:n] {
			break
		} else if n < len(preface) {
			return false
		}
		if chosen && (!may.HTTP2() || !c.server.fit(state)) {
			c.reject()
		} else {
			c.handOver()
		}
		return false
	case secure && !slices.Contains([]string{"", "http/1.0", "http/1.1"}, state.NegotiatedProtocol):
		chosen = true // for example acme-tls/1, by which a server proves that it owns a name
	}
	if chosen || !may.HTTP1() {
		c.close()
		return false
	}
	c.fresh = false
	return true
}

// tlsState returns the state of TLS; nil: there is none.
func (c *conn) tlsState() *tls.ConnectionState {
	if c.about == nil {
		if _, secure := rtls.ConnectionState(c.conn); !secure {
			return nil
		}
	}
	return c.info().tls
}

// fit reports whether HTTP/2 allows the version and the cipher suite (RFC 9113, 9.2).
func (s *Server) fit(state *tls.ConnectionState) bool {
	switch {
	case state.Version != tls.VersionTLS12:
		return state.Version > tls.VersionTLS12
	case s.HTTP.HTTP2 != nil && s.HTTP.HTTP2.PermitProhibitedCipherSuites:
		return true
	}
	name := tls.CipherSuiteName(state.CipherSuite)
	return strings.Contains(name, "_ECDHE_") && (strings.Contains(name, "_GCM_") || strings.Contains(name, "_CHACHA20_"))
}

// reject tells a client of HTTP/2 that its TLS is not good enough.
func (c *conn) reject() {
	c.conn.Write([]byte(inadequate))
	c.close()
}

// handOver gives the connection to a stock.
func (c *conn) handOver() {
	c.over = true
	if !c.server.stockFor(c) {
		c.close()
		return
	}
	st := c.about.stock
	c.conn.CloseAt(time.Time{})
	c.conn.AbortUnsentAt(time.Time{})
	h := &handed{netconn.New(c.conn), c.about}
	h.Watch(st.shutdown, c.handedEnded)
	go st.accept(h)
}

// handedEnded is called when a connection that was handed over has closed.
func (c *conn) handedEnded() {
	c.server.leaveStock(c.about.stock)
	c.server.forget(c)
}

// A handed is the net.Conn of a connection that was handed over.
type handed struct {
	*netconn.Conn
	about *about
}

// Close implements net.Conn. The connection ends as one of HTTP/1.
func (h *handed) Close() error {
	err := h.Conn.Close()
	h.Ref().Do(endSoon)
	return err
}

func endSoon(c *rondo.Conn) {
	if wire := bridge.Of(c); wire.IsClosing() {
		wire.CloseWithin(lastTime, lastInput)
	}
}

// A stock serves the HTTP/2 connections of an engine. It is there while there are any, and
// it is a net.Listener for its http.Server.
type stock struct {
	server *Server
	engine *rondo.Engine
	http   *http.Server
	conns  chan net.Conn
	ended  chan struct{} // closed when no connection is accepted any more
	end    sync.Once
	down   sync.Once
	count  int // of connections; with server.mu locked
}

// stockFor finds or makes the stock of c's engine, and counts c there. It reports whether the
// server accepts connections.
func (s *Server) stockFor(c *conn) bool {
	engine := c.conn.Loop().Engine()
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.state.Load() >= draining {
		return false
	}
	st := s.stocks[engine]
	if st == nil {
		st = &stock{server: s, engine: engine, http: s.newStock(), conns: make(chan net.Conn), ended: make(chan struct{})}
		if s.stocks == nil {
			s.stocks = make(map[*rondo.Engine]*stock)
		}
		s.stocks[engine] = st
		go st.http.Serve(st)
	}
	st.count++
	a := c.info()
	a.stock, a.keep = st, true
	return true
}

// leaveStock is called when a connection of st has closed.
func (s *Server) leaveStock(st *stock) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if st.count--; st.count == 0 {
		delete(s.stocks, st.engine)
		go st.http.Close()
	}
}

// drainStocks ends the HTTP/2 connections: behind their streams, or at once. The caller has
// locked mu.
func (s *Server) drainStocks(state int32) {
	for _, st := range s.stocks {
		if state == closed {
			go st.http.Close()
		} else {
			st.shutdown()
		}
	}
}

// newStock makes an http.Server for connections of HTTP/2. TLS has been taken off them.
func (s *Server) newStock() *http.Server {
	o := s.HTTP
	own := &http.Server{
		Handler:                      &withTLS{o, s.counts.Of(0)},
		DisableGeneralOptionsHandler: o.DisableGeneralOptionsHandler,
		ReadTimeout:                  o.ReadTimeout,
		ReadHeaderTimeout:            o.ReadHeaderTimeout,
		WriteTimeout:                 o.WriteTimeout,
		IdleTimeout:                  o.IdleTimeout,
		MaxHeaderBytes:               o.MaxHeaderBytes,
		TLSNextProto:                 maps.Clone(s.original.nextProto),
		ErrorLog:                     o.ErrorLog,
		HTTP2:                        o.HTTP2,
		Protocols:                    new(http.Protocols),
		BaseContext:                  func(net.Listener) context.Context { return s.base },
		ConnContext: func(ctx context.Context, c net.Conn) context.Context {
			if h, ok := c.(*handed); ok {
				return context.WithValue(h.about, aboutKey{}, h.about)
			}
			return ctx
		},
	}
	own.Protocols.SetUnencryptedHTTP2(true)
	if hook := s.original.connState; hook != nil {
		own.ConnState = func(c net.Conn, state http.ConnState) {
			if h, ok := c.(*handed); ok && state != http.StateNew { // it was new before
				hook(h.about.view, state)
			}
		}
	}
	return own
}

// accept passes a connection to the http.Server.
func (st *stock) accept(h *handed) {
	select {
	case st.conns <- h:
	case <-st.ended: // the http.Server does not see it
		h.Close()
		if hook := st.server.original.connState; hook != nil {
			hook(h.about.view, http.StateClosed)
		}
	}
}

// shutdown ends the connections behind their streams.
func (st *stock) shutdown() {
	st.down.Do(func() { go st.http.Shutdown(context.Background()) })
}

// Accept implements net.Listener.
func (st *stock) Accept() (net.Conn, error) {
	select {
	case c := <-st.conns:
		return c, nil
	case <-st.ended:
		return nil, net.ErrClosed
	}
}

// Close implements net.Listener.
func (st *stock) Close() error {
	st.end.Do(func() { close(st.ended) })
	return nil
}

// Addr implements net.Listener.
func (st *stock) Addr() net.Addr { return inside{} }

// An inside is the address of a listener that no network reaches.
type inside struct{}

func (inside) Network() string { return "httpd" }
func (inside) String() string  { return "httpd" }

type aboutKey struct{}

// A withTLS calls an http.Server's Handler with what the stock does not know: the state of
// TLS, and the http.Server.
type withTLS struct {
	srv    *http.Server
	counts *counts
}

func (h *withTLS) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	known := r.WithContext(context.WithValue(r.Context(), http.ServerContextKey, h.srv))
	defer func() { r.MultipartForm = known.MultipartForm }() // net/http removes its files
	var handler http.Handler = http.DefaultServeMux
	if h.srv.Handler != nil {
		handler = h.srv.Handler
	}
	if a, ok := r.Context().Value(aboutKey{}).(*about); ok {
		known.TLS = a.tls
	}
	h.counts.begun.Add(1)
	h.counts.http2.Add(1)
	defer h.counts.ended.Add(1)
	handler.ServeHTTP(w, known)
}

// chooseProtocols finds what the server may speak, by the rules of net/http. The error says
// why there is no HTTP/2 though the configuration wants it.
func (s *Server) chooseProtocols() error {
	_, own := s.original.nextProto["h2"] // by http2.ConfigureServer of golang.org/x/net
	p := &s.protocols
	if allowed := s.original.protocols; allowed != nil {
		*p = *allowed
	} else {
		p.SetHTTP1(true)
		p.SetHTTP2(own || s.original.nextProto == nil)
	}
	if !p.HTTP2() && !p.UnencryptedHTTP2() {
		return nil
	}
	// Serve sets HTTP/2 up before it accepts, and finds whether net/http has it: it may be
	// switched off by GODEBUG, or a build tag.
	probe := s.newStock()
	probe.ConnState, probe.ErrorLog = nil, nil
	probe.TLSConfig = s.original.tls.Clone()
	err := probe.Serve(noListener{})
	if errors.Is(err, errNoListener) {
		err = nil
	}
	if _, plain := probe.TLSNextProto["unencrypted_http2"]; err != nil || len(probe.TLSNextProto) == 0 || own && !plain {
		p.SetHTTP2(false)
		p.SetUnencryptedHTTP2(false)
	}
	return err
}

var errNoListener = errors.New("httpd: not a listener")

// A noListener accepts nothing.
type noListener struct{}

func (noListener) Accept() (net.Conn, error) { return nil, errNoListener }
func (noListener) Close() error              { return nil }
func (noListener) Addr() net.Addr            { return inside{} }

// offered returns the protocols that TLS offers: names, and those of HTTP that p allows.
func offered(names []string, p http.Protocols) []string {
	allowed := map[string]bool{"h2": p.HTTP2(), "http/1.1": p.HTTP1()}
	var list []string
	for _, name := range names {
		if may, known := allowed[name]; may || !known {
			list = append(list, name)
		}
	}
	for _, name := range []string{"h2", "http/1.1"} {
		if allowed[name] && !slices.Contains(list, name) {
			list = append(list, name)
		}
	}
	return list
}
