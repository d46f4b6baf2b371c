package httpd_test

import (
	"bufio"
	"bytes"
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

// Handlers that block hold up no other request, however many they are.
func TestBlockedHandlers(t *testing.T) {
	const blocked = 300
	release := make(chan bool)
	var begun sync.WaitGroup
	begun.Add(blocked)
	addr := serve(t, &http.Server{Handler: http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.URL.Path == "/blocked" {
			begun.Done()
			<-release
		}
		io.WriteString(w, "done")
	})})
	var answers sync.WaitGroup
	for range blocked {
		answers.Add(1)
		go func() {
			defer answers.Done()
			if got := raw(t, addr, strings.Replace(get, "/", "/blocked", 1)); !strings.HasSuffix(got, "done") {
				t.Errorf("%q", got)
			}
		}()
	}
	begun.Wait()
	for range 20 {
		if got := raw(t, addr, get); !strings.HasSuffix(got, "done") {
			t.Errorf("%q", got)
		}
	}
	close(release)
	answers.Wait()
}

// The goroutines of a burst end when they have had nothing to do for a while, also those
// whose handler has called runtime.Goexit.
func TestIdleGoroutinesEnd(t *testing.T) {
	before := runtime.NumGoroutine()
	var together sync.WaitGroup
	const burst = 50
	together.Add(burst)
	addr := serve(t, &http.Server{Handler: http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		together.Done()
		together.Wait()
		if r.Header.Get("X-Exit") != "" {
			runtime.Goexit()
		}
	})})
	var clients sync.WaitGroup
	for i := range burst {
		clients.Add(1)
		go func() {
			defer clients.Done()
			c, err := net.Dial("tcp", addr)
			if err != nil {
				t.Error(err)
				return
			}
			defer c.Close()
			io.WriteString(c, "GET / HTTP/1.1\r\nHost: a\r\nConnection: close\r\n"+strings.Repeat("X-Exit: yes\r\n", i%2)+"\r\n")
			io.Copy(io.Discard, c)
		}()
	}
	clients.Wait()
	deadline := time.Now().Add(patience)
	for runtime.NumGoroutine() > before+20 { // the loops, the gate
		if time.Now().After(deadline) {
			t.Fatalf("%d goroutines, %d before", runtime.NumGoroutine(), before)
		}
		time.Sleep(50 * time.Millisecond)
	}
}

// Requests of a client that does not read its answers wait: none of these is lost, although
// all of them are more than may wait for the client.
func TestPipelinedToASlowReader(t *testing.T) {
	const n, size = 3000, 8 << 10
	h := http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		w.Header().Set("Content-Type", "text/plain")
		w.Write(bytes.Repeat([]byte("x"), size))
		io.WriteString(w, r.URL.Path)
	})
	for name, h := range map[string]http.Handler{"goroutine": h, "loop": httpd.OnLoop(h)} {
		t.Run(name, func(t *testing.T) {
			addr := serve(t, &http.Server{Handler: h})
			c, err := net.Dial("tcp", addr)
			if err != nil {
				t.Fatal(err)
			}
			defer c.Close()
			c.SetDeadline(time.Now().Add(patience))
			var requests bytes.Buffer
			for i := range n {
				fmt.Fprintf(&requests, "GET /%d HTTP/1.1\r\nHost: a\r\n\r\n", i)
			}
			go c.Write(requests.Bytes())
			time.Sleep(200 * time.Millisecond)
			r := bufio.NewReader(c)
			for i := range n {
				answer, err := http.ReadResponse(r, nil)
				if err != nil {
					t.Fatal(i, err)
				}
				got, err := io.ReadAll(answer.Body)
				if want := fmt.Sprintf("/%d", i); err != nil || len(got) != size+len(want) || !strings.HasSuffix(string(got), want) {
					t.Fatalf("answer %d: %d bytes, %v", i, len(got), err)
				}
			}
		})
	}
}

// A connection whose answer was sent past the loop is idle, and closes after the IdleTimeout.
func TestIdleAfterAnAnswer(t *testing.T) {
	const idle = 300 * time.Millisecond
	addr := serve(t, &http.Server{IdleTimeout: idle, Handler: http.HandlerFunc(func(http.ResponseWriter, *http.Request) {})})
	try := func() (late bool) {
		c, err := net.Dial("tcp", addr)
		if err != nil {
			t.Fatal(err)
		}
		defer c.Close()
		c.SetDeadline(time.Now().Add(patience))
		r := bufio.NewReader(c)
		last := time.Now()
		for range 3 { // longer than the IdleTimeout in all
			asked := time.Now()
			io.WriteString(c, "GET / HTTP/1.1\r\nHost: a\r\n\r\n")
			if _, err := http.ReadResponse(r, nil); err != nil {
				if time.Since(last) > idle {
					return true
				}
				t.Fatal(err)
			}
			last = asked
			time.Sleep(idle / 2)
		}
		if _, err := r.ReadByte(); err != io.EOF {
			t.Error(err)
		}
		return false
	}
	for try() {
		t.Log("the machine was too slow")
	}
}

// Late changes of the header mean nothing, whichever way the head is written.
func TestLateHeader(t *testing.T) {
	for _, early := range []string{"", "Etag", "Trailer", "Connection", "Content-Length"} {
		for _, status := range []int{200, 204} {
			both(t, func(w http.ResponseWriter, r *http.Request) {
				if early != "" {
					w.Header().Set(early, "0")
				}
				w.WriteHeader(status)
				w.Header().Set("Late", "x")
				w.Header()["Date"] = nil
			}, func(t *testing.T, addr string) {
				if got := raw(t, addr, get); strings.Contains(got, "Late") || !strings.Contains(got, "Date: ") {
					t.Errorf("%s, %d: %q", early, status, got)
				}
			})
		}
	}
}
