package rtls

import (
	"crypto/tls"
	"fmt"
	"os"
	"time"

	"github.com/rondo-go/rondo"
)

// DefaultHandshakeTimeout is Options.HandshakeTimeout's default.
const DefaultHandshakeTimeout = 10 * time.Second

// ErrHandshakeTimeout ends a connection whose handshake was not done in time. It
// is an os.ErrDeadlineExceeded.
var ErrHandshakeTimeout error = timeoutError{}

type timeoutError struct{}

func (timeoutError) Error() string        { return "rtls: the handshake was not done in time" }
func (timeoutError) Timeout() bool        { return true }
func (timeoutError) Temporary() bool      { return true }
func (timeoutError) Is(target error) bool { return target == os.ErrDeadlineExceeded }

// Server makes TLS servers of connections, with the default Options. config is as
// for tls.Server; it may be shared, and is not to be changed. Server panics if config is
// nil, or has nothing that could give a certificate: no handshake would succeed.
//
// If it has a KeyLogWriter, connections use copies of it. A KeyLogWriter that only a
// configuration of GetConfigForClient has must not panic: crypto/tls would stay locked.
func Server(config *tls.Config) rondo.FilterOpenFunc { return new(Options).Server(config) }

// Client makes TLS clients of connections, with the default Options. config is as
// for tls.Client: it has a ServerName, or InsecureSkipVerify. Client panics if config is
// nil.
func Client(config *tls.Config) rondo.FilterOpenFunc { return new(Options).Client(config) }

// Options are what crypto/tls does not decide. The zero Options are ready for use;
// they are not to be copied or changed after that, and may be used for any number
// of connections on any loops.
type Options struct {
	// HandshakeTimeout is how long a handshake may take, from when the filter
	// starts. 0: DefaultHandshakeTimeout. Negative: for ever.
	HandshakeTimeout time.Duration
	// OffLoop is how many handshakes may be computed at once on other goroutines
	// than the loops'. Those that only wait for their peers do not count. 0: all
	// are computed on the loops.
	//
	// It is for callbacks that block, and for loops whose other connections must
	// not wait for signatures; a handshake costs more with it, see docs/tls.md.
	OffLoop int

	workers workers
}

// Server is Server with o. It also panics if OffLoop is negative.
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

// Client is Client with o. It also panics if OffLoop is negative.
func (o *Options) Client(config *tls.Config) rondo.FilterOpenFunc {
	o.check("Client", config)
	config = safe(config)
	return func(*rondo.Conn) rondo.Filter {
		f := &filter{options: o, client: true, renegotiates: config.Renegotiation != tls.RenegotiateNever}
		f.tls = tls.Client((*transport)(f), config)
		return f
	}
}

// check panics if a value is meaningless. Handshakes, much later, would not tell why they
// fail.
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

// ConnectionState is what crypto/tls tells of a connection: version, cipher suite,
// the peer's certificates, the protocol agreed on. ok is false for one without TLS,
// and while a handshake is under way. Like Conn's methods it may be called on the
// connection's loop only, up to Handler.Closed. Of several TLS filters it is the
// one next to the Handler.
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
