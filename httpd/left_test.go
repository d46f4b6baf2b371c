package httpd

import (
	"bufio"
	"bytes"
	"errors"
	"fmt"
	"io"
	"log"
	"net"
	"net/http"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/rondo-go/rondo"
	"github.com/rondo-go/rondo/internal/pick"
)

// A handler may leave goroutines behind that still use its ResponseWriter. What these have begun is
// completed, if the client reads it, and the next answer comes behind it. After a panic it fails, and
// the client sees that the answer is broken off.
func TestWriteLeftBehind(t *testing.T) {
	l := leftBehind{much: make([]byte, 16<<20), written: make(chan error, 1), left: make(chan *exchange, 1)}
	for i := range l.much {
		l.much[i] = byte(i >> 8 * 7)
	}
	l.name = filepath.Join(t.TempDir(), "file")
	if err := os.WriteFile(l.name, l.much, 0o600); err != nil {
		t.Fatal(err)
	}
	for _, backend := range pick.Available() {
		for _, limit := range []time.Duration{0, time.Hour} {
			addr, end := leftServer(t, backend, limit, http.HandlerFunc(l.serve))
			for _, method := range []string{"GET", "POST"} {
				for _, path := range []string{"/bytes", "/bytes?chunked", "/small", "/small?chunked", "/file"} {
					t.Run(fmt.Sprint(backend, " ", limit, " ", method, " ", path), func(t *testing.T) {
						l.try(t, addr, method, path)
					})
				}
			}
			end()
		}
	}
}

func leftServer(t *testing.T, backend string, limit time.Duration, h http.Handler) (addr string, end func()) {
	engine := &rondo.Engine{Backend: backend, NumLoops: 1}
	s := &Server{HTTP: &http.Server{Handler: h, WriteTimeout: limit, ErrorLog: log.New(io.Discard, "", 0)}}
	ln, err := engine.Listen("tcp", "127.0.0.1:0", rondo.SocketOptions{SendBuffer: 64 << 10}, s.Open)
	if err != nil {
		t.Fatal(err)
	}
	return ln.Addr().String(), func() { engine.Close() }
}

type leftBehind struct {
	much    []byte // of the answer to all but GET /second
	name    string // a file of them
	written chan error
	left    chan *exchange
}

var theSecond = bytes.Repeat([]byte("second"), 1<<20)

func (l *leftBehind) serve(w http.ResponseWriter, r *http.Request) {
	if r.URL.Path == "/second" {
		w.Write(theSecond)
		return
	}
	if r.URL.RawQuery != "chunked" {
		w.Header().Set("Content-Length", fmt.Sprint(len(l.much)))
	}
	path := r.URL.Path
	go func() { l.written <- l.write(w, path) }()
	x := w.(*exchange)
	for !locked(x, func() bool { return x.outCond != nil && (x.stuffed() || x.file != nil) }) {
		time.Sleep(time.Millisecond)
	}
	l.left <- x
	if r.Method == "POST" {
		panic(http.ErrAbortHandler)
	}
}

// write is called on the goroutine that is left behind. The writer of "small" returns after the
// Write that waits, since the next one is too late.
func (l *leftBehind) write(w http.ResponseWriter, path string) error {
	switch path {
	case "/bytes":
		_, err := w.Write(l.much)
		return err
	case "/small":
		for p := l.much; len(p) > 0; {
			k := min(len(p), 3000)
			if _, err := w.Write(p[:k]); err != nil {
				return err
			}
			p = p[k:]
		}
		return nil
	}
	f, err := os.Open(l.name)
	if err == nil {
		_, err = io.Copy(w, f)
		f.Close()
	}
	return err
}

func (l *leftBehind) try(t *testing.T, addr, method, path string) {
	c := dialLeft(t, addr, method, path)
	x := <-l.left
	for x.calls.Load() < returned {
		time.Sleep(time.Millisecond)
	}
	small, panics := strings.HasPrefix(path, "/small"), method == "POST"
	if !panics && !small { // a small Write may have waited for the loop only
		select {
		case err := <-l.written:
			t.Errorf("the Write has ended before the client read: %v", err)
			l.written <- err
		default:
		}
	}
	r := bufio.NewReader(c)
	body, err := readAnswer(r)
	if !bytes.HasPrefix(l.much, body) {
		t.Error("the answer has other bytes")
	}
	if failed := <-l.written; (failed == nil) != (!panics && !small) {
		t.Errorf("the Write said %v", failed)
	}
	switch whole := small && strings.HasSuffix(path, "?chunked"); {
	case errors.Is(err, os.ErrDeadlineExceeded):
		t.Fatal("the answer neither goes on nor is broken off")
	case (err == nil) != (!panics && (!small || whole)):
		t.Fatalf("the answer ends with %v", err)
	case err != nil:
		return
	}
	if body, err := readAnswer(r); err != nil || !bytes.Equal(body, theSecond) {
		t.Errorf("the second answer has %d bytes, or others: %v", len(body), err)
	}
}

