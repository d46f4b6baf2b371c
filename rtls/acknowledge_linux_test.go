package rtls_test

import (
	"crypto/tls"
	"net"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"github.com/rondo-go/rondo"
	"github.com/rondo-go/rondo/internal/pick"
	"github.com/rondo-go/rondo/internal/sys"
	"github.com/rondo-go/rondo/rtls"
)

// A client with Nagle's algorithm need not wait before its first request: when the
// server's handshake has ended all of the client's is acknowledged.
func TestHandshakeIsAcknowledged(t *testing.T) {
	for _, backend := range pick.Available() {
		for name, test := range map[string]struct {
			version uint16
			resume  bool
			offLoop int
		}{
			"TLS 1.3":               {version: tls.VersionTLS13},
			"TLS 1.3, resumed":      {version: tls.VersionTLS13, resume: true},
			"TLS 1.3, off the loop": {version: tls.VersionTLS13, offLoop: 1},
			"TLS 1.2, resumed":      {version: tls.VersionTLS12, resume: true},
		} {
			t.Run(backend+"/"+name, func(t *testing.T) {
				done := make(chan struct{}, 1)
				open := func(c *rondo.Conn) rondo.Handler {
					c.Loop().Defer(func() { done <- struct{}{} }) // at the end of the turn
					return rondo.HandlerFunc((*rondo.Conn).Write)
				}
				e := &rondo.Engine{NumLoops: 1, Backend: backend}
				defer e.Close()
				o := &rtls.Options{OffLoop: test.offLoop}
				ln, err := e.Listen("tcp", "127.0.0.1:0", rondo.SocketOptions{}, rondo.Filtered(open, o.Server(serverConfig(test.version))))
				if err != nil {
					t.Fatal(err)
				}
				config := clientConfig()
				if test.resume {
					config.ClientSessionCache = tls.NewLRUClientSessionCache(1)
					c, _ := slowly(t, ln.Addr(), config)
					roundTrip(t, c, "a ticket comes with it")
					c.Close()
					<-done
				}
				c, raw := slowly(t, ln.Addr(), config)
				defer c.Close()
				select {
				case <-done:
				case <-time.After(20 * time.Second):
					t.Fatal("the server's handshake does not end")
				}
				if resumed := c.ConnectionState().DidResume; resumed != test.resume {
					t.Fatalf("resumed: %v", resumed)
				}
				if n := unacknowledged(t, raw); n != 0 {
					t.Errorf("%d of the client's segments are not acknowledged", n)
				}
				roundTrip(t, c, "ping")
			})
		}
	}
}

// The same for a server with Nagle's algorithm, whose message of TLS 1.2 is the last.
func TestClientsHandshakeIsAcknowledged(t *testing.T) {
	for _, backend := range pick.Available() {
		t.Run(backend, func(t *testing.T) {
			ln, err := net.Listen("tcp", "127.0.0.1:0")
			if err != nil {
				t.Fatal(err)
			}
			defer ln.Close()
			accepted := make(chan error, 1)
			var raw *net.TCPConn
			go func() {
				nc, err := ln.Accept()
				if err == nil {
					raw = nc.(*net.TCPConn)
					raw.SetNoDelay(false)
					err = tls.Server(raw, serverConfig(tls.VersionTLS12)).Handshake()
				}
				accepted <- err
			}()
			e := &rondo.Engine{NumLoops: 1, Backend: backend}
			defer e.Close()
			if err := e.Start(); err != nil {
				t.Fatal(err)
			}
			done := make(chan error, 1)
			for l := range e.Loops() {
				l.Post(func() {
					l.Dial("tcp", ln.Addr().String(), rondo.SocketOptions{}, rondo.FilteredDial(func(c *rondo.Conn, err error) rondo.Handler {
						l.Defer(func() { done <- err })
						return rondo.HandlerFunc(func(_ *rondo.Conn, in []byte) (int, error) { return len(in), nil })
					}, rtls.Client(clientConfig())))
				})
			}
			for _, c := range []chan error{accepted, done} {
				select {
				case err := <-c:
					if err != nil {
						t.Fatal(err)
					}
				case <-time.After(20 * time.Second):
					t.Fatal("the handshake does not end")
				}
			}
			defer raw.Close()
			if n := unacknowledged(t, raw); n != 0 {
				t.Errorf("%d of the server's segments are not acknowledged", n)
			}
		})
	}
}

// slowly connects with Nagle's algorithm and shakes hands.
func slowly(t *testing.T, addr net.Addr, config *tls.Config) (*tls.Conn, *net.TCPConn) {
	t.Helper()
	nc, err := net.Dial("tcp", addr.String())
	if err != nil {
		t.Fatal(err)
	}
	raw := nc.(*net.TCPConn)
	if err := raw.SetNoDelay(false); err != nil {
		t.Fatal(err)
	}
	return handshake(t, raw, config), raw
}

// unacknowledged is how many segments c has sent that the peer has not acknowledged.
func unacknowledged(t *testing.T, c *net.TCPConn) (n uint32) {
	t.Helper()
	err := sys.Control(c, func(fd uintptr) error {
		info, err := unix.GetsockoptTCPInfo(int(fd), unix.IPPROTO_TCP, unix.TCP_INFO)
		if err == nil {
			n = info.Unacked
		}
		return err
	})
	if err != nil {
		t.Fatal("TCP_INFO:", err)
	}
	return n
}
