package proactor

import (
	"net"
	"testing"
)

// TestIdentity: a connection at the address of one that is gone is not taken for it.
func TestIdentity(t *testing.T) {
	ln, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer ln.Close()
	c, err := net.Dial("tcp", ln.Addr().String())
	if err != nil {
		t.Fatal(err)
	}
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
	gone := *id.local.(*net.TCPAddr) // equal, and another one's
	st.identity.local = &gone
	if r.get(c) != nil {
		t.Error("a connection got the stream of one that was at its address")
	}
}
