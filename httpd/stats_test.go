package httpd_test

import (
	"io"
	"log"
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/rondo-go/rondo"
	"github.com/rondo-go/rondo/httpd"
)

// TestStats: requests and answers are counted, once, whether their handler runs on the loop or on
// a goroutine.
func TestStats(t *testing.T) {
	release := make(chan bool)
	h := http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		switch r.URL.Path {
		case "/missing":
			http.NotFound(w, r)
		case "/panic":
			panic(http.ErrAbortHandler)
		case "/wait":
			<-release
		case "/hijack":
			c, _, err := http.NewResponseController(w).Hijack()
			if err != nil {
				t.Error(err)
				return
			}
			c.Close()
		default:
			body, _ := io.ReadAll(r.Body)
			w.Write(body)
		}
	})
	for name, h := range map[string]http.Handler{"goroutine": h, "loop": httpd.OnLoop(h)} {
		t.Run(name, func(t *testing.T) {
			onLoop := name == "loop"
			e := &rondo.Engine{NumLoops: 2}
			defer e.Close()
			s := &httpd.Server{HTTP: &http.Server{Handler: h, ErrorLog: log.New(io.Discard, "", 0)}}
			if got := s.Stats(); got != (httpd.Stats{}) {
				t.Errorf("before the start: %+v", got)
			}
			ln, err := e.Listen("tcp", "127.0.0.1:0", rondo.SocketOptions{}, s.Open)
			if err != nil {
				t.Fatal(err)
			}
			addr := ln.Addr().String()
			var want httpd.Stats
			counted := func(what string) {
				t.Helper()
				for end := time.Now().Add(patience); s.Stats() != want; time.Sleep(time.Millisecond) {
					if time.Now().After(end) {
						t.Fatalf("%s: %+v, want %+v", what, s.Stats(), want)
					}
				}
			}
			raw(t, addr, "POST / HTTP/1.1\r\nHost: x\r\nContent-Length: 5\r\n\r\nhelloPOST / HTTP/1.1\r\nHost: x\r\nConnection: close\r\nTransfer-Encoding: chunked\r\n\r\n3\r\nabc\r\n0\r\n\r\n")
			want.Requests, want.BytesIn, want.BytesOut = 2, 8, 8
			want.Answers[2] = 2
			counted("two requests")
			raw(t, addr, "GET /missing HTTP/1.1\r\nHost: x\r\nConnection: close\r\n\r\n")
			want.Requests, want.Answers[4] = 3, 1
			want.BytesOut += uint64(len("404 page not found\n"))
			counted("a missing page")
			raw(t, addr, "GET /panic HTTP/1.1\r\nHost: x\r\n\r\n")
			want.Requests, want.Answers[0] = 4, 1
			counted("a panic")
			raw(t, addr, "nonsense\r\n\r\n")
			want.Malformed = 1
			counted("nonsense")
			if onLoop {
				return // a handler on a loop must neither wait nor hijack
			}
			raw(t, addr, "GET /hijack HTTP/1.1\r\nHost: x\r\n\r\n")
			want.Requests, want.Hijacked = 5, 1
			counted("a hijacked connection")
			done := make(chan string, 1)
			go func() { done <- raw(t, addr, "GET /wait HTTP/1.1\r\nHost: x\r\nConnection: close\r\n\r\n") }()
			want.Requests, want.InProgress, want.Conns = 6, 1, 1
			counted("a request in progress")
			release <- true
			if answer := <-done; !strings.HasPrefix(answer, "HTTP/1.1 200") {
				t.Errorf("answer %q", answer)
			}
			want.InProgress, want.Conns = 0, 0
			want.Answers[2]++
			counted("its end")
		})
	}
}

// TestStatsOfHTTP2: requests of HTTP/2 are counted without their status.
func TestStatsOfHTTP2(t *testing.T) {
	e := &rondo.Engine{NumLoops: 1}
	defer e.Close()
	plain := new(http.Protocols)
	plain.SetUnencryptedHTTP2(true)
	s := &httpd.Server{HTTP: &http.Server{Handler: http.NotFoundHandler(), Protocols: plain}}
	ln, err := e.Listen("tcp", "127.0.0.1:0", rondo.SocketOptions{}, s.Open)
	if err != nil {
		t.Fatal(err)
	}
	transport := &http.Transport{Protocols: plain}
	defer transport.CloseIdleConnections()
	for range 3 {
		a, err := (&http.Client{Transport: transport}).Get("http://" + ln.Addr().String())
		if err != nil {
			t.Fatal(err)
		}
		a.Body.Close()
	}
	want := httpd.Stats{Conns: 1, Requests: 3, HTTP2: 3}
	for end := time.Now().Add(patience); s.Stats() != want; time.Sleep(time.Millisecond) {
		if time.Now().After(end) {
			t.Fatalf("%+v, want %+v", s.Stats(), want)
		}
	}
}
