package websocket

import (
	"fmt"
	"io"
	"net/http"
	"net/url"
	"strings"
	"sync"

	"github.com/rondo-go/rondo"
	"github.com/rondo-go/rondo/wsframe"
)

// A Server makes WebSocket connections: of a listener's connections with OpenFunc, which
// needs Open, or of HTTP requests with Upgrade or as an http.Handler. Do not change the
// fields after a method was called.
type Server struct {
	// Open makes the Handler of a new connection, on its loop, when the handshake is done.
	// It may write. r is the request; it has no body. If Open returns nil, the connection
	// is closed with wsframe.CodePolicyViolation.
	Open func(c *Conn, r *http.Request) Handler

	// Accept decides about a request before it is answered, on the connection's loop: an
	// error refuses it. A *RefusedError chooses the answer; the answer to any other is 403
	// Forbidden. reply is the header of the answer that accepts. nil: all are accepted.
	Accept func(r *http.Request, reply http.Header) error

	// CheckOrigin reports whether a browser on the page of the request's Origin may connect.
	// If it returns false, the answer is 403 Forbidden. A server that recognizes users by
	// cookies must not take any origin. nil: SameOrigin. See also AllowOrigins.
	CheckOrigin func(r *http.Request) bool

	// Subprotocols are the subprotocols that the server speaks, the best first. The first
	// one that the client offers too is chosen.
	Subprotocols []string

	// Other answers a request that does not ask for a WebSocket, on the connection's loop,
	// by writing an HTTP/1.1 response to c. The connection closes afterwards. The request's
	// body is not read. nil: the answer is 426 Upgrade Required.
	Other func(c io.Writer, r *http.Request)

	// Engine serves the connections that Upgrade takes from servers other than package
	// httpd's: net/http's own, for instance. nil: Upgrade returns an error for these.
	Engine *rondo.Engine

	Options

	counts allCounts

	once  sync.Once
	set   *settings
	wrong string // about a field's value
}

// mustSettings returns the settings. It panics if a field has an invalid value.
func (s *Server) mustSettings() *settings {
	s.once.Do(func() {
		set, err := s.Options.settings("Server")
		for _, p := range s.Subprotocols {
			if err == nil && !wsframe.IsToken(p) {
				err = fmt.Errorf("websocket: Server.Subprotocols has %q: want names without blanks and commas", p)
			}
		}
		if err != nil {
			s.wrong = err.Error()
		}
		if set != nil {
			set.counts = &s.counts
		}
		s.set = set
	})
	if s.wrong != "" {
		panic(s.wrong)
	}
	return s.set
}

// A RefusedError refuses a request with an answer.
type RefusedError struct {
	Status int         // from 300 to 599
	Header http.Header // in addition; may be nil
	Text   string      // the body; "": the status's text
}

func (e *RefusedError) Error() string {
	return fmt.Sprintf("websocket: refused with %d %s", e.Status, e.text())
}

func (e *RefusedError) text() string {
	if e.Text == "" {
		return http.StatusText(e.Status)
	}
	return e.Text
}

// OpenFunc returns the OpenFunc of the server's connections, for Engine.Listen or
// rondo.Serve. It panics if a field has an invalid value.
func (s *Server) OpenFunc() rondo.OpenFunc {
	set := s.mustSettings()
	if s.Open == nil {
		panic("websocket: Server.Open is nil: want a function that makes each connection's Handler")
	}
	return func(raw *rondo.Conn) rondo.Handler {
		return (*wire)(newConn(raw, set, &upgrade{server: s}))
	}
}

// SameOrigin reports whether the request comes from a page of the same host and port as the
// server, or not from a browser: it has no Origin.
func SameOrigin(r *http.Request) bool {
	origin := r.Header["Origin"]
	if len(origin) == 0 {
		return true
	}
	u, err := url.Parse(origin[0])
	return err == nil && len(origin) == 1 && u.Host != "" && strings.EqualFold(u.Host, r.Host)
}

// AllowOrigins returns a CheckOrigin that takes requests of SameOrigin, and those from pages
// of the origins. An origin is a scheme, host and port as browsers send it:
// "https://example.com", "http://localhost:3000". "https://*.example.com" stands for all
// subdomains, and "*" for any origin.
func AllowOrigins(origins ...string) func(r *http.Request) bool {
	return func(r *http.Request) bool {
		if SameOrigin(r) {
			return true
		}
		given := r.Header["Origin"]
		if len(given) != 1 {
			return false
		}
		for _, o := range origins {
			scheme, domain, wild := strings.Cut(o, "*.")
			switch {
			case o == "*", strings.EqualFold(o, given[0]):
				return true
			case wild && isSubdomain(strings.ToLower(given[0]), strings.ToLower(scheme), strings.ToLower(domain)):
				return true
			}
		}
		return false
	}
}

// isSubdomain reports whether origin is scheme, some labels, a dot, and domain.
func isSubdomain(origin, scheme, domain string) bool {
	host, ok := strings.CutPrefix(origin, scheme)
	if !ok {
		return false
	}
	labels, ok := strings.CutSuffix(host, "."+domain)
	return ok && labels != "" && !strings.ContainsAny(labels, "/:@")
}
