package httpd

import (
	"bufio"
	"fmt"
	"io"
	"log"
	"net"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/rondo-go/rondo"
	"github.com/rondo-go/rondo/internal/pick"
)

// What a goroutine writes that the handler left behind, and that waits for a client that does not
// read, is sent or fails when the handler ends: nothing else need wake it. If it fails, the answer is
// broken off, since the next one would seem to be its rest.
func TestWriteLeftBehind(t *testing.T) {
	const much = 16 << 20
	name := filepath.Join(t.TempDir(), "file")
	if err := os.WriteFile(name, make([]byte, much), 0o600); err != nil {
		t.Fatal(err)
	}
	written, left := make(chan error), make(chan *exchange)
	h := http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.URL.Path == "/second" {
			io.WriteString(w, "second")
			return
		}
		if r.URL.RawQuery != "chunked" {
			w.Header().Set("Content-Length", fmt.Sprint(much))
		}
		go func() {
			if r.URL.Path != "/file" {
				_, err := w.Write(make([]byte, much))
				written <- err
				return
			}
			f, err := os.Open(name)
			if err == nil {
				_, err = io.Copy(w, f)
				f.Close()
			}
			written <- err
		}()
		x := w.(*exchange)
		for !locked(x, func() bool { return x.outCond != nil }) {
			time.Sleep(time.Millisecond)
		}
		left <- x
		if r.Method == "POST" {
			panic(http.ErrAbortHandler)
		}
	})
	try := func(t *testing.T, addr, request string) {
		c, err := net.Dial("tcp", addr)
		if err != nil {
			t.Fatal(err)
		}
		defer c.Close()
		c.SetDeadline(time.Now().Add(time.Minute))
		fmt.Fprintf(c, "%s HTTP/1.1\r\nHost: a\r\nContent-Length: 0\r\n\r\nGET /second HTTP/1.1\r\nHost: a\r\n\r\n", request)
		x := <-left
		for !locked(x, func() bool { return x.outOver }) {
			time.Sleep(time.Millisecond)
		}
		file := strings.Contains(request, "/file")
		if !file {
			select {
			case err = <-written:
			case <-time.After(time.Minute):
				t.Fatal("the Write still waits")
			}
			if err == nil {
				t.Error("the Write did not fail")
			}
		}
		r := bufio.NewReader(c)
		first, err := http.ReadResponse(r, nil)
		if err != nil {
			return // aborted before the client read anything
		}
		body, err := io.ReadAll(first.Body)
		if (err == nil) != file {
			t.Errorf("the answer, after %d bytes: %v", len(body), err)
		}
		if file {
			<-written
		}
	}
	for _, backend := range pick.Available() {
		for _, limit := range []time.Duration{0, time.Hour} {
			engine := rondo.Engine{Backend: backend, NumLoops: 1}
			s := Server{HTTP: &http.Server{Handler: h, WriteTimeout: limit, ErrorLog: log.New(io.Discard, "", 0)}}
			ln, err := engine.Listen("tcp", "127.0.0.1:0", rondo.SocketOptions{SendBuffer: 64 << 10}, s.Open)
			if err != nil {
				t.Fatal(err)
			}
			for _, request := range []string{"GET /bytes", "POST /bytes", "GET /bytes?chunked", "POST /file", "GET /file"} {
				t.Run(fmt.Sprint(backend, " ", limit, " ", request), func(t *testing.T) { try(t, ln.Addr().String(), request) })
			}
			engine.Close()
		}
	}
}

func locked(x *exchange, is func() bool) bool {
	x.outMu.Lock()
	defer x.outMu.Unlock()
	return is()
}
