package proactor

import (
	"io"
	"net"
	"runtime"
	"testing"
	"time"

	"github.com/rondo-go/rondo"
)

// dialed returns both ends of a TCP connection.
func dialed(t *testing.T) (near, peer net.Conn) {
	t.Helper()
	ln, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer ln.Close()
	c, err := net.Dial("tcp", ln.Addr().String())
	if err != nil {
		t.Fatal(err)
	}
	peer, err = ln.Accept()
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { peer.Close() })
	return c, peer
}

// A connection at the address of an earlier one is not taken for that.
func TestIdentity(t *testing.T) {
	c, _ := dialed(t)
	id, ok := identify(c)
	if !ok {
		t.Fatalf("a %T has no identity", c)
	}
	c.Close()
	if again, _ := identify(c); again != id {
		t.Error("a connection that was closed is another one")
	}
	var r registry
	r.init()
	st := &stream{identity: id}
	r.descriptors[id.at] = st
	if r.get(c) != st {
		t.Error("a connection's stream is not found")
	}
	gone := *id.local.(*net.TCPAddr) // an equal Addr of another connection
	st.identity.local = &gone
	if r.get(c) != nil {
		t.Error("a connection got the stream of one that was at its address")
	}
}

// A connection that has become unreachable is closed, even if another one has its address
// before the queue notices, and even if the queue is closed by then.
func TestForgottenBehindAnother(t *testing.T) {
	e := &rondo.Engine{NumLoops: 1}
	q, err := New(e, Options{})
	if err != nil {
		t.Fatal(err)
	}
	defer e.Close()
	c, peer := dialed(t)
	if err := q.Write(c, []byte("x"), nil); err != nil {
		t.Fatal(err)
	}
	if _, err := q.Wait(t.Context()); err != nil {
		t.Fatal(err)
	}
	st := q.streams.get(c)
	q.mu.Lock()
	q.streams.descriptors[st.identity.at] = &stream{shard: st.shard}
	q.mu.Unlock()
	q.Close()
	st.forgotten()
	peer.SetReadDeadline(time.Now().Add(time.Minute))
	if got, err := io.ReadAll(peer); string(got) != "x" || err != nil {
		t.Errorf("the peer got %q, %v", got, err)
	}
	runtime.KeepAlive(c)
}
