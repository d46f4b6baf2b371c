package proxy

import (
	"crypto/tls"
	"errors"
	"fmt"
	"strings"
	"time"

	"github.com/rondo-go/rondo"
	"github.com/rondo-go/rondo/filter"
	"github.com/rondo-go/rondo/rtls"
)

// A Route says what happens to clients that want certain servers, by the name in their TLS
// handshakes (SNI).
type Route struct {
	// Names are the servers' names, such as "a.example". "*.example" stands for all names that
	// end with ".example". Of several that fit, the longest counts. Each Listener has a name
	// once.
	Names []string
	// Pool is the name of the pool that serves these clients. "": the only one.
	Pool string
	// TLS ends the clients' TLS, as a server with this configuration. nil: their bytes pass
	// as they are, and the target ends it.
	TLS *tls.Config
}

func (r *Route) check(pools, names map[string]bool) error {
	if len(r.Names) == 0 {
		return errors.New("a route has no names: want some, or Listener.Pool for all clients")
	}
	for _, given := range r.Names {
		name := canonical(given)
		if rest := strings.TrimPrefix(name, "*."); rest == "" || strings.ContainsFunc(rest, isNoName) || strings.Contains(rest, "*") {
			return fmt.Errorf("route %q: want a name, as in a.example, or *.example", given)
		}
		if names[name] {
			return fmt.Errorf("route %q: another one has this name", given)
		}
		names[name] = true
	}
	if err := checkTLS(r.TLS); err != nil {
		return fmt.Errorf("route %q: %w", r.Names[0], err)
	}
	if err := checkPool(r.Pool, pools); err != nil {
		return fmt.Errorf("route %q: %w", r.Names[0], err)
	}
	return nil
}

// checkTLS returns an error for a configuration that can serve nobody.
func checkTLS(c *tls.Config) error {
	if c != nil && len(c.Certificates) == 0 && c.GetCertificate == nil && c.GetConfigForClient == nil {
		return errors.New("TLS has no certificate: want Certificates, GetCertificate or GetConfigForClient")
	}
	return nil
}

func canonical(name string) string { return strings.ToLower(strings.TrimSuffix(name, ".")) }

// rules say what happens to a listener's clients. They do not change.
type rules struct {
	accept   rondo.FilterOpenFunc // of the PROXY header; nil: there is none
	names    map[string]*way      // of Routes, with "*." at the beginning of wildcards; nil: none
	fallback *way                 // of clients without such a name; nil: they are refused
	most     int                  // connections; 0: any number
	patience time.Duration        // for the beginning of a TLS handshake
}

// A way is a Route, or a Listener's rule for the rest.
type way struct {
	pool *pool
	tls  rondo.FilterOpenFunc // nil: not ended
}

func newRules(set *Listener, pools []*pool) *rules {
	r := &rules{most: set.MaxConns, patience: orDefault(set.HelloTimeout, DefaultHelloTimeout)}
	if set.AcceptProxy != nil {
		r.accept = acceptProxy(*set.AcceptProxy)
	}
	if set.Pool != "" || len(set.Routes) == 0 {
		r.fallback = newWay(set.Pool, set.TLS, pools)
	}
	for i := range set.Routes {
		route := &set.Routes[i]
		if r.names == nil {
			r.names = make(map[string]*way)
		}
		w := newWay(route.Pool, route.TLS, pools)
		for _, name := range route.Names {
			r.names[canonical(name)] = w
		}
	}
	return r
}

var errNotTrusted = errors.New("proxy: the peer may not send a PROXY header: Listener.AcceptProxy does not trust it")

// acceptProxy is a's Filter, but resets peers that a does not trust.
func acceptProxy(a filter.AcceptProxy) rondo.FilterOpenFunc {
	return func(c *rondo.Conn) rondo.Filter {
		f := a.Filter(c)
		if f == nil {
			c.Abort(errNotTrusted)
		}
		return f
	}
}

func newWay(name string, config *tls.Config, pools []*pool) *way {
	w := &way{pool: poolNamed(pools, name)}
	if w.pool == nil {
		w.pool = pools[0] // the only one
	}
	if config != nil {
		w.tls = rtls.Server(config)
	}
	return w
}

// find returns the way of clients that want a server; nil: there is none.
func (r *rules) find(name string) *way {
	if w := r.names[name]; w != nil && name != "" {
		return w
	}
	for rest := name; ; {
		_, after, more := strings.Cut(rest, ".")
		if !more {
			return r.fallback
		}
		rest = after
		if w := r.names["*."+rest]; w != nil {
			return w
		}
	}
}
