package httpd_test

import (
	"bufio"
	"bytes"
	"context"
	"crypto/sha256"
	"errors"
	"fmt"
	"io"
	"log"
	"math/rand/v2"
	"net"
	"net/http"
	"net/http/httputil"
	"net/url"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/rondo-go/rondo/httpd"
)

// serve serves srv on a port of its own, until the test ends, and returns its address.
func serve(t *testing.T, srv *http.Server) string {
	t.Helper()
	ln, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	if srv.ErrorLog == nil {
		srv.ErrorLog = log.New(io.Discard, "", 0)
	}
	ended := make(chan error, 1)
	go func() { ended <- httpd.Serve(srv, ln) }()
	t.Cleanup(func() {
		srv.Close()
		select {
		case err := <-ended:
			if !errors.Is(err, http.ErrServerClosed) {
				t.Errorf("Serve: %v", err)
			}
		case <-time.After(time.Minute):
			t.Error("Serve does not end")
		}
	})
	return ln.Addr().String()
}

// both calls f with a server on loops and on goroutines, and with net/http's, to compare.
func both(t *testing.T, h http.HandlerFunc, f func(t *testing.T, addr string)) {
	t.Run("goroutine", func(t *testing.T) { f(t, serve(t, &http.Server{Handler: h})) })
	t.Run("loop", func(t *testing.T) { f(t, serve(t, &http.Server{Handler: httpd.OnLoop(h)})) })
	t.Run("nethttp", func(t *testing.T) {
		ln, err := net.Listen("tcp", "127.0.0.1:0")
		if err != nil {
			t.Fatal(err)
		}
		srv := &http.Server{Handler: h, ErrorLog: log.New(io.Discard, "", 0)}
		go srv.Serve(ln)
		defer srv.Close()
		f(t, ln.Addr().String())
	})
}

// raw sends bytes and the end of the stream, and returns all that comes back.
func raw(t *testing.T, addr, request string) string {
	t.Helper()
	c, err := net.Dial("tcp", addr)
	if err != nil {
		t.Fatal(err)
	}
	defer c.Close()
	c.SetDeadline(time.Now().Add(patience))
	io.WriteString(c, request)
	answer, err := io.ReadAll(c)
	if err != nil {
		t.Errorf("%.60q: %v, after %q", request, err, answer)
	}
	return string(answer)
}

// plain drops what differs between servers.
func plain(answer string) string {
	var lines []string
	for line := range strings.SplitAfterSeq(answer, "\n") {
		if !strings.HasPrefix(line, "Date: ") {
			lines = append(lines, line)
		}
	}
	return strings.Join(lines, "")
}

