package netconn_test

import (
	"context"
	"errors"
	"io"
	"net"
	"net/http"
	"net/rpc"
	"os"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/rondo-go/rondo"
	"github.com/rondo-go/rondo/internal/testkit"
	"github.com/rondo-go/rondo/netconn"
	"github.com/rondo-go/rondo/rtls"
)

// TestDialErrors: they are package net's, and nothing is left of the attempt.
func TestDialErrors(t *testing.T) {
	onEach(t, func(t *testing.T, backend string) {
		e := engine(t, &rondo.Engine{Backend: backend, NumLoops: 1, Logger: quietLog})
		// This one says nothing.
		silent, err := net.Listen("tcp", "127.0.0.1:0")
		must(t, err)
		defer silent.Close()
		// This one hangs up.
		rude, err := net.Listen("tcp", "127.0.0.1:0")
		must(t, err)
		defer rude.Close()
		go func() {
			for {
				c, err := rude.Accept()
				if err != nil {
					return
				}
				c.Write([]byte("this is no TLS"))
				c.Close()
			}
		}()

		d := netconn.Dialer{Engine: e}
		_, err = d.Dial("tcp", testkit.FreeAddress(t))
		is(t, err, "dial", syscall.ECONNREFUSED)

		d = netconn.Dialer{Engine: e, Options: netconn.Options{Filters: []rondo.FilterOpenFunc{rtls.Client(clientConfig())}}}
		ctx, cancel := context.WithTimeout(context.Background(), 20*time.Millisecond)
		defer cancel()
		_, err = d.DialContext(ctx, "tcp", silent.Addr().String())
		is(t, err, "dial", context.DeadlineExceeded)
		is(t, err, "dial", os.ErrDeadlineExceeded)
		var timeout net.Error
		if !errors.As(err, &timeout) || !timeout.Timeout() {
			t.Errorf("%v is no timeout", err)
		}
		ctx, cancel = context.WithCancel(context.Background())
		time.AfterFunc(10*time.Millisecond, cancel)
		_, err = d.DialContext(ctx, "tcp", silent.Addr().String())
		is(t, err, "dial", context.Canceled)

		limited := netconn.Dialer{Engine: e, Options: d.Options}
		limited.Socket.DialTimeout = 10 * time.Millisecond
		_, err = limited.Dial("tcp", silent.Addr().String())
		is(t, err, "dial", os.ErrDeadlineExceeded)

		if _, err = d.Dial("tcp", rude.Addr().String()); err == nil {
			t.Error("a handshake with no server of TLS")
		}
		d.Filters = []rondo.FilterOpenFunc{func(*rondo.Conn) rondo.Filter { return nil }}
		_, err = d.Dial("tcp", silent.Addr().String())
		is(t, err, "dial", net.ErrClosed)
		eventually(t, "nothing is left", func() bool { return e.Stats().Open == 0 })

		e.Close()
		_, err = d.Dial("tcp", silent.Addr().String())
		is(t, err, "dial", net.ErrClosed)
	})
}

// TestHTTP: net/http's server and client, unchanged, with keep-alive, bodies in both
// directions and an end in the middle.
func TestHTTP(t *testing.T) {
	everywhere(t, func(t *testing.T, e *rondo.Engine, k kind) {
		ln, err := netconn.Listen(e, "tcp", "127.0.0.1:0", netconn.Options{Filters: k.server})
		must(t, err)
		mux := http.NewServeMux()
		mux.HandleFunc("/echo", func(w http.ResponseWriter, r *http.Request) { io.Copy(w, r.Body) })
		mux.HandleFunc("/slow", func(w http.ResponseWriter, r *http.Request) { <-r.Context().Done() })
		server := &http.Server{Handler: mux}
		served := make(chan error, 1)
		go func() { served <- server.Serve(ln) }()
		d := netconn.Dialer{Engine: e, Options: netconn.Options{Filters: k.client}}
		transport := &http.Transport{DialContext: d.DialContext}
		client := &http.Client{Transport: transport, Timeout: patience}
		base := "http://" + ln.Addr().String()
		for _, size := range []int{0, 1, 1000, 1 << 20} {
			want := pattern(size)
			for range 3 {
				r, err := client.Post(base+"/echo", "", strings.NewReader(string(want)))
				must(t, err)
				got, err := io.ReadAll(r.Body)
				r.Body.Close()
				must(t, err)
				equal(t, got, want)
			}
		}
		ctx, cancel := context.WithTimeout(context.Background(), 20*time.Millisecond)
		defer cancel()
		r, err := http.NewRequestWithContext(ctx, "GET", base+"/slow", nil)
		must(t, err)
		if _, err := client.Do(r); !errors.Is(err, context.DeadlineExceeded) {
			t.Errorf("a request that was given up: %v", err)
		}
		transport.CloseIdleConnections()
		within(t, "Shutdown", func() {
			if err := server.Shutdown(context.Background()); err != nil {
				t.Error(err)
			}
		})
		if err := <-served; err != http.ErrServerClosed {
			t.Errorf("Serve: %v", err)
		}
		eventually(t, "all are gone", func() bool { return e.Stats().Open == 0 })
	})
}

// Arith is a service of net/rpc.
type Arith struct{}

// Double is its method.
func (Arith) Double(n int, reply *int) error {
	*reply = 2 * n
	return nil
}

// TestRPC: net/rpc's server and client, with many calls at once.
func TestRPC(t *testing.T) {
	everywhere(t, func(t *testing.T, e *rondo.Engine, k kind) {
		s, c := pair(t, e, k)
		server := rpc.NewServer()
		must(t, server.Register(Arith{}))
		go server.ServeConn(s)
		client := rpc.NewClient(c)
		calls := make([]*rpc.Call, 200)
		for i := range calls {
			calls[i] = client.Go("Arith.Double", i, new(int), nil)
		}
		within(t, "a call", func() {
			for i, call := range calls {
				<-call.Done
				if call.Error != nil || *call.Reply.(*int) != 2*i {
					t.Errorf("call %d: %v, %v", i, *call.Reply.(*int), call.Error)
				}
			}
		})
		must(t, client.Close())
	})
}
