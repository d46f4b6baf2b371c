package cookbook_test

import (
	"bytes"
	"crypto/tls"
	"fmt"

	"github.com/rondo-go/rondo"
	"github.com/rondo-go/rondo/rtls"
)

// openChoice serves a protocol whose first line chooses another one.
func openChoice(config *tls.Config) rondo.OpenFunc {
	echo := rondo.HandlerFunc((*rondo.Conn).Write)
	return func(*rondo.Conn) rondo.Handler {
		return rondo.HandlerFunc(func(c *rondo.Conn, in []byte) (int, error) {
			end := bytes.IndexByte(in, '\n')
			if end < 0 {
				return 0, nil
			}
			switch line := string(in[:end]); line {
			case "ECHO":
				c.SetHandler(echo)
			case "STARTTLS":
				fmt.Fprintln(c, "go ahead") // in plain text still
				c.Use(func(*rondo.Conn) rondo.Handler { return echo }, rtls.Server(config))
			default:
				return 0, fmt.Errorf("protocol %q is unknown", line)
			}
			return end + 1, nil // the rest is for the new handler, or for TLS
		})
	}
}
