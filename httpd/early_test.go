package httpd_test

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"runtime"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/rondo-go/rondo/httpd"
)

// An answer to a request whose body is longer than a server reads for nothing does not wait for
// the body.
func TestEarlyAnswer(t *testing.T) {
	both(t, func(w http.ResponseWriter, r *http.Request) {
		if r.URL.Path == "/some" {
			io.ReadFull(r.Body, make([]byte, 3))
		}
		http.Error(w, "too large", http.StatusRequestEntityTooLarge)
	}, func(t *testing.T, addr string) {
		for _, path := range []string{"/none", "/some"} {
			c := dialed(t, addr)
			fmt.Fprintf(c, "POST %s HTTP/1.1\r\nHost: a\r\nContent-Length: 300000\r\n\r\nbegin", path)
			answer, err := http.ReadResponse(bufio.NewReader(c), nil)
			if err != nil || answer.StatusCode != 413 || !answer.Close {
				t.Errorf("%s: %v, %v", path, answer, err)
			}
		}
	})
}

// Status 100 and an answer do not mix when one goroutine reads the body while another one answers,
// as in a proxy. (net/http's race if the answer is of status 103.)
func TestContinueBesideAnswer(t *testing.T) {
	addr := serve(t, &http.Server{Handler: http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		var reader sync.WaitGroup
		reader.Add(1)
		go func() {
			defer reader.Done()
			io.Copy(io.Discard, r.Body)
		}()
		for range 3 {
			w.WriteHeader(103)
		}
		io.WriteString(w, "answer")
		reader.Wait()
	})})
	for range 100 {
		got := raw(t, addr, "POST / HTTP/1.1\r\nHost: a\r\nContent-Length: 5\r\nExpect: 100-continue\r\nConnection: close\r\n\r\nhello")
		rest := strings.Replace(got, "HTTP/1.1 100 Continue\r\n\r\n", "", 1)
		for range 3 {
			rest = strings.TrimPrefix(rest, "HTTP/1.1 103 Early Hints\r\n\r\n")
		}
		if !strings.HasPrefix(rest, "HTTP/1.1 200 OK\r\n") || !strings.HasSuffix(rest, "answer") {
			t.Fatalf("%q", got)
		}
	}
}

// A handler that goes on writing to a client that has gone, and looks at no error, takes no
// memory for what it writes.
func TestWritesBehindTheEnd(t *testing.T) {
	const pieces, size = 100_000, 1000
	grown := make(chan int, 1)
	both(t, func(w http.ResponseWriter, r *http.Request) {
		<-r.Context().Done()
		before := memory()
		failed := false
		for range pieces {
			_, err := w.Write(make([]byte, size))
			failed = failed || err != nil
		}
		after := memory()
		runtime.KeepAlive(w)
		if !failed {
			after = before + 1<<30
		}
		grown <- after - before
	}, func(t *testing.T, addr string) {
		if strings.HasSuffix(t.Name(), "/loop") {
			return // the handler must not wait there
		}
		c := dialed(t, addr)
		io.WriteString(c, "GET / HTTP/1.1\r\nHost: a\r\n\r\n")
		time.Sleep(20 * time.Millisecond)
		c.(*net.TCPConn).SetLinger(0)
		c.Close()
		if n := <-grown; n > pieces*size/2 {
			t.Errorf("%d bytes were written behind the end, and the memory has grown by %d", pieces*size, n)
		}
	})
}

// A flaky listener fails now and then, as one does that has no descriptors, and recovers.
type flaky struct {
	net.Listener
	fails int
}

func (f *flaky) Accept() (net.Conn, error) {
	if f.fails > 0 {
		f.fails--
		return nil, &net.OpError{Op: "accept", Net: "tcp", Err: errTemporary{}}
	}
	return f.Listener.Accept()
}

type errTemporary struct{}

func (errTemporary) Error() string   { return "for a moment" }
func (errTemporary) Timeout() bool   { return false }
func (errTemporary) Temporary() bool { return true }

// A server goes on when its listener fails for a moment.
func TestTemporaryErrors(t *testing.T) {
	ln, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	srv := &http.Server{Handler: http.HandlerFunc(path)}
	ended := make(chan error, 1)
	go func() { ended <- httpd.Serve(srv, &flaky{ln, 3}) }()
	if got := raw(t, ln.Addr().String(), get); !strings.HasSuffix(got, "/") {
		t.Errorf("%q", got)
	}
	srv.Shutdown(context.Background())
	if err := <-ended; !errors.Is(err, http.ErrServerClosed) {
		t.Error(err)
	}
}

