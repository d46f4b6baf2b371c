package httpd_test

import (
	"bufio"
	"bytes"
	"context"
	"crypto/tls"
	"fmt"
	"io"
	"net"
	"net/http"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/rondo-go/rondo"
	"github.com/rondo-go/rondo/httpd"
	"github.com/rondo-go/rondo/internal/pick"
)

// testFile makes a file of bytes that look different in every place.
func testFile(t *testing.T, size int) (path string, content []byte) {
	t.Helper()
	for i := 0; len(content) < size; i++ {
		content = strconv.AppendInt(content, int64(i), 36)
	}
	content = content[:size]
	path = filepath.Join(t.TempDir(), "file.txt")
	if err := os.WriteFile(path, content, 0o644); err != nil {
		t.Fatal(err)
	}
	return path, content
}

// A fileCase is a way to answer with a file, and the bytes that the client gets.
type fileCase struct {
	name, request string
	handler       http.HandlerFunc
	want          []byte
}

// withFile opens a file for a handler.
func withFile(path string, f func(w http.ResponseWriter, f *os.File)) http.HandlerFunc {
	return func(w http.ResponseWriter, r *http.Request) {
		file, err := os.Open(path)
		if err != nil {
			panic(err)
		}
		defer file.Close()
		f(w, file)
	}
}

func fileCases(path string, content []byte) []fileCase {
	size := len(content)
	ask := func(method, more string) string {
		return method + " / HTTP/1.1\r\nHost: a\r\n" + more + "Connection: close\r\n\r\n"
	}
	serveFile := func(w http.ResponseWriter, r *http.Request) { http.ServeFile(w, r, path) }
	setLength := func(w http.ResponseWriter, n int) { w.Header().Set("Content-Length", strconv.Itoa(n)) }
	return []fileCase{
		{"ServeFile", ask("GET", ""), serveFile, content},
		{"Range", ask("GET", "Range: bytes=70000-400000\r\n"), serveFile, content[70000:400001]},
		{"several Ranges", ask("GET", "Range: bytes=1-40000,50000-90000\r\n"), serveFile, nil},
		{"HEAD", ask("HEAD", ""), serveFile, []byte{}},
		{"HTTP/1.0", "GET / HTTP/1.0\r\n\r\n", serveFile, content},
		{"chunked", ask("GET", ""), withFile(path, func(w http.ResponseWriter, f *os.File) { io.Copy(w, f) }), nil},
		{"a length", ask("GET", ""), withFile(path, func(w http.ResponseWriter, f *os.File) {
			setLength(w, size)
			if n, err := io.Copy(w, f); n != int64(size) || err != nil {
				panic(fmt.Sprint(n, err))
			}
		}), content},
		{"parts", ask("GET", ""), withFile(path, func(w http.ResponseWriter, f *os.File) {
			setLength(w, size)
			w.Write(content[:100])
			f.Seek(100, io.SeekStart)
			limited := &io.LimitedReader{R: f, N: 100_000}
			io.Copy(w, limited)
			at, _ := f.Seek(0, io.SeekCurrent)
			if limited.N != 0 || at != 100_100 {
				panic(fmt.Sprint(limited.N, at))
			}
			w.Write(content[at : at+20_000])
			f.Seek(20_000, io.SeekCurrent)
			io.CopyN(w, f, 50)
			io.Copy(w, f)
		}), content},
		{"too much", ask("GET", ""), withFile(path, func(w http.ResponseWriter, f *os.File) {
			setLength(w, size-5)
			if _, err := io.CopyN(w, f, int64(size)); err == nil {
				panic("more than the Content-Length was written")
			}
		}), content[:size-5]},
		{"too little", ask("GET", ""), withFile(path, func(w http.ResponseWriter, f *os.File) {
			setLength(w, size+5)
			io.Copy(w, f)
		}), content},
		{"no body", ask("GET", ""), withFile(path, func(w http.ResponseWriter, f *os.File) {
			w.WriteHeader(204)
			if n, err := io.Copy(w, f); n != 0 || err != http.ErrBodyNotAllowed {
				panic(fmt.Sprint(n, err))
			}
		}), []byte{}},
	}
}

// TestFiles compares answers from files with net/http's, byte for byte.
func TestFiles(t *testing.T) {
	path, content := testFile(t, 3_000_000)
	for _, c := range fileCases(path, content) {
		t.Run(c.name, func(t *testing.T) {
			answers := make(map[string]string)
			both(t, c.handler, func(t *testing.T, addr string) {
				answer := plain(raw(t, addr, c.request))
				server := filepath.Base(t.Name())
				answers[server] = answer
				if c.name == "too much" && server == "nethttp" {
					return // it sends more than its Content-Length says
				}
				if _, body, _ := strings.Cut(answer, "\r\n\r\n"); c.want != nil && body != string(c.want) {
					t.Errorf("the body has %d bytes, want %d", len(body), len(c.want))
				}
			})
			if strings.Contains(c.name, "Ranges") {
				return // with a random boundary
			}
			for _, name := range []string{"goroutine", "loop"} {
				if got, want := answers[name], answers["nethttp"]; got != want && c.name != "too much" {
					t.Errorf("%s: %d bytes, net/http's are %d: %.300q, want %.300q", name, len(got), len(want), got, want)
				}
			}
		})
	}
}

