package httpd

import (
	"bufio"
	"crypto/tls"
	"fmt"
	"io"
	"net"
	"net/http"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/rondo-go/rondo"
	"github.com/rondo-go/rondo/internal/handover"
	"github.com/rondo-go/rondo/internal/pick"
	"github.com/rondo-go/rondo/internal/testcert"
	"github.com/rondo-go/rondo/netconn"
	"github.com/rondo-go/rondo/rtls"
)

// These tests are about Hijack and HandOver beside calls of goroutines, and about those that fail.

// A Write, or a file, that waits for the loop when the connection is taken fails. The client gets no
// byte of it, only what the connection's new owner writes.
func TestWriteBesideHijack(t *testing.T) {
	const size = 40 << 10
	name := filepath.Join(t.TempDir(), "file")
	if err := os.WriteFile(name, make([]byte, size), 0o600); err != nil {
		t.Fatal(err)
	}
	write := func(w http.ResponseWriter, file bool) error {
		if !file {
			_, err := w.Write(make([]byte, size))
			return err
		}
		f, err := os.Open(name)
		if err == nil {
			_, err = io.Copy(w, f)
			f.Close()
		}
		return err
	}
	written := make(chan error, 1)
	h := http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		x := w.(*exchange)
		w.Header().Set("Content-Length", fmt.Sprint(size))
		release := occupy(x)
		found := make(chan hijackedConn, 1)
		x.ref.Do(func(c *rondo.Conn) {
			if strings.HasPrefix(r.URL.Path, "/handover") {
				x.give(c, func(c *rondo.Conn) { found <- hijackedConn{conn: netconn.New(c)} })
			} else {
				x.leave(c, found)
			}
		})
		failed := make(chan error, 1)
		go func() { failed <- write(w, strings.HasSuffix(r.URL.Path, "/file")) }()
		for !locked(x, func() bool { return len(x.big) > 0 || x.file != nil }) {
			time.Sleep(time.Millisecond)
		}
		release()
		written <- <-failed // while the connection is open
		hijacked := <-found
		io.WriteString(hijacked.conn, "hijacked")
		hijacked.conn.Close()
	})
	try := func(t *testing.T, c net.Conn, path string) {
		defer c.Close()
		c.SetDeadline(time.Now().Add(2 * time.Minute))
		fmt.Fprintf(c, "GET %s HTTP/1.1\r\nHost: a\r\n\r\n", path)
		got, err := io.ReadAll(c)
		if string(got) != "hijacked" {
			t.Errorf("the client got %d bytes, %.50q, %v", len(got), got, err)
		}
		if err := <-written; err != http.ErrHijacked {
			t.Errorf("the Write said %v", err)
		}
	}
	for _, backend := range pick.Available() {
		addr, end := leftServer(t, backend, 0, h)
		tlsAddr, config, endTLS := leftTLS(t, backend, 0, h)
		for _, path := range []string{"/hijack/write", "/hijack/file", "/handover/write", "/handover/file"} {
			t.Run(backend+path, func(t *testing.T) {
				c, err := net.Dial("tcp", addr)
				if err != nil {
					t.Fatal(err)
				}
				try(t, c, path)
			})
			t.Run(backend+" TLS"+path, func(t *testing.T) {
				c, err := tls.Dial("tcp", tlsAddr, config)
				if err != nil {
					t.Fatal(err)
				}
				try(t, c, path)
			})
		}
		end()
		endTLS()
	}
}

func leftTLS(t *testing.T, backend string, limit time.Duration, h http.Handler) (addr string, client *tls.Config, end func()) {
	authority := testcert.New("test")
	config := &tls.Config{Certificates: []tls.Certificate{authority.Issue(testcert.ECDSA, "localhost")}, NextProtos: []string{"http/1.1"}}
	engine := &rondo.Engine{Backend: backend, NumLoops: 1}
	s := &Server{HTTP: &http.Server{Handler: h, WriteTimeout: limit}}
	ln, err := engine.Listen("tcp", "127.0.0.1:0", rondo.SocketOptions{}, rondo.Filtered(s.Open, rtls.Server(config)))
	if err != nil {
		t.Fatal(err)
	}
	return ln.Addr().String(), &tls.Config{RootCAs: authority.Pool(), ServerName: "localhost"}, func() { engine.Close() }
}

