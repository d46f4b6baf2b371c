package rtls

import (
	"crypto/tls"
	"fmt"
	"os"
	"time"

	"github.com/rondo-go/rondo"
)

// DefaultHandshakeTimeout is the default of Options.HandshakeTimeout.
const DefaultHandshakeTimeout = 10 * time.Second

// ErrHandshakeTimeout is the error of a connection whose handshake took too long. It is
// an os.ErrDeadlineExceeded.
var ErrHandshakeTimeout error = timeoutError{}

type timeoutError struct{}

func (timeoutError) Error() string        { return "rtls: the handshake was not done in time" }
func (timeoutError) Timeout() bool        { return true }
func (timeoutError) Temporary() bool      { return true }
func (timeoutError) Is(target error) bool { return target == os.ErrDeadlineExceeded }

// Server returns a FilterOpenFunc that makes each connection a TLS server, with the
// default Options. config is as for tls.Server. It may be shared; do not change it
// afterwards. Server panics if config is nil, or can give no certificate: then no
// handshake would succeed.
//
// If config has a KeyLogWriter, connections use copies of config. A KeyLogWriter that only a
// configuration of GetConfigForClient has must not panic: crypto/tls would stay locked.
func Server(config *tls.Config) rondo.FilterOpenFunc { return new(Options).Server(config) }

// Client returns a FilterOpenFunc that makes each connection a TLS client, with the
// default Options. config is as for tls.Client: it has a ServerName, or
// InsecureSkipVerify. Client panics if config is nil.
func Client(config *tls.Config) rondo.FilterOpenFunc { return new(Options).Client(config) }

// Options are settings beyond those of crypto/tls. The zero Options are ready for use. Do
// not copy or change Options after the first use. They serve any number of connections on
// any loops.
type Options struct {
	// HandshakeTimeout is how long a handshake may take, counted from the filter's start.
	// 0: DefaultHandshakeTimeout. Negative: no limit.
	HandshakeTimeout time.Duration
	// OffLoop is how many handshakes may be computed at once on goroutines other than the
	// loops'. Handshakes that wait for their peers do not count. 0: all are computed on
	// the loops.
	//
	// Use it if callbacks block, or if other connections of the loops must not wait for
	// signatures. A handshake costs more with it, see docs/tls.md.
	OffLoop int

	workers workers
}

// Server is the function Server with o. It also panics if OffLoop is negative.
func (o *Options) Server(config *tls.Config) rondo.FilterOpenFunc {
	o.check("Server", config)
	if len(config.Certificates) == 0 && config.GetCertificate == nil && config.GetConfigForClient == nil {
		panic("rtls: Server: the config gives no certificate: want Certificates, GetCertificate or GetConfigForClient")
	}
	config = safeServer(config)
	return func(*rondo.Conn) rondo.Filter {
		f := &filter{options: o}
		f.tls = tls.Server((*transport)(f), config)
		return f
	}
}

// Client is the function Client with o. It also panics if OffLoop is negative.
func (o *Options) Client(config *tls.Config) rondo.FilterOpenFunc {
	o.check("Client", config)
	config = safe(config)
	return func(*rondo.Conn) rondo.Filter {
		f := &filter{options: o, client: true, renegotiates: config.Renegotiation != tls.RenegotiateNever}
		f.tls = tls.Client((*transport)(f), config)
		return f
	}
}

// check panics if a value is invalid. The handshakes would fail much later, with an
// unclear error.
func (o *Options) check(function string, config *tls.Config) {
	switch {
	case config == nil:
		panic("rtls: " + function + ": config is nil: want a *tls.Config")
	case o.OffLoop < 0:
		panic(fmt.Sprintf("rtls: Options.OffLoop is %d: want 0, for handshakes on the loops, or more", o.OffLoop))
	}
}

func (o *Options) timeout() time.Duration {
	if o.HandshakeTimeout == 0 {
		return DefaultHandshakeTimeout
	}
	return o.HandshakeTimeout
}

// ConnectionState returns the state of a connection's TLS: version, cipher suite, the
// peer's certificates, the negotiated protocol. ok is false for a connection without TLS,
// and during a handshake. Call it on the connection's loop only, up to Handler.Closed, as
// Conn's methods. Of several TLS filters it takes the one next to the Handler.
func ConnectionState(c *rondo.Conn) (state tls.ConnectionState, ok bool) {
	for f := range c.Filters() {
		if f, isTLS := f.(*filter); isTLS {
			if f.hand != nil || !f.done {
				return tls.ConnectionState{}, false
			}
			return f.tls.ConnectionState(), true
		}
	}
	return tls.ConnectionState{}, false
}