// Files go over kept connections, one after the other, to a slow reader and a fast one, on
// each backend and with TLS.
func TestFilesOverAndOver(t *testing.T) {
	path, content := testFile(t, 2_000_000)
	h := http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) { http.ServeFile(w, r, path) })
	for _, backend := range pick.Available() {
		for name, h := range map[string]http.Handler{"goroutine": h, "loop": httpd.OnLoop(h)} {
			t.Run(name+" on "+backend, func(t *testing.T) {
				engine := rondo.Engine{Backend: backend}
				if err := engine.Start(); err != nil {
					t.Fatal(err)
				}
				defer engine.Close()
				s := httpd.Server{HTTP: &http.Server{Handler: h}}
				ln, err := engine.Listen("tcp", "127.0.0.1:0", rondo.SocketOptions{}, s.Open)
				if err != nil {
					t.Fatal(err)
				}
				fetch(t, content, func() (net.Conn, error) { return net.Dial("tcp", ln.Addr().String()) })
				ctx, cancel := context.WithTimeout(context.Background(), time.Minute)
				defer cancel()
				if err := engine.Shutdown(ctx); err != nil {
					t.Error(err)
				}
			})
		}
	}
	t.Run("TLS", func(t *testing.T) {
		addr, client := serveTLS(t, h)
		fetch(t, content, func() (net.Conn, error) { return tls.Dial("tcp", addr, client) })
	})
}

// fetch asks for a file several times, on two connections at a time.
func fetch(t *testing.T, content []byte, dial func() (net.Conn, error)) {
	var wg sync.WaitGroup
	for i := range 2 {
		wg.Add(1)
		go func() {
			defer wg.Done()
			c, err := dial()
			if err != nil {
				t.Error(err)
				return
			}
			defer c.Close()
			c.SetDeadline(time.Now().Add(patience))
			r := bufio.NewReader(c)
			for round := range 3 {
				io.WriteString(c, "GET /file HTTP/1.1\r\nHost: a\r\n\r\n")
				time.Sleep(time.Duration(i) * 30 * time.Millisecond)
				answer, err := http.ReadResponse(r, nil)
				if err != nil {
					t.Errorf("round %d: %v", round, err)
					return
				}
				if got, err := io.ReadAll(answer.Body); err != nil || !bytes.Equal(got, content) {
					t.Errorf("round %d: %d bytes, %v", round, len(got), err)
					return
				}
			}
		}()
	}
	wg.Wait()
}

// A reader that is slower than the engine's Linger time gets all of a file, though the
// connection closes behind it and its idle time is short.
func TestFileToASlowReader(t *testing.T) {
	path, content := testFile(t, 12_000_000)
	h := http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) { http.ServeFile(w, r, path) })
	for name, h := range map[string]http.Handler{"goroutine": h, "loop": httpd.OnLoop(h)} {
		for _, closing := range []string{"Connection: close\r\n", ""} {
			t.Run(name+" "+closing, func(t *testing.T) {
				t.Parallel()
				engine := rondo.Engine{Linger: 50 * time.Millisecond}
				if err := engine.Start(); err != nil {
					t.Fatal(err)
				}
				defer engine.Close()
				s := httpd.Server{HTTP: &http.Server{Handler: h, IdleTimeout: 50 * time.Millisecond}}
				ln, err := engine.Listen("tcp", "127.0.0.1:0", rondo.SocketOptions{SendBuffer: 64 << 10}, s.Open)
				if err != nil {
					t.Fatal(err)
				}
				c, err := net.Dial("tcp", ln.Addr().String())
				if err != nil {
					t.Fatal(err)
				}
				defer c.Close()
				c.(*net.TCPConn).SetReadBuffer(64 << 10)
				c.SetDeadline(time.Now().Add(patience))
				io.WriteString(c, "GET /file HTTP/1.1\r\nHost: a\r\n"+closing+"\r\n")
				time.Sleep(500 * time.Millisecond)
				answer, err := http.ReadResponse(bufio.NewReader(c), nil)
				if err != nil {
					t.Fatal(err)
				}
				if got, err := io.ReadAll(answer.Body); err != nil || !bytes.Equal(got, content) {
					t.Errorf("%d bytes, %v", len(got), err)
				}
			})
		}
	}
}

// A client that goes away, or a time limit, ends the sending of a file, and the handler hears
// of it.
func TestFileIsGivenUp(t *testing.T) {
	path, _ := testFile(t, 20_000_000)
	result := make(chan error, 1)
	for name, limit := range map[string]time.Duration{"gone": 0, "late": 200 * time.Millisecond} {
		t.Run(name, func(t *testing.T) {
			addr := serve(t, &http.Server{Handler: withFile(path, func(w http.ResponseWriter, f *os.File) {
				if limit > 0 {
					http.NewResponseController(w).SetWriteDeadline(time.Now().Add(limit))
				}
				w.Header().Set("Content-Length", "20000000")
				_, err := io.Copy(w, f)
				result <- err
			})})
			c, err := net.Dial("tcp", addr)
			if err != nil {
				t.Fatal(err)
			}
			defer c.Close()
			io.WriteString(c, "GET / HTTP/1.1\r\nHost: a\r\n\r\n")
			if limit == 0 {
				io.ReadFull(c, make([]byte, 1000))
				c.Close()
			}
			select {
			case err := <-result:
				if err == nil {
					t.Error("the handler hears nothing")
				}
			case <-time.After(time.Minute):
				t.Fatal("the handler waits for ever")
			}
		})
	}
}
