package rtls_test

import (
	"bytes"
	"crypto/tls"
	"strings"
	"testing"

	"github.com/rondo-go/rondo"
	"github.com/rondo-go/rondo/rondotest"
	"github.com/rondo-go/rondo/rtls"
)

// A tunnel is a filter below TLS that delivers what it has when it is given output, as a
// protocol of questions and answers does.
type tunnel struct {
	rondo.PassThrough
	holds bool // what comes waits for output
	has   []byte
}

func (f *tunnel) Inbound(s *rondo.FilterPort, in []byte) (int, error) {
	if f.holds {
		f.has = append(f.has, in...)
		return len(in), nil
	}
	return f.PassThrough.Inbound(s, in)
}

func (f *tunnel) Outbound(s *rondo.FilterPort, out []byte) error {
	has := f.has
	f.has = nil
	s.Send(out)
	s.Deliver(has)
	return nil
}

// A record that comes while crypto/tls writes waits until it has written: one that asks
// for a KeyUpdate would lock what the write has locked.
func TestInputWhileWriting(t *testing.T) {
	n := rondotest.New(t, rondotest.Options{})
	config := serverConfig(tls.VersionTLS13)
	config.SessionTicketsDisabled = true
	low, h := &tunnel{}, &player{}
	n.Serve(":7", rondo.Filtered(h.open, func(*rondo.Conn) rondo.Filter { return low }, rtls.Server(config)))
	c := newByHand(t, n)
	c.write("before")
	c.expect("before")
	low.holds = true
	c.update(1)
	c.write("behind")
	n.Run()
	long := strings.Repeat("long ", 50_000)
	h.conn.Ref().Do(func(c *rondo.Conn) { c.Write([]byte(long)) })
	n.Run()
	low.holds = false
	got := c.readUntil(len(long) + len("behind"))
	if got != long+"behind" {
		t.Errorf("%d bytes came, and not those that were written", len(got))
	}
}

// Nor does it disturb a client that says hello.
func TestInputWhileSayingHello(t *testing.T) {
	n := rondotest.New(t, rondotest.Options{})
	n.Serve(":7", func(*rondo.Conn) rondo.Handler { return (&player{}) })
	low := &tunnel{has: []byte(plainText["fatal alert"])}
	// The client's hello is longer than a filter's output that is gathered.
	config := clientConfig()
	config.NextProtos = strings.Split(strings.Repeat(strings.Repeat("x", 200)+" ", 100), " ")[:100]
	failed := dial(n, "127.0.0.1:7", &player{}, func(*rondo.Conn) { t.Error("connected") },
		func(*rondo.Conn) rondo.Filter { return low }, rtls.Client(config))
	n.Run()
	if !isAlert(*failed) {
		t.Errorf("the client hears %v", *failed)
	}
}

// What a handler was given stays what it is while it writes to another connection, of
// which a tunnel has input at hand.
func TestInputOfOneWhileAnotherIsServed(t *testing.T) {
	n := rondotest.New(t, rondotest.Options{})
	low, other := &tunnel{}, &player{}
	n.Serve(":8", rondo.Filtered(other.open, func(*rondo.Conn) rondo.Filter { return low }, rtls.Server(serverConfig(0))))
	second := handshake(t, n.Dial("tcp", "127.0.0.1:8"), clientConfig())
	roundTrip(t, second, "hello")
	low.holds = true
	theirs := bytes.Repeat([]byte("theirs "), 1000)
	second.Write(theirs)
	n.Run()
	ours := bytes.Repeat([]byte("ours "), 1000)
	h := &player{data: func(_ *rondo.Conn, in []byte) (int, error) {
		before := bytes.Clone(in)
		if len(low.has) > 0 {
			other.conn.Write([]byte("x"))
			other.conn.Flush()
		}
		if !bytes.Equal(in, before) {
			t.Error("what the handler was given has changed under its hands")
		}
		return len(in), nil
	}}
	other.data = func(_ *rondo.Conn, in []byte) (int, error) { return len(in), nil }
	serveBeside(n, other.conn.Loop().Engine(), h)
	first := handshake(t, n.Dial("tcp", "127.0.0.1:7"), clientConfig())
	first.Write(ours)
	n.Run()
	if !bytes.Equal(h.got, ours) || !bytes.HasSuffix(other.got, theirs) {
		t.Errorf("%d bytes of %d came, and %d of %d", len(h.got), len(ours), len(other.got), len(theirs))
	}
}

// serveBeside has e serve TLS with h.
func serveBeside(n *rondotest.Network, e *rondo.Engine, h *player) {
	n.Listen(e, "tcp", ":7", rondo.Filtered(h.open, rtls.Server(serverConfig(0))))
}
