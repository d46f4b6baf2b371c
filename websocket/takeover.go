package websocket

import (
	"fmt"
	"net"
	"net/http"
	"time"

	"github.com/rondo-go/rondo"
	"github.com/rondo-go/rondo/internal/handover"
)

// This file takes connections over from HTTP servers.

// Upgrade is Server.Upgrade with the zero Server: requests of other origins are refused,
// and messages are not compressed.
func Upgrade(w http.ResponseWriter, r *http.Request, h Handler) (Ref, error) {
	return plain.Upgrade(w, r, h)
}

var plain Server

// Upgrade makes a WebSocket of the connection of a request that w answers. h serves it; if
// h is nil, what Open returns does. When Upgrade returns without an error, the handshake is
// done: the handler must not use w any more, and may return at once. After an error Upgrade
// has answered the request, or cannot: the connection is closed, or an answer had begun. The
// fields of w.Header are sent with the answer: a Set-Cookie, for instance.
//
//	http.HandleFunc("/chat", func(w http.ResponseWriter, r *http.Request) {
//		websocket.Upgrade(w, r, new(member))
//	})
//
// On package httpd the connection stays on its loop, with its filters (TLS), and has
// neither goroutine nor buffer from then on. The request's goroutine waits while the
// connection changes its Handler; under httpd.OnLoop nothing waits. http.Server's Shutdown
// closes the connection with wsframe.CodeGoingAway, and waits for the peer's answer.
//
// On another server, net/http's own for instance, the connection is hijacked and moves to
// Server.Engine. There a connection with TLS keeps a goroutine (see rondo.Engine.Attach).
// Without an Engine the error is http.ErrNotSupported. Middleware that wraps w must have a
// method Unwrap, as http.ResponseController wants it, or else Hijack.
//
// A request of HTTP/2 is refused: browsers open a connection of HTTP/1.1 for a WebSocket
// unless the server announces RFC 8441.
//
// The error is a *RefusedError if the request is no correct handshake, or if CheckOrigin
// refuses it; it is Accept's error if Accept does. r.Context is done when the HTTP handler
// has returned. Upgrade panics if a field of s has an invalid value, or if there is neither h
// nor Open.
func (s *Server) Upgrade(w http.ResponseWriter, r *http.Request, h Handler) (Ref, error) {
	if h == nil && s.Open == nil {
		panic("websocket: Upgrade was given no Handler, and Server.Open is nil")
	}
	set := s.mustSettings()
	a, err := s.agreeHTTP(w, r, set)
	if err != nil {
		return Ref{}, err
	}
	open := func(c *Conn) Handler {
		if h != nil {
			return h
		}
		return s.Open(c, r)
	}
	giver := handover.Find(w)
	if giver == nil {
		return s.adopt(w, set, a, open)
	}
	var ref Ref
	err = giver.HandOver(handover.Key{}, func(raw *rondo.Conn) {
		c := newConn(raw, set, nil)
		ref = c.Ref()
		raw.SetHandler((*wire)(c))
		c.openWith(a, open)
	})
	if err != nil {
		return Ref{}, fmt.Errorf("websocket: upgrade: %w", err)
	}
	return ref, nil
}

// openWith answers a request, and makes c open.
func (c *Conn) openWith(a *agreement, open func(*Conn) Handler) {
	c.handler = HandlerFunc(nil)
	if err := a.open(c, func() Handler { return open(c) }); err != nil {
		c.raw.CloseWith(c.end(err))
	}
}

// ServeHTTP makes the Server an http.Handler: it calls Upgrade, with the Handlers that Open
// returns.
func (s *Server) ServeHTTP(w http.ResponseWriter, r *http.Request) { s.Upgrade(w, r, nil) }

// agreeHTTP is agree for a request of an HTTP server. It answers what is refused.
func (s *Server) agreeHTTP(w http.ResponseWriter, r *http.Request, set *settings) (*agreement, error) {
	reply := w.Header().Clone()
	if reply == nil {
		reply = make(http.Header)
	}
	a, err := s.agree(set, r, reply)
	if err != nil {
		return nil, decline(w, err)
	}
	return a, nil
}

// decline answers a request that is refused, and returns err.
func decline(w http.ResponseWriter, err error) error {
	e, status := refusal(err)
	h := w.Header()
	for name, values := range e.Header {
		h[http.CanonicalHeaderKey(name)] = values
	}
	http.Error(w, e.text(), status)
	return err
}

// unsupported is the error for a connection that cannot be taken. The client is told less.
func unsupported(format string, args ...any) error {
	return fmt.Errorf("websocket: upgrade: %w (%w)", fmt.Errorf(format, args...),
		&RefusedError{Status: http.StatusNotImplemented, Text: "no WebSocket on this server"})
}

// hijack takes the connection from an HTTP server, with what came behind the request. It
// answers the request if it cannot.
func hijack(w http.ResponseWriter) (nc net.Conn, rest []byte, err error) {
	nc, rw, err := http.NewResponseController(w).Hijack()
	if err != nil {
		return nil, nil, decline(w, unsupported("hijacking a %T: %w", w, err))
	}
	nc.SetDeadline(time.Time{})
	rest, _ = rw.Reader.Peek(rw.Reader.Buffered())
	return nc, rest, nil
}

// adopt moves the connection of another server than httpd's to the Engine.
func (s *Server) adopt(w http.ResponseWriter, set *settings, a *agreement, open func(*Conn) Handler) (ref Ref, err error) {
	if s.Engine == nil {
		return Ref{}, decline(w, unsupported("the ResponseWriter is a %T and wraps none of package httpd, and Server.Engine is nil: %w", w, http.ErrNotSupported))
	}
	nc, rest, err := hijack(w)
	if err != nil {
		return Ref{}, err
	}
	if len(rest) > 0 {
		nc = rondo.PrefixConn(nc, rest)
	}
	_, err = s.Engine.Attach(nc, func(raw *rondo.Conn) rondo.Handler {
		c := newConn(raw, set, nil)
		ref = c.Ref()
		c.openWith(a, open)
		return (*wire)(c)
	})
	if err != nil {
		nc.Close()
		return Ref{}, fmt.Errorf("websocket: upgrade: %w", err)
	}
	return ref, nil
}