// The trailer section of a body changes the Request in the Read that returns io.EOF, and not
// while the handler looks at the Request.
func TestTrailerComesWithEOF(t *testing.T) {
	both(t, func(w http.ResponseWriter, r *http.Request) {
		io.ReadFull(r.Body, make([]byte, 1))
		for range 40 {
			if n := len(r.WithContext(r.Context()).Trailer["A"]) + len(r.Clone(r.Context()).Trailer["B"]); n > 0 {
				t.Error("there is a trailer before the end of the body")
				break
			}
			if r.URL.Path == "/wait" {
				time.Sleep(100 * time.Microsecond)
			}
		}
		_, err := io.ReadAll(r.Body)
		fmt.Fprint(w, err, r.Trailer)
	}, func(t *testing.T, addr string) {
		for _, announced := range []string{"", "Trailer: A\r\n"} {
			for range 5 {
				c := dialed(t, addr)
				at := "/wait"
				if strings.HasSuffix(t.Name(), "/loop") {
					at = "/"
				}
				fmt.Fprintf(c, "POST %s HTTP/1.1\r\nHost: a\r\nConnection: close\r\nTransfer-Encoding: chunked\r\n%s\r\n", at, announced)
				io.WriteString(c, "5\r\nhello\r\n")
				time.Sleep(time.Millisecond)
				io.WriteString(c, "0\r\nA: 1\r\nB: 2\r\n\r\n")
				got, err := io.ReadAll(c)
				if !strings.HasSuffix(string(got), "<nil> map[A:[1] B:[2]]") || err != nil {
					t.Errorf("%q, %v", got, err)
				}
			}
		}
	})
}

// A goroutine that reads the body is not left behind when the handler panics.
func TestPanicEndsBody(t *testing.T) {
	ended := make(chan error, 1)
	both(t, func(w http.ResponseWriter, r *http.Request) {
		go func() {
			_, err := io.ReadAll(r.Body)
			ended <- err
		}()
		time.Sleep(10 * time.Millisecond)
		panic(http.ErrAbortHandler)
	}, func(t *testing.T, addr string) {
		if strings.HasSuffix(t.Name(), "/loop") {
			return // there is one goroutine
		}
		c := dialed(t, addr)
		io.WriteString(c, "POST / HTTP/1.1\r\nHost: a\r\nContent-Length: 5\r\n\r\nab")
		select {
		case err := <-ended:
			if err == nil {
				t.Error("no error")
			}
		case <-time.After(time.Minute):
			t.Error("the reader waits for ever")
		}
	})
}

// What a handler has written before it panics is sent as far as net/http sends it: a client does
// not take the request for one that was not served, and repeat it.
func TestAnswerOfPanic(t *testing.T) {
	for _, n := range []int{100, 3000, 9000} {
		var answers []string // the last one is net/http's
		both(t, func(w http.ResponseWriter, r *http.Request) {
			io.WriteString(w, strings.Repeat("x", n))
			panic(http.ErrAbortHandler)
		}, func(t *testing.T, addr string) { answers = append(answers, raw(t, addr, get)) })
		for kind, got := range answers {
			if want := answers[2]; (got == "") != (want == "") || strings.HasSuffix(got, "0\r\n\r\n") {
				t.Errorf("%d bytes, kind %d: %.100q, want %.100q", n, kind, got, want)
			}
		}
	}
}

// A handler that has answered before it reads the body does not take what it gets then for the
// body: the server has read that.
func TestReadBehindTheAnswer(t *testing.T) {
	result := make(chan error, 2)
	both(t, func(w http.ResponseWriter, r *http.Request) {
		io.ReadFull(r.Body, make([]byte, 2))
		w.WriteHeader(200)
		http.NewResponseController(w).Flush()
		_, err := io.ReadAll(r.Body)
		result <- err
	}, func(t *testing.T, addr string) {
		raw(t, addr, "POST / HTTP/1.1\r\nHost: a\r\nContent-Length: 5\r\n\r\nhello"+"POST / HTTP/1.1\r\nHost: a\r\nConnection: close\r\nContent-Length: 5\r\n\r\nhello")
		if err := <-result; err != http.ErrBodyReadAfterClose {
			t.Errorf("%v", err)
		}
		if err := <-result; err != nil { // the connection closes: nothing had to be read
			t.Errorf("%v", err)
		}
	})
}

// With full duplex the answer comes first, and then the rest of a short body is read, so that the
// connection stays. (net/http's breaks.)
func TestFullDuplexLeavesBody(t *testing.T) {
	h := http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		http.NewResponseController(w).EnableFullDuplex()
		io.WriteString(w, r.Method)
	})
	for name, h := range map[string]http.Handler{"goroutine": h, "loop": httpd.OnLoop(h)} {
		t.Run(name, func(t *testing.T) {
			c := dialed(t, serve(t, &http.Server{Handler: h}))
			r := bufio.NewReader(c)
			io.WriteString(c, "POST / HTTP/1.1\r\nHost: a\r\nContent-Length: 5\r\n\r\nhe")
			for i, want := range []string{"POST", "GET"} {
				answer, err := http.ReadResponse(r, nil)
				if err != nil {
					t.Fatalf("answer %d: %v", i, err)
				}
				if got, _ := io.ReadAll(answer.Body); string(got) != want {
					t.Errorf("answer %d: %q", i, got)
				}
				io.WriteString(c, "llo"+get)
			}
		})
	}
}
