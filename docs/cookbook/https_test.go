package cookbook_test

import (
	"bufio"
	"crypto/tls"
	"fmt"
	"io"
	"net"
	"net/http"
	"time"

	"github.com/rondo-go/rondo"
	"github.com/rondo-go/rondo/coro"
	"github.com/rondo-go/rondo/rtls"
)

func openHTTPS(config *tls.Config) rondo.OpenFunc {
	return rondo.Filtered(coro.Handler(serveHTTP), rtls.Server(config))
}

const (
	maxHeader = 16 << 10
	maxBody   = 1 << 20
)

// serveHTTP serves a connection's requests. ReadRequest reads as much as it is given:
// limited bounds it.
func serveHTTP(co *coro.Co, c net.Conn) error {
	limited := &io.LimitedReader{R: c}
	in := bufio.NewReader(limited)
	for {
		c.SetReadDeadline(co.Loop().Now().Add(30 * time.Second))
		limited.N = maxHeader
		request, err := http.ReadRequest(in)
		if err != nil {
			return refuse(c, limited, "431 Request Header Fields Too Large", err)
		}
		limited.N = maxBody
		body, err := io.ReadAll(request.Body)
		if err != nil {
			return refuse(c, limited, "413 Content Too Large", err)
		}
		answer := fmt.Sprintf("%s: %d bytes\n", request.URL.Path, len(body))
		fmt.Fprintf(c, "HTTP/1.1 200 OK\r\nContent-Length: %d\r\n\r\n%s", len(answer), answer)
		if request.Close {
			return nil
		}
	}
}

// refuse answers with status if a request was too long, and returns what closes the
// connection.
func refuse(c net.Conn, limited *io.LimitedReader, status string, err error) error {
	switch {
	case limited.N <= 0:
		fmt.Fprintf(c, "HTTP/1.1 %s\r\nConnection: close\r\nContent-Length: 0\r\n\r\n", status)
		return nil
	case err == io.EOF: // between two requests
		return nil
	}
	return err
}
