package httpd_test

import (
	"bufio"
	"errors"
	"fmt"
	"io"
	"math/rand/v2"
	"net"
	"net/http"
	"os"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/rondo-go/rondo"
	"github.com/rondo-go/rondo/httpd"
	"github.com/rondo-go/rondo/internal/pick"
)

// A client that sends many requests and reads no answer makes no answers pile up; it gets
// all of them, whole, when it reads: also if it has ended its stream behind the requests.
func TestManyRequestsBeforeAnAnswerIsRead(t *testing.T) {
	const requests, size = 200, 200_000
	body := strings.Repeat("x", size)
	var served atomic.Int32
	answer := http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		served.Add(1)
		io.WriteString(w, body)
	})
	try := func(name, addr string, half bool) {
		served.Store(0)
		nc, err := net.Dial("tcp", addr)
		if err != nil {
			t.Fatal(err)
		}
		defer nc.Close()
		c := nc.(*net.TCPConn)
		c.SetDeadline(time.Now().Add(patience))
		go func() {
			io.WriteString(c, strings.Repeat("GET / HTTP/1.1\r\nHost: a\r\n\r\n", requests))
			if half {
				c.CloseWrite()
			}
		}()
		time.Sleep(50 * time.Millisecond)
		if n := served.Load(); n > 100 {
			t.Errorf("%s: %d answers of %d bytes were made for a client that reads none", name, n, size)
		}
		r := bufio.NewReader(c)
		for i := range requests {
			answer, err := http.ReadResponse(r, nil)
			if err != nil {
				t.Fatalf("%s, half-closed %t: answer %d: %v", name, half, i, err)
			}
			if n, err := io.Copy(io.Discard, answer.Body); n != size || err != nil {
				t.Fatalf("%s, half-closed %t: answer %d: %d bytes, %v", name, half, i, n, err)
			}
		}
	}
	for kind, h := range map[string]http.Handler{"goroutine": answer, "loop": httpd.OnLoop(answer)} {
		for _, backend := range pick.Available() {
			engine := rondo.Engine{Backend: backend}
			s := httpd.Server{HTTP: &http.Server{Handler: h}}
			ln, err := engine.Listen("tcp", "127.0.0.1:0", rondo.SocketOptions{}, s.Open)
			if err != nil {
				t.Fatal(err)
			}
			try(kind+" "+backend, ln.Addr().String(), false)
			try(kind+" "+backend, ln.Addr().String(), true)
			engine.Close()
		}
	}
}

// An answer on a loop that is larger than the output may be does not seem whole.
func TestLargeAnswerOnLoop(t *testing.T) {
	const size = 200 << 20
	piece := make([]byte, 1<<20)
	addr := serve(t, &http.Server{Handler: httpd.OnLoop(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		for range size / len(piece) {
			w.Write(piece)
		}
	}))})
	c, err := net.Dial("tcp", addr)
	if err != nil {
		t.Fatal(err)
	}
	defer c.Close()
	c.SetDeadline(time.Now().Add(patience))
	fmt.Fprint(c, "GET / HTTP/1.1\r\nHost: a\r\n\r\n")
	time.Sleep(300 * time.Millisecond)
	n := int64(0)
	answer, err := http.ReadResponse(bufio.NewReader(c), nil)
	if err == nil {
		n, err = io.Copy(io.Discard, answer.Body)
	}
	if err == nil && n != size || errors.Is(err, os.ErrDeadlineExceeded) {
		t.Errorf("%d bytes of %d, %v", n, size, err)
	}
}

// The rest of a body that did not fit in front of the handler comes when the handler has made
// room, also if it is doing that at this moment.
func TestBodiesNeverStall(t *testing.T) {
	const piece = 60_000 // two are more than what waits for a handler
	const size = 1 + 2*piece
	addr := serve(t, &http.Server{Handler: http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		n, err := io.CopyBuffer(struct{ io.Writer }{io.Discard}, r.Body, make([]byte, 16))
		fmt.Fprint(w, n, err)
	})})
	var all sync.WaitGroup
	for range 4 {
		all.Add(1)
		go func() {
			defer all.Done()
			c, err := net.Dial("tcp", addr)
			if err != nil {
				t.Error(err)
				return
			}
			defer c.Close()
			r := bufio.NewReader(c)
			head := fmt.Sprintf("POST / HTTP/1.1\r\nHost: a\r\nContent-Length: %d\r\n\r\nx", size)
			body := strings.Repeat("x", piece)
			for i, begin := 0, time.Now(); time.Since(begin) < 3*time.Second; i++ {
				c.SetDeadline(time.Now().Add(patience))
				for _, s := range []string{head, body, body} {
					io.WriteString(c, s)
					time.Sleep(time.Duration(rand.IntN(100)) * time.Microsecond)
				}
				answer, err := http.ReadResponse(r, nil)
				if err != nil {
					t.Errorf("request %d: %v", i, err)
					return
				}
				if got, err := io.ReadAll(answer.Body); err != nil || string(got) != fmt.Sprint(size, " <nil>") {
					t.Errorf("request %d: %q, %v", i, got, err)
					return
				}
			}
		}()
	}
	all.Wait()
}