// Hijack waits for a file that another goroutine sends.
func TestFileBesideHijack(t *testing.T) {
	const size = 16 << 20
	name := filepath.Join(t.TempDir(), "file")
	if err := os.WriteFile(name, make([]byte, size), 0o600); err != nil {
		t.Fatal(err)
	}
	ended, begun := make(chan error, 2), make(chan bool, 1)
	h := http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		w.Header().Set("Content-Length", fmt.Sprint(size))
		x := w.(*exchange)
		go func() {
			f, err := os.Open(name)
			if err == nil {
				_, err = io.Copy(w, f)
				f.Close()
			}
			if err == http.ErrHijacked {
				err = nil
			}
			ended <- err
		}()
		for !locked(x, func() bool { return x.file != nil && x.file.begun }) {
			time.Sleep(time.Millisecond)
		}
		begun <- true
		c, _, err := x.Hijack()
		if err == nil {
			io.WriteString(c, "hijacked")
			c.Close()
		}
		ended <- err
	})
	for _, backend := range pick.Available() {
		t.Run(backend, func(t *testing.T) {
			addr, end := leftServer(t, backend, 0, h)
			defer end()
			c := dialLeft(t, addr, "GET", "/")
			<-begun
			time.Sleep(10 * time.Millisecond) // as a rule Hijack waits now
			r := bufio.NewReader(c)
			if body, err := readAnswer(r); len(body) != size || err != nil {
				t.Errorf("the file has %d bytes, %v", len(body), err)
			}
			if got, err := io.ReadAll(r); string(got) != "hijacked" {
				t.Errorf("behind the file the client got %q, %v", got, err)
			}
			for range 2 {
				if err := <-ended; err != nil {
					t.Error(err)
				}
			}
		})
	}
}

// A Hijack that waits for a client that does not read fails when the client goes, and when WriteTimeout
// is over. Then the body and the context end too, and calls that others have begun.
func TestFailedHijack(t *testing.T) {
	left, ended := make(chan *exchange, 1), make(chan error, 1)
	h := http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		x := w.(*exchange)
		x.ref.Do(func(c *rondo.Conn) { // more than the system takes
			l := c.Limits()
			l.MaxOutput = 16 << 20
			c.SetLimits(l)
			c.Write(make([]byte, 8<<20))
		})
		begin, written := make(chan bool, 1), make(chan error, 1)
		if err := x.enter(); err != nil {
			t.Error(err)
		}
		go func() {
			<-begin
			_, err := x.write(make([]byte, 8<<10)) // reads the body first
			x.exit()
			written <- err
		}()
		left <- x
		_, _, err := x.Hijack()
		begin <- true
		if r.URL.Path == "/limit" {
			<-written
			ended <- err
			return
		}
		if _, err := io.Copy(io.Discard, r.Body); err == nil {
			t.Error("the body has ended without an error")
		}
		<-r.Context().Done()
		if err := <-written; err != http.ErrHijacked {
			t.Errorf("the Write said %v", err)
		}
		ended <- err
	})
	for _, backend := range pick.Available() {
		for path, limit := range map[string]time.Duration{"/limit": time.Second, "/reset": time.Hour} {
			t.Run(backend+path, func(t *testing.T) {
				addr, end := leftServer(t, backend, limit, h)
				defer end()
				c, err := net.Dial("tcp", addr)
				if err != nil {
					t.Fatal(err)
				}
				defer c.Close()
				fmt.Fprintf(c, "POST %s HTTP/1.1\r\nHost: a\r\nContent-Length: 100\r\n\r\nshort", path)
				x := <-left
				if path == "/reset" {
					for !x.hijacked.Load() {
						time.Sleep(time.Millisecond)
					}
					c.(*net.TCPConn).SetLinger(0)
					c.Close()
				}
				select {
				case err := <-ended:
					if err == nil { // which one depends on how far Hijack has come
						t.Error("Hijack did not fail")
					}
				case <-time.After(time.Minute):
					t.Fatal("Hijack, or what follows it, hangs")
				}
			})
		}
	}
}

// WriteTimeout does not limit the new owner of a connection.
func TestHijackOutlivesWriteTimeout(t *testing.T) {
	const limit = 250 * time.Millisecond
	much := make([]byte, 8<<20)
	h := http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.URL.Path == "/handover" {
			w.(*exchange).HandOver(handover.Key{}, func(c *rondo.Conn) {
				nc := netconn.New(c)
				go func() {
					nc.Write(much)
					nc.Close()
				}()
			})
			return
		}
		c, _, err := w.(http.Hijacker).Hijack()
		if err != nil {
			t.Error(err)
			return
		}
		c.Write(much)
		c.Close()
	})
	for _, backend := range pick.Available() {
		addr, config, end := leftTLS(t, backend, limit, h)
		for _, path := range []string{"/hijack", "/handover"} {
			t.Run(backend+path, func(t *testing.T) {
				c, err := tls.Dial("tcp", addr, config)
				if err != nil {
					t.Fatal(err)
				}
				defer c.Close()
				c.SetDeadline(time.Now().Add(2 * time.Minute))
				fmt.Fprintf(c, "GET %s HTTP/1.1\r\nHost: a\r\n\r\n", path)
				time.Sleep(2 * limit)
				if got, err := io.ReadAll(c); len(got) != len(much) || err != nil {
					t.Errorf("the client got %d bytes, %v", len(got), err)
				}
			})
		}
		end()
	}
}

