package httpd_test

import (
	"bufio"
	"bytes"
	"context"
	"fmt"
	"io"
	"math/rand/v2"
	"net"
	"net/http"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/rondo-go/rondo"
	"github.com/rondo-go/rondo/httpd"
	"github.com/rondo-go/rondo/internal/pick"
)

// answerRandomly echoes the body, all of it or a part, in pieces of any size.
func answerRandomly(w http.ResponseWriter, r *http.Request) {
	rng := rand.New(rand.NewPCG(uint64(len(r.URL.Path)), 1))
	body := io.Reader(r.Body)
	if r.Header.Get("X-Part") != "" {
		body = io.LimitReader(r.Body, 3)
	}
	read, _ := io.ReadAll(body)
	w.Header().Set("X-Read", fmt.Sprint(len(read)))
	if rng.IntN(3) == 0 {
		w.Header().Set("Content-Length", fmt.Sprint(len(read)))
	}
	for len(read) > 0 {
		k := min(len(read), 1+rng.IntN(1<<rng.IntN(18)))
		w.Write(read[:k])
		if read = read[k:]; rng.IntN(20) == 0 {
			w.(http.Flusher).Flush()
		}
	}
}

// A randomClient sends requests in pieces of any size, several before it reads an answer,
// and checks each answer.
func randomClient(t *testing.T, addr string, seed uint64) {
	rng := rand.New(rand.NewPCG(seed, 0))
	c, err := net.Dial("tcp", addr)
	if err != nil {
		t.Error(err)
		return
	}
	defer c.Close()
	c.SetDeadline(time.Now().Add(patience))
	var out bytes.Buffer
	var want []string
	for range 1 + rng.IntN(8) {
		body := strings.Repeat(string(rune('a'+rng.IntN(26))), rng.IntN(1<<rng.IntN(19)))
		fmt.Fprintf(&out, "POST /%s HTTP/1.1\r\nHost: a\r\n", strings.Repeat("p", rng.IntN(50)))
		expect := body
		if rng.IntN(4) == 0 {
			out.WriteString("X-Part: yes\r\n")
			expect = body[:min(3, len(body))]
		}
		want = append(want, expect)
		if rng.IntN(2) == 0 {
			fmt.Fprintf(&out, "Content-Length: %d\r\n\r\n%s", len(body), body)
			continue
		}
		out.WriteString("Transfer-Encoding: chunked\r\n\r\n")
		for len(body) > 0 {
			k := min(len(body), 1+rng.IntN(1<<rng.IntN(17)))
			fmt.Fprintf(&out, "%x\r\n%s\r\n", k, body[:k])
			body = body[k:]
		}
		out.WriteString("0\r\n\r\n")
	}
	go func() {
		slow := rng.IntN(4) == 0
		for p := out.Bytes(); len(p) > 0; {
			k := min(len(p), 1+rng.IntN(1<<rng.IntN(18)))
			if _, err := c.Write(p[:k]); err != nil {
				return // the server may close behind an answer to a long body
			}
			if p = p[k:]; slow && len(p) < 10_000 {
				time.Sleep(time.Millisecond)
			}
		}
	}()
	r := bufio.NewReader(c)
	for i, w := range want {
		answer, err := http.ReadResponse(r, nil)
		if err != nil {
			t.Errorf("seed %d, answer %d of %d: %v", seed, i, len(want), err)
			return
		}
		got, err := io.ReadAll(answer.Body)
		if err != nil || string(got) != w || answer.Header.Get("X-Read") != fmt.Sprint(len(w)) {
			t.Errorf("seed %d, answer %d of %d: %d bytes, want %d, %v", seed, i, len(want), len(got), len(w), err)
			return
		}
		if answer.Close {
			return
		}
	}
}