// A handler that does not read its body hears of a client that has gone when it writes: its
// context ends.
func TestFailedWriteEndsContext(t *testing.T) {
	for _, backend := range pick.Available() {
		t.Run(backend, func(t *testing.T) {
			ended := make(chan error, 1)
			engine := rondo.Engine{Backend: backend}
			s := httpd.Server{HTTP: &http.Server{Handler: http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
				piece := make([]byte, 32<<10)
				http.NewResponseController(w).EnableFullDuplex()
				var err error
				for err == nil {
					_, err = w.Write(piece)
				}
				select {
				case <-r.Context().Done():
					ended <- nil
				case <-time.After(20 * time.Second):
					ended <- fmt.Errorf("the context has not ended behind %w", err)
				}
			})}}
			ln, err := engine.Listen("tcp", "127.0.0.1:0", rondo.SocketOptions{}, s.Open)
			if err != nil {
				t.Fatal(err)
			}
			defer engine.Close()
			c, err := net.Dial("tcp", ln.Addr().String())
			if err != nil {
				t.Fatal(err)
			}
			fmt.Fprint(c, "POST / HTTP/1.1\r\nHost: a\r\nContent-Length: 10000000\r\n\r\n")
			c.Write(make([]byte, 500_000))
			c.Read(make([]byte, 100)) // the handler is running
			c.(*net.TCPConn).SetLinger(0)
			c.Close()
			if err := <-ended; err != nil {
				t.Error(err)
			}
		})
	}
}

// What a handler writes in small pieces for a client that does not read waits in the handler, also
// while the loop has no time to take it.
func TestWriterWaitsForBusyLoop(t *testing.T) {
	const most, piece = 64 << 20, 8000
	var written atomic.Int64
	begun, goOn := make(chan bool), make(chan bool)
	engine := &rondo.Engine{NumLoops: 1}
	addr := onEngine(t, engine, &http.Server{Handler: http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		begun <- true
		<-goOn
		for written.Load() < most {
			if _, err := w.Write(make([]byte, piece)); err != nil {
				return
			}
			written.Add(piece)
		}
	})})
	c := dialed(t, addr)
	io.WriteString(c, "GET / HTTP/1.1\r\nHost: a\r\n\r\n")
	<-begun
	free := make(chan bool)
	for l := range engine.Loops() {
		l.Post(func() { <-free })
	}
	close(goOn)
	for before := int64(-1); written.Load() > before && before < most; time.Sleep(200 * time.Millisecond) {
		before = written.Load()
	}
	n := written.Load()
	close(free)
	if n > most/2 { // the system's buffers take some MB
		t.Errorf("%d bytes were written for a client that reads none", n)
	}
	got, err := http.ReadResponse(bufio.NewReader(c), nil)
	if err != nil {
		t.Fatal(err)
	}
	if n, err := io.Copy(io.Discard, got.Body); n < most || err != nil {
		t.Errorf("%d bytes, %v", n, err)
	}
}

// An engine with small limits for its output cuts no answer.
func TestSmallOutput(t *testing.T) {
	const size = 3 << 20
	h := http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		for _, piece := range []int{1 << 20, 10_000, 1 << 20, 20_000, 5000} {
			w.Write(make([]byte, piece))
		}
		w.Write(make([]byte, size-2<<20-35_000))
	})
	for name, h := range map[string]http.Handler{"goroutine": h, "loop": httpd.OnLoop(h)} {
		t.Run(name, func(t *testing.T) {
			addr := onEngine(t, &rondo.Engine{NumLoops: 1, MaxOutput: 40 << 10, HighWater: 20 << 10}, &http.Server{Handler: h})
			c := dialed(t, addr)
			io.WriteString(c, strings.Repeat("GET / HTTP/1.1\r\nHost: a\r\n\r\n", 10))
			time.Sleep(50 * time.Millisecond)
			r := bufio.NewReader(c)
			for i := range 10 {
				answer, err := http.ReadResponse(r, nil)
				if err != nil {
					t.Fatalf("answer %d: %v", i, err)
				}
				if n, err := io.Copy(io.Discard, answer.Body); n != size || err != nil {
					t.Fatalf("answer %d: %d bytes, %v", i, n, err)
				}
			}
		})
	}
}