// An answerCase is a handler, and a request to it, whose answer must be net/http's, byte for
// byte.
var answerCases = []struct {
	name, request string
	handler       http.HandlerFunc
}{
	{"empty", get, func(w http.ResponseWriter, r *http.Request) {}},
	{"short", get, func(w http.ResponseWriter, r *http.Request) { io.WriteString(w, "hello") }},
	{"HTML", get, func(w http.ResponseWriter, r *http.Request) { io.WriteString(w, "<html>") }},
	{"status", get, func(w http.ResponseWriter, r *http.Request) { w.WriteHeader(404) }},
	{"unknown status", get, func(w http.ResponseWriter, r *http.Request) { w.WriteHeader(799) }},
	{"204", get, func(w http.ResponseWriter, r *http.Request) { w.WriteHeader(204); io.WriteString(w, "x") }},
	{"304", get, func(w http.ResponseWriter, r *http.Request) {
		w.Header().Set("Content-Length", "5")
		w.Header().Set("Content-Type", "a/b")
		w.Header().Set("Etag", "x")
		w.WriteHeader(304)
	}},
	{"long", get, func(w http.ResponseWriter, r *http.Request) { w.Write(bytes.Repeat([]byte("x"), 3000)) }},
	{"long in pieces", get, func(w http.ResponseWriter, r *http.Request) {
		for range 30 {
			w.Write(bytes.Repeat([]byte("x"), 100))
		}
	}},
	{"longer", get, func(w http.ResponseWriter, r *http.Request) {
		w.Header().Set("Content-Type", "text/plain")
		w.Header().Set("Content-Length", "100000")
		w.Write(bytes.Repeat([]byte("x"), 100000))
	}},
	{"a length", get, func(w http.ResponseWriter, r *http.Request) {
		w.Header().Set("Content-Length", "5")
		io.WriteString(w, "hello")
	}},
	{"too little", get, func(w http.ResponseWriter, r *http.Request) {
		w.Header().Set("Content-Length", "9")
		io.WriteString(w, "hello")
	}},
	{"too much", get, func(w http.ResponseWriter, r *http.Request) {
		w.Header().Set("Content-Length", "5")
		_, err := io.WriteString(w, "hello!")
		if err != http.ErrContentLength {
			panic(err)
		}
	}},
	{"an invalid length", get, func(w http.ResponseWriter, r *http.Request) {
		w.Header().Set("Content-Length", "x")
		io.WriteString(w, "hello")
	}},
	{"a type", get, func(w http.ResponseWriter, r *http.Request) {
		w.Header().Set("Content-Type", "a/b")
		io.WriteString(w, "hello")
	}},
	{"no type", get, func(w http.ResponseWriter, r *http.Request) {
		w.Header()["Content-Type"] = nil
		io.WriteString(w, "hello")
	}},
	{"an encoding", get, func(w http.ResponseWriter, r *http.Request) {
		w.Header().Set("Content-Encoding", "gzip")
		io.WriteString(w, "hello")
	}},
	{"no date", get, func(w http.ResponseWriter, r *http.Request) { w.Header()["Date"] = nil }},
	{"a header too late", get, func(w http.ResponseWriter, r *http.Request) {
		h := w.Header()
		h.Set("A", "b")
		w.WriteHeader(200)
		h.Set("A", "c")
		h.Set("D", "e")
	}},
	{"a forged header", get, func(w http.ResponseWriter, r *http.Request) { w.Header().Set("A", "b\r\nC: d") }},
	{"HEAD", "HEAD / HTTP/1.1\r\nHost: a\r\nConnection: close\r\n\r\n", func(w http.ResponseWriter, r *http.Request) { io.WriteString(w, "hello") }},
	{"HEAD without a body", "HEAD / HTTP/1.1\r\nHost: a\r\nConnection: close\r\n\r\n", func(w http.ResponseWriter, r *http.Request) {}},
	{"HEAD of much", "HEAD / HTTP/1.1\r\nHost: a\r\nConnection: close\r\n\r\n", func(w http.ResponseWriter, r *http.Request) { w.Write(make([]byte, 9000)) }},
	{"HTTP/1.0", "GET / HTTP/1.0\r\n\r\n", func(w http.ResponseWriter, r *http.Request) { io.WriteString(w, "hello") }},
	{"HTTP/1.0 of much", "GET / HTTP/1.0\r\n\r\n", func(w http.ResponseWriter, r *http.Request) { w.Write(make([]byte, 9000)) }},
	{"HTTP/1.0 that stays", "GET / HTTP/1.0\r\nConnection: keep-alive\r\n\r\nGET / HTTP/1.0\r\n\r\n",
		func(w http.ResponseWriter, r *http.Request) { io.WriteString(w, "hello") }},
	{"HTTP/1.0 that cannot stay", "GET / HTTP/1.0\r\nConnection: keep-alive\r\n\r\n", func(w http.ResponseWriter, r *http.Request) { w.Write(make([]byte, 9000)) }},
	{"flushed", get, func(w http.ResponseWriter, r *http.Request) {
		io.WriteString(w, "a")
		w.(http.Flusher).Flush()
		io.WriteString(w, "b")
	}},
	{"flushed first", get, func(w http.ResponseWriter, r *http.Request) {
		w.(http.Flusher).Flush()
		io.WriteString(w, "b")
	}},
	{"an Expect without a value", "GET / HTTP/1.1\r\nHost: a\r\nExpect: \r\nConnection: close\r\n\r\n",
		func(w http.ResponseWriter, r *http.Request) { io.WriteString(w, "hello") }},
	{"another Expect", "GET / HTTP/1.1\r\nHost: a\r\nExpect: a-pony\r\nConnection: close\r\n\r\n",
		func(w http.ResponseWriter, r *http.Request) { io.WriteString(w, "hello") }},
	{"identity", get, func(w http.ResponseWriter, r *http.Request) {
		w.Header().Set("Transfer-Encoding", "identity")
		io.WriteString(w, "hello")
	}},
	{"chunked by the handler", get, func(w http.ResponseWriter, r *http.Request) {
		w.Header().Set("Transfer-Encoding", "chunked")
		io.WriteString(w, "hello")
	}},
	{"trailers", get, func(w http.ResponseWriter, r *http.Request) {
		w.Header().Set("Trailer", "A, B")
		io.WriteString(w, "hello")
		w.Header().Set("A", "1")
		w.Header().Set("B", "2")
		w.Header().Set(http.TrailerPrefix+"C", "3")
	}},
	{"closing", "GET / HTTP/1.1\r\nHost: a\r\n\r\n" + get, func(w http.ResponseWriter, r *http.Request) { w.Header().Set("Connection", "close") }},
	{"pipelined", "GET /a HTTP/1.1\r\nHost: a\r\n\r\nGET /b HTTP/1.1\r\nHost: a\r\n\r\n" + get, func(w http.ResponseWriter, r *http.Request) { io.WriteString(w, r.URL.Path) }},
	{"103", get, func(w http.ResponseWriter, r *http.Request) {
		w.Header().Set("Link", "x")
		w.WriteHeader(103)
		io.WriteString(w, "hello")
	}},
	{"superfluous", get, func(w http.ResponseWriter, r *http.Request) { w.WriteHeader(201); w.WriteHeader(202) }},
	{"OPTIONS *", "OPTIONS * HTTP/1.1\r\nHost: a\r\nConnection: close\r\n\r\n", func(w http.ResponseWriter, r *http.Request) { panic("called") }},
	{"a panic", get, func(w http.ResponseWriter, r *http.Request) { io.WriteString(w, "x"); panic("test") }},
	{"a panic behind a flush", get, func(w http.ResponseWriter, r *http.Request) {
		io.WriteString(w, "x")
		w.(http.Flusher).Flush()
		panic(http.ErrAbortHandler)
	}},
	{"an expectation", "GET / HTTP/1.1\r\nHost: a\r\nExpect: x\r\n\r\n", func(w http.ResponseWriter, r *http.Request) { panic("called") }},
	{"a body", "POST / HTTP/1.1\r\nHost: a\r\nContent-Length: 5\r\nConnection: close\r\n\r\nhello", echo},
	{"chunks", "POST / HTTP/1.1\r\nHost: a\r\nTransfer-Encoding: chunked\r\nTrailer: A\r\nConnection: close\r\n\r\n5\r\nhello\r\n0\r\nA: b\r\n\r\n", echo},
	{"a body not read", "POST / HTTP/1.1\r\nHost: a\r\nContent-Length: 5\r\n\r\nhello" + get, func(w http.ResponseWriter, r *http.Request) { io.WriteString(w, r.Method) }},
	{"100-continue", "POST / HTTP/1.1\r\nHost: a\r\nContent-Length: 5\r\nExpect: 100-continue\r\nConnection: close\r\n\r\nhello", echo},
	{"line breaks behind POST", "POST / HTTP/1.1\r\nHost: a\r\nContent-Length: 5\r\n\r\nhello\r\n" + get, echo},
}

