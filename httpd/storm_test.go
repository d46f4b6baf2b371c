package httpd_test

import (
	"bufio"
	"bytes"
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"io"
	"log"
	"math/rand/v2"
	"net"
	"net/http"
	"os"
	"path/filepath"
	"runtime"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/rondo-go/rondo/httpd"
	"github.com/rondo-go/rondo/internal/testcert"
	"github.com/rondo-go/rondo/websocket"
)

// A storm is a server with handlers of all kinds, whose clients do anything, and which ends at any
// time. Nothing of it may be left.
type storm struct {
	t       *testing.T
	rng     *rand.Rand
	file    string
	running atomic.Int64
	secure  bool
	kind    int

	mu     sync.Mutex
	states map[net.Conn][]http.ConnState
}

func (s *storm) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	s.running.Add(1)
	defer s.running.Add(-1)
	rc := http.NewResponseController(w)
	switch r.URL.Path {
	case "/echo":
		io.Copy(w, r.Body)
	case "/duplex":
		rc.EnableFullDuplex()
		io.Copy(w, r.Body)
	case "/deaf":
		io.WriteString(w, "x")
	case "/panic":
		go io.Copy(io.Discard, r.Body)
		io.WriteString(w, strings.Repeat("x", 5000))
		panic(http.ErrAbortHandler)
	case "/exit":
		runtime.Goexit()
	case "/stream":
		for r.Context().Err() == nil {
			if _, err := w.Write(make([]byte, 20_000)); err != nil {
				return
			}
		}
	case "/wait":
		<-r.Context().Done()
	case "/file":
		http.ServeFile(w, r, s.file)
	case "/hijack":
		c, buf, err := rc.Hijack()
		if err != nil {
			return
		}
		go func() {
			defer c.Close()
			c.SetDeadline(time.Now().Add(100 * time.Millisecond))
			io.WriteString(c, "HTTP/1.1 101 Switching Protocols\r\n\r\n")
			io.Copy(c, buf)
		}()
	case "/late":
		rc.SetWriteDeadline(time.Now().Add(5 * time.Millisecond))
		rc.SetReadDeadline(time.Now().Add(5 * time.Millisecond))
		io.Copy(w, r.Body)
		w.Write(make([]byte, 1<<20))
	case "/ws":
		websocket.Upgrade(w, r, websocket.HandlerFunc((*websocket.Conn).WriteMessage))
	}
}

// note is for ConnState.
func (s *storm) note(c net.Conn, state http.ConnState) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.states[c] = append(s.states[c], state)
}

var stormPaths = []string{"/echo", "/duplex", "/deaf", "/panic", "/exit", "/stream", "/wait", "/file", "/hijack", "/late", "/ws", "/none"}

// client is one connection: requests in pieces, half an ear, and any end.
func (s *storm) client(addr string, secure bool, seed uint64) {
	rng := rand.New(rand.NewPCG(seed, 5))
	c, err := net.Dial("tcp", addr)
	if err != nil {
		return // the server has ended
	}
	defer c.Close()
	c.SetDeadline(time.Now().Add(time.Duration(1+rng.IntN(60)) * time.Millisecond))
	under := c.(*net.TCPConn)
	if rng.IntN(3) == 0 {
		under.SetLinger(0)
	}
	if secure {
		protocols := [][]string{nil, {"http/1.1"}, {"h2", "http/1.1"}}[rng.IntN(3)]
		c = tls.Client(c, &tls.Config{InsecureSkipVerify: true, NextProtos: protocols})
	}
	if rng.IntN(5) == 0 {
		io.WriteString(c, "PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n\x00\x00\x00\x04\x00\x00\x00\x00\x00"[:rng.IntN(34)])
	}
	var out bytes.Buffer
	for range 1 + rng.IntN(4) {
		size := rng.IntN(1 << rng.IntN(18))
		fmt.Fprintf(&out, "POST %s HTTP/1.1\r\nHost: a\r\nContent-Length: %d\r\n", stormPaths[rng.IntN(len(stormPaths))], size)
		if rng.IntN(5) == 0 {
			out.WriteString("Expect: 100-continue\r\n")
		}
		out.WriteString("\r\n")
		out.Write(make([]byte, size))
	}
	if rng.IntN(4) == 0 {
		out.Reset()
		out.WriteString("GET /ws HTTP/1.1\r\nHost: a\r\nUpgrade: websocket\r\nConnection: Upgrade\r\nSec-WebSocket-Version: 13\r\n" +
			"Sec-WebSocket-Key: dGhlIHNhbXBsZSBub25jZQ==\r\n\r\n\x81\x80abcd")
	}
	own := rand.New(rand.NewPCG(seed, 7))
	go func() {
		for p := out.Bytes()[:out.Len()-own.IntN(2)*own.IntN(out.Len())]; len(p) > 0; {
			k := min(len(p), 1+own.IntN(1<<own.IntN(17)))
			if _, err := c.Write(p[:k]); err != nil {
				return
			}
			p = p[k:]
		}
	}()
	io.CopyN(io.Discard, bufio.NewReaderSize(c, 1<<(4+rng.IntN(12))), int64(rng.IntN(1<<rng.IntN(20))))
}

