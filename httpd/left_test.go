package httpd

import (
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

// A goroutine that the handler left behind, and whose Write waits for a client that does not read,
// fails when the handler ends: nothing else need wake it. A file is the connection's, and ends with it.
func TestWriteLeftBehind(t *testing.T) {
	name := filepath.Join(t.TempDir(), "file")
	if err := os.WriteFile(name, make([]byte, 16<<20), 0o600); err != nil {
		t.Fatal(err)
	}
	failed, left := make(chan error), make(chan bool)
	h := http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		w.Header().Set("Content-Length", fmt.Sprint(64<<20))
		go func() {
			if r.URL.Path[1:] != "file" {
				_, err := w.Write(make([]byte, 16<<20))
				failed <- err
				return
			}
			f, err := os.Open(name)
			if err != nil {
				failed <- err
				return
			}
			defer f.Close()
			_, err = io.Copy(w, f)
			failed <- err
		}()
		for x := w.(*exchange); ; time.Sleep(time.Millisecond) {
			x.outMu.Lock()
			waits := x.outCond != nil
			x.outMu.Unlock()
			if waits {
				break
			}
		}
		left <- true
		if r.Method == "POST" {
			panic(http.ErrAbortHandler)
		}
	})
	for _, backend := range pick.Available() {
		for _, limit := range []time.Duration{0, time.Hour} {
			engine := rondo.Engine{Backend: backend, NumLoops: 1}
			s := Server{HTTP: &http.Server{Handler: h, WriteTimeout: limit, ErrorLog: log.New(io.Discard, "", 0)}}
			ln, err := engine.Listen("tcp", "127.0.0.1:0", rondo.SocketOptions{SendBuffer: 64 << 10}, s.Open)
			if err != nil {
				t.Fatal(err)
			}
			for _, request := range []string{"GET /bytes", "POST /bytes", "POST /file", "GET /file"} {
				c, err := net.Dial("tcp", ln.Addr().String())
				if err != nil {
					t.Fatal(err)
				}
				fmt.Fprintf(c, "%s HTTP/1.1\r\nHost: a\r\nContent-Length: 0\r\n\r\n", request)
				<-left
				file := strings.HasSuffix(request, "file")
				if file {
					c.Close()
				}
				select {
				case err := <-failed:
					if err == nil && !file {
						t.Errorf("%s, %s, limit %v: the Write did not fail", backend, request, limit)
					}
				case <-time.After(time.Minute):
					t.Errorf("%s, %s, limit %v: the Write still waits", backend, request, limit)
				}
				c.Close()
			}
			engine.Close()
		}
	}
}