const get = "GET / HTTP/1.1\r\nHost: a\r\nConnection: close\r\n\r\n"

func echo(w http.ResponseWriter, r *http.Request) {
	body, err := io.ReadAll(r.Body)
	fmt.Fprintf(w, "%s %s %v %v", r.Method, body, err, r.Trailer)
}

func TestAnswers(t *testing.T) {
	for _, c := range answerCases {
		t.Run(c.name, func(t *testing.T) {
			answers := make(map[string]string)
			both(t, c.handler, func(t *testing.T, addr string) {
				answers[t.Name()[strings.LastIndexByte(t.Name(), '/')+1:]] = sorted(plain(raw(t, addr, c.request)))
			})
			for name, got := range answers {
				if got != answers["nethttp"] {
					t.Errorf("%s: %.400q\nnet/http: %.400q", name, got, answers["nethttp"])
				}
			}
		})
	}
}

// sorted sorts the lines of heads: the order of fields means nothing.
func sorted(answer string) string {
	head, body, _ := strings.Cut(answer, "\r\n\r\n")
	lines := strings.Split(head, "\r\n")
	slices.Sort(lines[1:])
	return strings.Join(lines, "\r\n") + "\r\n\r\n" + body
}

// Long bodies in both directions at once, of any sizes of pieces.
func TestStreams(t *testing.T) {
	addr := serve(t, &http.Server{Handler: http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		http.NewResponseController(w).EnableFullDuplex()
		io.Copy(w, r.Body)
	})})
	var wg sync.WaitGroup
	for i := range 8 {
		wg.Add(1)
		go func() {
			defer wg.Done()
			data := make([]byte, 5<<20)
			rng := rand.NewChaCha8([32]byte{byte(i)})
			rng.Read(data)
			answer, err := http.Post("http://"+addr, "a/b", io.MultiReader(bytes.NewReader(data)))
			if err != nil {
				t.Error(err)
				return
			}
			defer answer.Body.Close()
			got, err := io.ReadAll(answer.Body)
			if sha256.Sum256(got) != sha256.Sum256(data) || err != nil {
				t.Errorf("%d bytes of %d, %v", len(got), len(data), err)
			}
		}()
	}
	wg.Wait()
}