// occupy keeps the loop busy until release, and makes it send the answer.
func occupy(x *exchange) (release func()) {
	busy, free := make(chan struct{}), make(chan struct{})
	x.ref.Loop().Post(func() { close(busy); <-free })
	<-busy
	x.outMu.Lock()
	x.direct = nil
	x.outMu.Unlock()
	return sync.OnceFunc(func() { close(free) })
}

// Bytes that wait for a busy loop when the handler returns come once, in their order, and before the
// next answer: those of a Write of several pieces, and those that wait in front of one.
func TestWriteLeftToABusyLoop(t *testing.T) {
	want := slices.Concat(bytes.Repeat([]byte("a"), 64<<10), bytes.Repeat([]byte("b"), 4000), bytes.Repeat([]byte("c"), 600<<10))
	written := make(chan error, 1)
	h := http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.URL.Path == "/second" {
			w.Write(theSecond)
			return
		}
		w.Header().Set("Content-Length", fmt.Sprint(len(want)))
		x := w.(*exchange)
		release := occupy(x)
		at := 0
		write := func(n int) (err error) {
			_, err = w.Write(want[at:][:n])
			at += n
			return err
		}
		if r.URL.Path == "/small" { // the next Write finds that the loop has taken nothing
			for range 16 {
				write(4 << 10)
			}
		}
		write(3000)
		go func() {
			write(1000)
			written <- write(len(want) - at)
		}()
		for !locked(x, func() bool { return x.outCond != nil && (x.stuffed() || len(x.big) > 0) }) {
			time.Sleep(time.Millisecond)
		}
		go func() {
			for x.calls.Load() < returned {
				time.Sleep(time.Millisecond)
			}
			release()
		}()
	})
	for _, backend := range pick.Available() {
		addr, end := leftServer(t, backend, 0, h)
		for _, path := range []string{"/big", "/small"} {
			t.Run(backend+path, func(t *testing.T) {
				c := dialLeft(t, addr, "GET", path)
				r := bufio.NewReader(c)
				if body, err := readAnswer(r); err != nil || !bytes.Equal(body, want) {
					t.Fatalf("the answer has %d bytes, of which %d are right, and ends with %v", len(body), same(body, want), err)
				}
				if err := <-written; err != nil {
					t.Errorf("the Write said %v", err)
				}
				if body, err := readAnswer(r); err != nil || !bytes.Equal(body, theSecond) {
					t.Errorf("the second answer has %d bytes, of which %d are right, and ends with %v", len(body), same(body, theSecond), err)
				}
			})
		}
		end()
	}
}

// same returns how many bytes a and b have in common at their beginning.
func same(a, b []byte) (n int) {
	for n < min(len(a), len(b)) && a[n] == b[n] {
		n++
	}
	return n
}

// A Write of another goroutine reads the body before it sends the head. A panic of the handler ends it,
// and so does Hijack, though the client sends no more of the body and goes on waiting.
func TestWriteThatReadsTheBody(t *testing.T) {
	written := make(chan error, 1)
	h := http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		x := w.(*exchange)
		if err := x.enter(); err != nil {
			t.Error(err)
		}
		begin := make(chan bool, 1)
		go func() {
			<-begin
			_, err := x.write(make([]byte, 8<<10))
			x.exit()
			written <- err
		}()
		if r.URL.Path == "/hijack" {
			c, _, err := x.Hijack()
			if err != nil {
				t.Error(err)
				return
			}
			begin <- true
			<-written
			c.Close()
			written <- http.ErrHijacked
			return
		}
		begin <- true
		for wanted := false; !wanted; time.Sleep(time.Millisecond) {
			x.in.mu.Lock()
			wanted = x.in.wanted
			x.in.mu.Unlock()
		}
		panic(http.ErrAbortHandler)
	})
	for _, backend := range pick.Available() {
		addr, end := leftServer(t, backend, time.Hour, h)
		for _, path := range []string{"/panic", "/hijack"} {
			t.Run(backend+path, func(t *testing.T) {
				c, err := net.Dial("tcp", addr)
				if err != nil {
					t.Fatal(err)
				}
				defer c.Close()
				c.SetDeadline(time.Now().Add(2 * time.Minute))
				fmt.Fprintf(c, "POST %s HTTP/1.1\r\nHost: a\r\nContent-Length: 100\r\n\r\nshort", path)
				if got, err := io.ReadAll(c); len(got) > 0 || errors.Is(err, os.ErrDeadlineExceeded) {
					t.Errorf("the client got %q, %v", got, err)
				}
				if err := <-written; err == nil {
					t.Error("the Write did not fail")
				}
			})
		}
		end()
	}
}