// A Hijack that a goroutine has begun before the handler's end gets the connection, and the client gets
// no other answer.
func TestHijackLeftBehind(t *testing.T) {
	h := http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		x := w.(*exchange)
		release := occupy(x)
		go func() {
			c, _, err := x.Hijack()
			if err != nil {
				t.Error(err)
				x.ref.Close()
				return
			}
			io.WriteString(c, "hijacked")
			c.Close()
		}()
		for x.calls.Load() == 0 {
			time.Sleep(time.Millisecond)
		}
		go func() {
			for x.calls.Load() < returned {
				time.Sleep(time.Millisecond)
			}
			release()
		}()
		if r.Method == "POST" {
			panic(http.ErrAbortHandler)
		}
	})
	for _, backend := range pick.Available() {
		addr, end := leftServer(t, backend, 0, h)
		for _, method := range []string{"GET", "POST"} {
			t.Run(backend+" "+method, func(t *testing.T) {
				if got, err := io.ReadAll(dialLeft(t, addr, method, "/")); string(got) != "hijacked" {
					t.Errorf("the client got %q, %v", got, err)
				}
			})
		}
		end()
	}
}

// When the handler has returned, or panicked, the connection cannot be taken any more.
func TestLateHijack(t *testing.T) {
	left := make(chan *exchange, 1)
	h := http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		left <- w.(*exchange)
		if r.Method == "POST" {
			panic(http.ErrAbortHandler)
		}
	})
	for _, backend := range pick.Available() {
		addr, end := leftServer(t, backend, 0, h)
		for _, method := range []string{"GET", "POST"} {
			t.Run(backend+" "+method, func(t *testing.T) {
				c, err := net.Dial("tcp", addr)
				if err != nil {
					t.Fatal(err)
				}
				defer c.Close()
				fmt.Fprintf(c, "%s / HTTP/1.1\r\nHost: a\r\nContent-Length: 0\r\n\r\n", method)
				x := <-left
				for x.calls.Load() < returned {
					time.Sleep(time.Millisecond)
				}
				if err := x.HandOver(handover.Key{}, nil); err != errLate {
					t.Errorf("HandOver said %v", err)
				}
				func() {
					defer func() {
						if recover() == nil {
							t.Error("Hijack did not panic")
						}
					}()
					x.Hijack()
				}()
			})
		}
		end()
	}
}

// Two goroutines that hijack a connection do not both get it.
func TestHijackTwice(t *testing.T) {
	errs := make(chan []error, 1)
	h := http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		x := w.(*exchange)
		release := occupy(x)
		results := make(chan error, 2)
		for range 2 {
			go func() {
				c, _, err := x.Hijack()
				if err == nil {
					io.WriteString(c, "hijacked")
					defer c.Close()
				}
				results <- err
			}()
		}
		for x.calls.Load() < 2 {
			time.Sleep(time.Millisecond)
		}
		release()
		errs <- []error{<-results, <-results}
	})
	for _, backend := range pick.Available() {
		addr, end := leftServer(t, backend, 0, h)
		tlsAddr, config, endTLS := leftTLS(t, backend, 0, h)
		for _, name := range []string{"plain", "TLS"} {
			t.Run(backend+" "+name, func(t *testing.T) {
				c, err := net.Dial("tcp", addr)
				if name == "TLS" {
					c, err = tls.Dial("tcp", tlsAddr, config)
				}
				if err != nil {
					t.Fatal(err)
				}
				defer c.Close()
				c.SetDeadline(time.Now().Add(2 * time.Minute))
				fmt.Fprintf(c, "GET / HTTP/1.1\r\nHost: a\r\n\r\n")
				if got, err := io.ReadAll(c); string(got) != "hijacked" {
					t.Errorf("the client got %q, %v", got, err)
				}
				if got := <-errs; !slices.Contains(got, nil) || !slices.Contains(got, http.ErrHijacked) {
					t.Errorf("they said %v", got)
				}
			})
		}
		end()
		endTLS()
	}
}

// Status 101 is the answer: a Read of the body does not send status 100 behind it.
func TestSwitchingProtocolsBesideContinue(t *testing.T) {
	h := http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		w.WriteHeader(http.StatusSwitchingProtocols)
		w.(http.Flusher).Flush()
		io.ReadFull(r.Body, make([]byte, 5))
	})
	for _, backend := range pick.Available() {
		t.Run(backend, func(t *testing.T) {
			addr, end := leftServer(t, backend, 0, h)
			defer end()
			c, err := net.Dial("tcp", addr)
			if err != nil {
				t.Fatal(err)
			}
			defer c.Close()
			c.SetDeadline(time.Now().Add(2 * time.Minute))
			fmt.Fprintf(c, "POST / HTTP/1.1\r\nHost: a\r\nConnection: close\r\nExpect: 100-continue\r\nContent-Length: 5\r\n\r\n")
			r := bufio.NewReader(c)
			if a, err := http.ReadResponse(r, nil); err != nil || a.StatusCode != http.StatusSwitchingProtocols {
				t.Fatalf("the answer is %v, %v", a, err)
			}
			io.WriteString(c, "hello")
			if got, err := io.ReadAll(r); len(got) > 0 || err != nil {
				t.Errorf("behind the answer the client got %q, %v", got, err)
			}
		})
	}
}