// A body that nobody reads is not received, and a client that does not read stops the handler.
func TestBackpressure(t *testing.T) {
	wrote := make(chan int, 1000)
	go1 := make(chan bool)
	addr := serve(t, &http.Server{Handler: http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.Method == "POST" {
			<-go1
			n, _ := io.Copy(io.Discard, r.Body)
			fmt.Fprint(w, n)
			return
		}
		for i := range 1000 {
			if _, err := w.Write(make([]byte, 64<<10)); err != nil {
				return
			}
			wrote <- i
		}
	})})
	c, err := net.Dial("tcp", addr)
	if err != nil {
		t.Fatal(err)
	}
	defer c.Close()
	io.WriteString(c, "GET / HTTP/1.1\r\nHost: a\r\n\r\n")
	time.Sleep(500 * time.Millisecond)
	if n := len(wrote); n > 200 {
		t.Errorf("%d pieces of 64 KiB were written", n)
	}
	d, err := net.Dial("tcp", addr)
	if err != nil {
		t.Fatal(err)
	}
	defer d.Close()
	const size = 64 << 20
	fmt.Fprintf(d, "POST / HTTP/1.1\r\nHost: a\r\nConnection: close\r\nContent-Length: %d\r\n\r\n", size)
	d.SetWriteDeadline(time.Now().Add(500 * time.Millisecond))
	n, err := d.Write(make([]byte, size))
	if !errors.Is(err, os.ErrDeadlineExceeded) {
		t.Errorf("%d bytes were taken, %v", n, err)
	}
	close(go1)
	d.SetWriteDeadline(time.Time{})
	if _, err := d.Write(make([]byte, size-n)); err != nil {
		t.Error(err)
	}
	answer, _ := io.ReadAll(d)
	if !strings.HasSuffix(string(answer), fmt.Sprint(size)) {
		t.Errorf("%q", answer)
	}
}

type contextKey string