// play is one server from its beginning to its end.
func (s *storm) play(seed uint64, config *tls.Config) {
	s.rng = rand.New(rand.NewPCG(seed, 6))
	s.states = make(map[net.Conn][]http.ConnState)
	ln, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		s.t.Fatal(err)
	}
	srv := &http.Server{Handler: s, ErrorLog: log.New(io.Discard, "", 0), ConnState: s.note, TLSConfig: config, Protocols: new(http.Protocols)}
	srv.Protocols.SetHTTP1(true)
	srv.Protocols.SetHTTP2(true)
	srv.Protocols.SetUnencryptedHTTP2(s.rng.IntN(2) == 0)
	if s.rng.IntN(2) == 0 {
		srv.WriteTimeout, srv.ReadTimeout, srv.IdleTimeout = 30*time.Millisecond, 20*time.Millisecond, 10*time.Millisecond
	}
	secure, kind := s.rng.IntN(2) == 0, s.rng.IntN(3)
	s.secure, s.kind = secure, kind
	if kind == 0 {
		srv.ConnState = nil
	}
	ended := make(chan error, 1)
	go func() {
		switch {
		case secure && kind == 1:
			ended <- httpd.Serve(srv, tls.NewListener(ln, config))
		case secure:
			ended <- httpd.ServeTLS(srv, ln, "", "")
		default:
			ended <- httpd.Serve(srv, ln)
		}
	}()
	var clients sync.WaitGroup
	for i := range uint64(30) {
		clients.Add(1)
		pause := time.Duration(s.rng.IntN(40)) * time.Millisecond
		go func() {
			defer clients.Done()
			time.Sleep(pause)
			s.client(ln.Addr().String(), secure, seed*100+i)
		}()
	}
	time.Sleep(time.Duration(s.rng.IntN(60)) * time.Millisecond)
	if s.rng.IntN(2) == 0 {
		ctx, cancel := context.WithTimeout(context.Background(), time.Duration(s.rng.IntN(30))*time.Millisecond)
		srv.Shutdown(ctx)
		cancel()
	}
	srv.Close()
	if err := <-ended; !errors.Is(err, http.ErrServerClosed) {
		s.t.Errorf("seed %d: Serve: %v", seed, err)
	}
	clients.Wait()
	eventually(s.t, fmt.Sprintf("seed %d: the handlers end", seed), func() bool { return s.running.Load() == 0 })
	s.check(seed)
}

// check wants the states of each connection in their order, to the end.
func (s *storm) check(seed uint64) {
	wrong := ""
	whole := func() bool {
		s.mu.Lock()
		defer s.mu.Unlock()
		for _, all := range s.states {
			wrong = fmt.Sprintf("%v (kind %d secure %t)", all, s.kind, s.secure)
			for i, state := range all {
				last := i == len(all)-1
				if i == 0 != (state == http.StateNew) || (state == http.StateClosed || state == http.StateHijacked) != last ||
					state == http.StateIdle && all[i-1] != http.StateActive {
					return false
				}
			}
		}
		return true
	}
	for until := time.Now().Add(patience); !whole(); time.Sleep(10 * time.Millisecond) {
		if time.Now().After(until) {
			s.t.Errorf("seed %d: the states of a connection are %s", seed, wrong)
			return
		}
	}
}

// Whatever clients do, and whenever the server ends, no handler, goroutine or descriptor is left.
func TestStorm(t *testing.T) {
	s := &storm{t: t, file: filepath.Join(t.TempDir(), "file")}
	if err := os.WriteFile(s.file, make([]byte, 3<<20), 0o600); err != nil {
		t.Fatal(err)
	}
	config := &tls.Config{Certificates: []tls.Certificate{testcert.New("test").Issue(testcert.ECDSA, "localhost")}}
	s.play(0, config)
	goroutines, descriptors := runtime.NumGoroutine(), countDescriptors()
	for seed := range uint64(max(5, *scripts/30)) {
		s.play(seed+1, config)
	}
	for until := time.Now().Add(patience); ; time.Sleep(50 * time.Millisecond) {
		runtime.GC() // package net keeps pipes of io.Copy until then
		g, d := runtime.NumGoroutine(), countDescriptors()
		if g <= goroutines && d <= descriptors+2 { // package netconn's race detector opens one
			break
		}
		if time.Now().After(until) {
			all := make([]byte, 1<<20)
			t.Fatalf("%d goroutines, before %d; %d descriptors, before %d\n%s", g, goroutines, d, descriptors, all[:runtime.Stack(all, true)])
		}
	}
}

// countDescriptors returns 0 where the system does not list them.
func countDescriptors() int {
	all, _ := os.ReadDir("/proc/self/fd")
	return len(all)
}
