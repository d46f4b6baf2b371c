package httpd_test

import (
	"bufio"
	"fmt"
	"io"
	"log"
	"net"
	"net/http"
	"strconv"
	"sync"
	"testing"

	"github.com/rondo-go/rondo/httpd"
)

// BenchmarkPlaintext has clients ask for a short text over connections that stay open, from
// servers here and from net/http's. The clients take most of the time.
func BenchmarkPlaintext(b *testing.B) {
	hello := http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		w.Header().Set("Content-Type", "text/plain")
		io.WriteString(w, "Hello, World!")
	})
	quiet := log.New(io.Discard, "", 0)
	for _, s := range []struct {
		name  string
		serve func(net.Listener) *http.Server
	}{
		{"goroutine", func(ln net.Listener) *http.Server {
			srv := &http.Server{Handler: hello, ErrorLog: quiet}
			go httpd.Serve(srv, ln)
			return srv
		}},
		{"loop", func(ln net.Listener) *http.Server {
			srv := &http.Server{Handler: httpd.OnLoop(hello), ErrorLog: quiet}
			go httpd.Serve(srv, ln)
			return srv
		}},
		{"nethttp", func(ln net.Listener) *http.Server {
			srv := &http.Server{Handler: hello, ErrorLog: quiet}
			go srv.Serve(ln)
			return srv
		}},
	} {
		for _, clients := range []int{2, 64} {
			b.Run(s.name+"/"+strconv.Itoa(clients), func(b *testing.B) {
				ln, err := net.Listen("tcp", "127.0.0.1:0")
				if err != nil {
					b.Fatal(err)
				}
				srv := s.serve(ln)
				defer srv.Close()
				b.ReportAllocs()
				b.ResetTimer()
				var wg sync.WaitGroup
				for i := range clients {
					wg.Add(1)
					go func() {
						defer wg.Done()
						ask(b, ln.Addr().String(), b.N/clients+min(i, 1))
					}()
				}
				wg.Wait()
			})
		}
	}
}

// ask asks n times.
func ask(b *testing.B, addr string, n int) {
	c, err := net.Dial("tcp", addr)
	if err != nil {
		b.Error(err)
		return
	}
	defer c.Close()
	r := bufio.NewReader(c)
	for range n {
		if _, err := io.WriteString(c, "GET /plaintext HTTP/1.1\r\nHost: a.example\r\n\r\n"); err != nil {
			b.Error(err)
			return
		}
		for {
			line, err := r.ReadSlice('\n')
			if err != nil {
				b.Error(err)
				return
			}
			if len(line) == 2 {
				break
			}
		}
		if _, err := r.Discard(len("Hello, World!")); err != nil {
			b.Error(err)
			return
		}
	}
}

// BenchmarkSmallReads is a handler that reads its body in pieces of 8 bytes.
func BenchmarkSmallReads(b *testing.B) {
	srv := &http.Server{Handler: http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		p := make([]byte, 8)
		n := 0
		for {
			k, err := r.Body.Read(p)
			n += k
			if err != nil {
				break
			}
		}
		fmt.Fprint(w, n)
	})}
	ln, _ := net.Listen("tcp", "127.0.0.1:0")
	go httpd.Serve(srv, ln)
	defer srv.Close()
	const size = 1 << 20
	b.SetBytes(size)
	for b.Loop() {
		r, err := http.Post("http://"+ln.Addr().String(), "a/b", io.LimitReader(zeros{}, size))
		if err != nil {
			b.Fatal(err)
		}
		io.Copy(io.Discard, r.Body)
		r.Body.Close()
	}
}