// The request's context ends when the client goes, and when the handler returns.
func TestContext(t *testing.T) {
	begun, ended := make(chan bool, 1), make(chan error, 1)
	addr := serve(t, &http.Server{
		BaseContext: func(net.Listener) context.Context {
			return context.WithValue(context.Background(), contextKey("base"), 1)
		},
		ConnContext: func(ctx context.Context, c net.Conn) context.Context {
			return context.WithValue(ctx, contextKey("conn"), c.RemoteAddr())
		},
		Handler: http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			if r.Context().Value(contextKey("base")) != 1 || r.Context().Value(contextKey("conn")) == nil || r.Context().Value(http.ServerContextKey) == nil ||
				r.Context().Value(http.LocalAddrContextKey) == nil {
				t.Error("the context has no values")
			}
			begun <- true
			select {
			case <-r.Context().Done():
				ended <- r.Context().Err()
			case <-time.After(time.Minute):
				ended <- nil
			}
		})})
	c, err := net.Dial("tcp", addr)
	if err != nil {
		t.Fatal(err)
	}
	io.WriteString(c, "GET / HTTP/1.1\r\nHost: a\r\n\r\n")
	<-begun
	c.Close()
	if err := <-ended; err != context.Canceled {
		t.Error(err)
	}
}

func TestHijack(t *testing.T) {
	addr := serve(t, &http.Server{Handler: http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		c, rw, err := http.NewResponseController(w).Hijack()
		if err != nil {
			t.Error(err)
			return
		}
		defer c.Close()
		line, _ := rw.ReadString('\n')
		fmt.Fprintf(rw, "HTTP/1.1 101 x\r\n\r\n%s", line)
		rw.Flush()
		io.Copy(c, rw)
		if _, err := w.Write([]byte("x")); err != http.ErrHijacked {
			t.Error(err)
		}
	})})
	for _, first := range []string{"first\n", ""} {
		c, err := net.Dial("tcp", addr)
		if err != nil {
			t.Fatal(err)
		}
		defer c.Close()
		io.WriteString(c, "GET / HTTP/1.1\r\nHost: a\r\n\r\n"+first)
		if first == "" {
			time.Sleep(20 * time.Millisecond)
			io.WriteString(c, "first\n")
		}
		io.WriteString(c, "second")
		c.(*net.TCPConn).CloseWrite()
		answer, err := io.ReadAll(c)
		if string(answer) != "HTTP/1.1 101 x\r\n\r\nfirst\nsecond" {
			t.Errorf("%q, %v", answer, err)
		}
	}
}

// Shutdown waits for requests, within its context, and closes idle connections.
func TestShutdown(t *testing.T) {
	begun, finish := make(chan bool), make(chan bool)
	srv := &http.Server{Handler: http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.URL.Path == "/slow" {
			begun <- true
			<-finish
		}
		io.WriteString(w, "done")
	})}
	hook := make(chan bool, 1)
	srv.RegisterOnShutdown(func() { hook <- true })
	addr := serve(t, srv)
	idle, err := net.Dial("tcp", addr)
	if err != nil {
		t.Fatal(err)
	}
	defer idle.Close()
	io.WriteString(idle, "GET / HTTP/1.1\r\nHost: a\r\n\r\n")
	if _, err := http.ReadResponse(bufio.NewReader(idle), nil); err != nil {
		t.Fatal(err)
	}
	answer := make(chan string)
	go func() { answer <- raw(t, addr, "GET /slow HTTP/1.1\r\nHost: a\r\n\r\n") }()
	<-begun
	ctx, cancel := context.WithTimeout(context.Background(), 100*time.Millisecond)
	defer cancel()
	if err := srv.Shutdown(ctx); err != context.DeadlineExceeded {
		t.Errorf("Shutdown with a request in progress: %v", err)
	}
	<-hook
	idle.SetReadDeadline(time.Now().Add(patience))
	if _, err := idle.Read(make([]byte, 100)); err != nil {
		if _, err = idle.Read(make([]byte, 100)); err != io.EOF {
			t.Errorf("the idle connection: %v", err)
		}
	}
	close(finish)
	if got := <-answer; !strings.HasSuffix(got, "done") || !strings.Contains(got, "Connection: close") {
		t.Errorf("%q", got)
	}
	if err := srv.Shutdown(context.Background()); err != nil {
		t.Error(err)
	}
	if c, err := net.Dial("tcp", addr); err == nil {
		c.Close()
		t.Error("it still listens")
	}
}

