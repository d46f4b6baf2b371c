package httpd_test

import (
	"errors"
	"io"
	"log"
	"net"
	"net/http"
	"testing"
	"time"

	"github.com/rondo-go/rondo"
	"github.com/rondo-go/rondo/httpd"
)

// aborter is a Filter that ends the connection in the middle of its output, as TLS does when the
// system reports in a write that the client has gone.
type aborter struct {
	rondo.PassThrough
	left int // bytes until then
}

func (a *aborter) Outbound(s *rondo.FilterPort, p []byte) error {
	if a.left -= len(p); a.left < 0 {
		s.Conn().Abort(errors.New("the client has gone"))
		return nil
	}
	return a.PassThrough.Outbound(s, p)
}

// TestEndInAWrite: a connection that ends while the loop writes a part of an answer blocks neither
// the loop nor the handler.
func TestEndInAWrite(t *testing.T) {
	for _, size := range []int{100, 5_000, 100_000} {
		e := &rondo.Engine{NumLoops: 1}
		returned := make(chan error, 1)
		s := &httpd.Server{HTTP: &http.Server{ErrorLog: log.New(io.Discard, "", 0),
			Handler: http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
				for {
					if _, err := w.Write(make([]byte, size)); err != nil {
						returned <- err
						return
					}
				}
			})}}
		ln, err := e.Listen("tcp", "127.0.0.1:0", rondo.SocketOptions{}, rondo.Filtered(s.Open, func(*rondo.Conn) rondo.Filter {
			return &aborter{left: 1 << 20}
		}))
		if err != nil {
			t.Fatal(err)
		}
		c, err := net.Dial("tcp", ln.Addr().String())
		if err != nil {
			t.Fatal(err)
		}
		c.SetDeadline(time.Now().Add(patience))
		io.WriteString(c, "GET / HTTP/1.1\r\nHost: x\r\n\r\n")
		io.Copy(io.Discard, c)
		c.Close()
		for l := range e.Loops() {
			runs := make(chan bool)
			l.Post(func() { close(runs) })
			select {
			case <-runs:
			case <-time.After(20 * time.Second):
				t.Fatalf("writes of %d bytes: the loop is blocked", size)
			}
		}
		select {
		case <-returned:
		case <-time.After(20 * time.Second):
			t.Fatalf("writes of %d bytes: the handler is blocked", size)
		}
		e.Close()
	}
}