func TestRandomClients(t *testing.T) {
	for name, h := range map[string]http.Handler{"goroutine": http.HandlerFunc(answerRandomly), "loop": httpd.OnLoop(http.HandlerFunc(answerRandomly))} {
		t.Run(name, func(t *testing.T) {
			addr := serve(t, &http.Server{Handler: h})
			var wg sync.WaitGroup
			for worker := range uint64(10) {
				wg.Add(1)
				go func() {
					defer wg.Done()
					for i := range uint64(30) {
						randomClient(t, addr, worker*1000+i)
					}
				}()
			}
			wg.Wait()
		})
	}
}

// An engine of the caller's, on each backend.
func TestBackends(t *testing.T) {
	for _, backend := range pick.Available() {
		t.Run(backend, func(t *testing.T) {
			engine := rondo.Engine{Backend: backend}
			if err := engine.Start(); err != nil {
				t.Fatal(err)
			}
			s := httpd.Server{HTTP: &http.Server{Handler: http.HandlerFunc(answerRandomly)}}
			ln, err := engine.Listen("tcp", "127.0.0.1:0", rondo.SocketOptions{}, s.Open)
			if err != nil {
				t.Fatal(err)
			}
			for seed := range uint64(20) {
				randomClient(t, ln.Addr().String(), seed)
			}
			ctx, cancel := context.WithTimeout(context.Background(), time.Minute)
			defer cancel()
			if err := engine.Shutdown(ctx); err != nil {
				t.Error(err)
			}
			engine.Close()
		})
	}
}

// A client that goes at any byte leaves nothing behind, and disturbs nobody.
func TestDisconnectAnywhere(t *testing.T) {
	var running atomic.Int64
	addr := serve(t, &http.Server{Handler: http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		running.Add(1)
		defer running.Add(-1)
		io.Copy(w, r.Body)
	})})
	request := "POST / HTTP/1.1\r\nHost: a\r\nTransfer-Encoding: chunked\r\nTrailer: A\r\n\r\n5\r\nhello\r\n0\r\nA: b\r\n\r\n" + get
	for i := range request {
		for _, reset := range []bool{false, true} {
			c, err := net.Dial("tcp", addr)
			if err != nil {
				t.Fatal(err)
			}
			io.WriteString(c, request[:i])
			if reset {
				c.(*net.TCPConn).SetLinger(0)
			}
			c.Close()
		}
	}
	for range 6000 {
		if running.Load() == 0 {
			break
		}
		time.Sleep(10 * time.Millisecond)
	}
	if n := running.Load(); n != 0 {
		t.Errorf("%d handlers still run", n)
	}
	if got := raw(t, addr, get); !strings.HasPrefix(got, "HTTP/1.1 200") {
		t.Errorf("%q", got)
	}
}

// Thousands of requests in one piece are answered in order.
func TestPipelined(t *testing.T) {
	const n = 5000
	for name, h := range map[string]http.Handler{"goroutine": http.HandlerFunc(path), "loop": httpd.OnLoop(http.HandlerFunc(path))} {
		t.Run(name, func(t *testing.T) {
			addr := serve(t, &http.Server{Handler: h})
			c, err := net.Dial("tcp", addr)
			if err != nil {
				t.Fatal(err)
			}
			defer c.Close()
			go func() {
				w := bufio.NewWriter(c)
				for i := range n {
					fmt.Fprintf(w, "GET /%d HTTP/1.1\r\nHost: a\r\n\r\n", i)
				}
				w.Flush()
			}()
			r := bufio.NewReader(c)
			for i := range n {
				c.SetReadDeadline(time.Now().Add(patience)) // for each: how long all take is not tested
				answer, err := http.ReadResponse(r, nil)
				if err != nil {
					t.Fatal(i, err)
				}
				if got, _ := io.ReadAll(answer.Body); string(got) != fmt.Sprintf("/%d", i) {
					t.Fatalf("answer %d is %q", i, got)
				}
			}
		})
	}
}

func path(w http.ResponseWriter, r *http.Request) { io.WriteString(w, r.URL.Path) }