// A Flush waits for a Write of another goroutine, whose bytes the loop has not taken.
func TestFlushBesideWrite(t *testing.T) {
	much := make([]byte, 64<<10)
	h := http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.URL.Path == "/second" {
			w.Write(theSecond)
			return
		}
		w.Header().Set("Content-Length", fmt.Sprint(len(much)))
		x := w.(*exchange)
		x.Flush()
		x.written = int64(len(much))
		release := occupy(x)
		written, flushed := make(chan error, 1), make(chan error, 1)
		go func() { written <- x.flush(much) }() // without Write's fields, which are the caller's own race
		for !locked(x, func() bool { return len(x.big) > 0 }) {
			time.Sleep(time.Millisecond)
		}
		go func() { flushed <- x.flush(nil) }()
		select {
		case err := <-flushed:
			t.Errorf("Flush did not wait: %v", err)
			flushed <- err
		case <-time.After(50 * time.Millisecond):
		}
		release()
		if err := errors.Join(<-written, <-flushed); err != nil {
			t.Error(err)
		}
	})
	for _, backend := range pick.Available() {
		t.Run(backend, func(t *testing.T) {
			addr, end := leftServer(t, backend, 0, h)
			defer end()
			r := bufio.NewReader(dialLeft(t, addr, "GET", "/"))
			for _, want := range [][]byte{much, theSecond} {
				if body, err := readAnswer(r); err != nil || string(body) != string(want) {
					t.Errorf("the answer has %d bytes, %.20q, %v", len(body), body, err)
				}
			}
		})
	}
}

// A Read that a goroutine was left behind in sends status 100: a panic of the handler ends it.
func TestContinueBesidePanic(t *testing.T) {
	read := make(chan error, 1)
	h := http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		x := w.(*exchange)
		locked(x, func() bool { x.full = true; return true })
		go func() {
			_, err := r.Body.Read(make([]byte, 1))
			read <- err
		}()
		for !locked(x, func() bool { return x.outCond != nil }) {
			time.Sleep(time.Millisecond)
		}
		panic(http.ErrAbortHandler)
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
			fmt.Fprintf(c, "POST / HTTP/1.1\r\nHost: a\r\nExpect: 100-continue\r\nContent-Length: 10\r\n\r\n")
			select {
			case err := <-read:
				if err == nil {
					t.Error("the Read did not fail")
				}
			case <-time.After(time.Minute):
				t.Fatal("the Read hangs")
			}
		})
	}
}

// Calls that come when the handler has returned fail, and the client sees nothing of them.
func TestLateCalls(t *testing.T) {
	const answer = "first"
	left := make(chan *exchange, 1)
	h := http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.URL.Path == "/second" {
			w.Write(theSecond)
			return
		}
		io.WriteString(w, answer)
		if r.URL.Path == "/flushed" {
			w.(http.Flusher).Flush()
		}
		left <- w.(*exchange)
	})
	file, err := os.Create(filepath.Join(t.TempDir(), "file"))
	if err != nil {
		t.Fatal(err)
	}
	defer file.Close()
	if err := file.Truncate(1 << 20); err != nil {
		t.Fatal(err)
	}
	late := func(t *testing.T, x *exchange) {
		for x.calls.Load() < returned {
			time.Sleep(time.Millisecond)
		}
		x.WriteHeader(http.StatusProcessing)
		x.WriteHeader(http.StatusTeapot)
		x.Flush()
		calls := map[string]func() error{
			"Write":           func() error { _, err := x.Write(make([]byte, 100<<10)); return err },
			"a short Write":   func() error { _, err := x.Write([]byte("late")); return err },
			"an empty Write":  func() error { _, err := x.Write(nil); return err },
			"WriteString":     func() error { _, err := x.WriteString("late"); return err },
			"FlushError":      x.FlushError,
			"ReadFrom a file": func() error { _, err := x.ReadFrom(file); return err },
		}
		for name, call := range calls {
			if err := call(); err != errLate {
				t.Errorf("%s said %v", name, err)
			}
		}
	}
	for _, backend := range pick.Available() {
		addr, end := leftServer(t, backend, time.Hour, h)
		for _, path := range []string{"/", "/flushed"} {
			t.Run(backend+path, func(t *testing.T) {
				c := dialLeft(t, addr, "GET", path)
				r := bufio.NewReader(c)
				late(t, <-left)
				if body, err := readAnswer(r); err != nil || string(body) != answer {
					t.Fatalf("the answer is %q, %v", body, err)
				}
				if body, err := readAnswer(r); err != nil || !bytes.Equal(body, theSecond) {
					t.Errorf("the second answer has %d bytes, or others: %v", len(body), err)
				}
			})
		}
		end()
	}
}

// dialLeft sends two requests.
func dialLeft(t *testing.T, addr, method, path string) net.Conn {
	c, err := net.Dial("tcp", addr)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { c.Close() })
	c.SetDeadline(time.Now().Add(2 * time.Minute))
	fmt.Fprintf(c, "%s %s HTTP/1.1\r\nHost: a\r\nContent-Length: 0\r\n\r\nGET /second HTTP/1.1\r\nHost: a\r\n\r\n", method, path)
	return c
}

func readAnswer(r *bufio.Reader) ([]byte, error) {
	a, err := http.ReadResponse(r, nil)
	if err != nil {
		return nil, err
	}
	return io.ReadAll(a.Body)
}

func locked(x *exchange, is func() bool) bool {
	x.outMu.Lock()
	defer x.outMu.Unlock()
	return is()
}