func TestTimeouts(t *testing.T) {
	slow := make(chan error, 1)
	addr := serve(t, &http.Server{ReadHeaderTimeout: 100 * time.Millisecond, IdleTimeout: 100 * time.Millisecond, ReadTimeout: 300 * time.Millisecond,
		Handler: http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			_, err := io.ReadAll(r.Body)
			slow <- err
		})})
	for _, begin := range []string{"", "GET / HTT", "GET / HTTP/1.1\r\nHost: a\r\n\r\n", "GET / HTTP/1.1\r\nHost: a\r\n\r\nGET /",
		"POST / HTTP/1.1\r\nHost: a\r\nContent-Length: 5\r\n\r\nabc"} {
		c, err := net.Dial("tcp", addr)
		if err != nil {
			t.Fatal(err)
		}
		defer c.Close()
		io.WriteString(c, begin)
		c.SetReadDeadline(time.Now().Add(patience))
		if _, err := io.Copy(io.Discard, c); errors.Is(err, os.ErrDeadlineExceeded) {
			t.Errorf("%q: the connection does not end", begin)
		}
		if strings.HasPrefix(begin, "POST") {
			if err := <-slow; !errors.Is(err, os.ErrDeadlineExceeded) {
				t.Error(err)
			}
		} else if strings.Contains(begin, "Host") {
			<-slow
		}
	}
}

func TestConnState(t *testing.T) {
	var mu sync.Mutex
	states := make(map[string][]http.ConnState)
	addr := serve(t, &http.Server{Handler: http.HandlerFunc(func(http.ResponseWriter, *http.Request) {}),
		ConnState: func(c net.Conn, state http.ConnState) {
			mu.Lock()
			defer mu.Unlock()
			states[c.RemoteAddr().String()] = append(states[c.RemoteAddr().String()], state)
		}})
	raw(t, addr, "GET / HTTP/1.1\r\nHost: a\r\n\r\n"+get)
	time.Sleep(50 * time.Millisecond)
	mu.Lock()
	defer mu.Unlock()
	for _, got := range states {
		if fmt.Sprint(got) != "[new active idle active closed]" {
			t.Error(got)
		}
	}
	if len(states) != 1 {
		t.Error(states)
	}
}

// What is built on net/http works.
func TestOthers(t *testing.T) {
	dir := t.TempDir()
	file := bytes.Repeat([]byte("0123456789"), 50_000)
	os.WriteFile(filepath.Join(dir, "f.txt"), file, 0o644)
	files := serve(t, &http.Server{Handler: http.FileServer(http.Dir(dir))})
	target, _ := url.Parse("http://" + files)
	proxy := serve(t, &http.Server{Handler: httputil.NewSingleHostReverseProxy(target)})
	for _, addr := range []string{files, proxy} {
		request, _ := http.NewRequest("GET", "http://"+addr+"/f.txt", nil)
		answer, err := http.DefaultClient.Do(request)
		if err != nil {
			t.Fatal(err)
		}
		got, err := io.ReadAll(answer.Body)
		if !bytes.Equal(got, file) || err != nil || answer.ContentLength != int64(len(file)) {
			t.Errorf("%d bytes, %v", len(got), err)
		}
		request.Header.Set("Range", "bytes=5-9")
		if answer, err = http.DefaultClient.Do(request); err != nil {
			t.Fatal(err)
		}
		got, _ = io.ReadAll(answer.Body)
		if string(got) != "56789" || answer.StatusCode != 206 {
			t.Errorf("%s, %q", answer.Status, got)
		}
	}
	http.DefaultClient.CloseIdleConnections()
}
