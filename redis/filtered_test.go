package redis

import (
	"bufio"
	"crypto/tls"
	"fmt"
	"io"
	"log/slog"
	"net"
	"strings"
	"testing"
	"time"

	"github.com/rondo-go/rondo"
	"github.com/rondo-go/rondo/filter"
	"github.com/rondo-go/rondo/internal/pick"
	"github.com/rondo-go/rondo/internal/testcert"
	"github.com/rondo-go/rondo/rondotest"
	"github.com/rondo-go/rondo/rtls"
)

// A wrapping is a choice of filters between the server and the wire.
type wrapping struct {
	name    string
	filters []rondo.FilterOpenFunc
	client  func(net.Conn) net.Conn
}

func wrappings() []wrapping {
	a := testcert.New("a")
	server := &tls.Config{Certificates: []tls.Certificate{a.Issue(testcert.ECDSA, "localhost")}}
	client := &tls.Config{RootCAs: a.Pool(), ServerName: "localhost"}
	bare := func(c net.Conn) net.Conn { return c }
	return []wrapping{
		{"bare", nil, bare},
		{"counted", []rondo.FilterOpenFunc{new(filter.Count).Filter}, bare},
		{"TLS", []rondo.FilterOpenFunc{rtls.Server(server)}, func(c net.Conn) net.Conn { return tls.Client(c, client) }},
	}
}

// pipelined is a client that sends many requests with long replies, calls wait, and
// then reads all replies.
func pipelined(c net.Conn, requests, size int, wait func()) error {
	r := bufio.NewReader(c)
	value := strings.Repeat("x", size)
	fmt.Fprintf(c, "*3\r\n$3\r\nSET\r\n$1\r\nk\r\n$%d\r\n%s\r\n", size, value)
	if line, err := r.ReadString('\n'); line != "+OK\r\n" {
		return fmt.Errorf("SET: %q, %v", line, err)
	}
	if _, err := io.WriteString(c, strings.Repeat("*2\r\n$3\r\nGET\r\n$1\r\nk\r\n", requests)); err != nil {
		return err
	}
	wait()
	reply := fmt.Sprintf("$%d\r\n%s\r\n", size, value)
	got := make([]byte, len(reply))
	for i := range requests {
		if n, err := io.ReadFull(r, got); err != nil || string(got) != reply {
			return fmt.Errorf("reply %d of %d: %d bytes of %d: %v", i, requests, n, len(reply), err)
		}
	}
	return nil
}

// A client that sends many requests before it reads gets all replies, with any
// output limit and any filters.
func TestNetworkPipelinesThroughFilters(t *testing.T) {
	step := 7_500
	if testing.Short() {
		step = 40_000
	}
	for _, w := range wrappings() {
		t.Run(w.name, func(t *testing.T) {
			for size := 10_000; size <= 100_000; size += step {
				seeds(t, 1, func(t *testing.T, net *rondotest.Network, loops int) {
					serve(t, net, loops, &Server{}, w.filters...)
					for range min(loops, 2) {
						c := w.client(dial(t, net))
						if err := pipelined(c, 60, size, net.Run); err != nil {
							t.Errorf("%d loops, values of %d bytes: %v", loops, size, err)
						}
					}
				})
			}
		})
	}
}

func TestPipelinesThroughFilters(t *testing.T) {
	for _, backend := range pick.Available() {
		for _, w := range wrappings() {
			for _, loops := range []int{1, 2} {
				t.Run(fmt.Sprint(backend, "/", w.name, "/", loops, "loops"), func(t *testing.T) {
					t.Parallel()
					log := slog.New(slog.NewTextHandler(io.Discard, nil))
					s := &Server{Engine: &rondo.Engine{Backend: backend, NumLoops: loops, Linger: closingTime, Logger: log}, Logger: log}
					ln, err := s.Listen("tcp", "127.0.0.1:0", rondo.SocketOptions{SendBuffer: 32 << 10}, w.filters...)
					if err != nil {
						t.Fatal(err)
					}
					defer s.Engine.Close()
					defer s.Close()
					for _, size := range []int{10_000, 25_000, 47_500, 75_000} {
						for range loops { // the next connection is another loop's
							if testPipeline(t, w, ln.Addr().String(), size); t.Failed() {
								return
							}
						}
					}
				})
			}
		}
	}
}

// testPipeline gives the server some time to fill all buffers before it reads.
func testPipeline(t *testing.T, w wrapping, address string, size int) {
	raw, err := net.Dial("tcp", address)
	if err != nil {
		t.Fatal(err)
	}
	defer raw.Close()
	raw.(*net.TCPConn).SetReadBuffer(64 << 10)
	const patience = 2 * time.Minute
	raw.SetDeadline(time.Now().Add(patience))
	if err := pipelined(w.client(raw), 60, size, func() { time.Sleep(20 * time.Millisecond) }); err != nil {
		t.Errorf("values of %d bytes: %v", size, err)
	}
}
