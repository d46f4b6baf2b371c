package rtls

import (
	"crypto/tls"
	"io"
	"runtime/debug"

	"github.com/rondo-go/rondo"
	"github.com/rondo-go/rondo/internal/sys"
)

// crypto/tls locks a mutex, one for the whole program, around each call of a KeyLogWriter,
// and leaves it locked if the call does not return: by a panic, or runtime.Goexit. All
// later handshakes that are logged would wait for ever, and their loops with them. So
// connections get copies of such configurations, with a KeyLogWriter that returns.

// keyLog is a KeyLogWriter that returns a panic as its error.
type keyLog struct{ io.Writer }

func (k keyLog) Write(p []byte) (n int, err error) {
	sys.Aside(func() {
		returned := false
		defer func() {
			if !returned {
				err = panicError(recover())
			}
		}()
		n, err = k.Writer.Write(p)
		returned = true
	})
	return n, err
}

// panicError returns the error for a callback that did not return. value is what recover
// returned; nil: the callback called runtime.Goexit.
func panicError(value any) *rondo.PanicError {
	if value == nil {
		value = errGoexit
	}
	return &rondo.PanicError{Value: value, Stack: debug.Stack()}
}

// safe returns config, or a copy whose KeyLogWriter always returns if config has one.
func safe(config *tls.Config) *tls.Config {
	if config.KeyLogWriter == nil {
		return config
	}
	config = config.Clone()
	config.KeyLogWriter = keyLog{config.KeyLogWriter}
	return config
}

// safeServer is safe for a server. Each connection gets a separate copy, with the session
// ticket keys that the program has set by then. If the program sets none, crypto/tls makes
// keys, which belong to the first copy.
func safeServer(config *tls.Config) *tls.Config {
	if config.KeyLogWriter == nil {
		return config
	}
	first := config.Clone()
	first.GetConfigForClient = func(hello *tls.ClientHelloInfo) (*tls.Config, error) {
		if config.GetConfigForClient != nil {
			switch chosen, err := config.GetConfigForClient(hello); {
			case err != nil:
				return nil, err
			case chosen != nil:
				return safe(chosen), nil
			}
		}
		return safe(config), nil
	}
	return first
}
