package sim

import (
	"errors"
	"io"
	"net"
	"net/netip"
	"strings"
	"syscall"
	"testing"

	"github.com/rondo-go/rondo/internal/backend"
)

func dial(t *testing.T, n *Network, network, address string) *Conn {
	t.Helper()
	c, err := n.Dial(network, address, netip.Addr{})
	if err != nil {
		t.Fatal(err)
	}
	return c
}

// drain reads all bytes that have arrived.
func drain(c *Conn) (string, error) {
	var all strings.Builder
	buf := make([]byte, 1000)
	for {
		n, err := c.Read(buf)
		all.Write(buf[:n])
		if n == 0 || err != nil {
			return all.String(), err
		}
	}
}

func TestConnHalfClose(t *testing.T) {
	r := newRig(t, Options{Seed: 1})
	r.peer.Write([]byte("hello"))
	if err := r.peer.CloseWrite(); err != nil {
		t.Fatal(err)
	}
	got := ""
	for got != "hello" {
		s, err := r.recv()
		if err != nil || s == "" {
			t.Fatalf("%q, then %q, %v", got, s, err)
		}
		got += s
	}
	for range 2 { // the end of the stream repeats
		if s, err := r.recv(); s != "" || err != nil {
			t.Fatalf("after the end of the stream: %q, %v", s, err)
		}
	}
	if n, err := r.peer.Write([]byte("x")); n != 0 || !errors.Is(err, syscall.EPIPE) {
		t.Errorf("writing after CloseWrite: %d, %v", n, err)
	}
	if n, err := r.be.TrySend(r.file, []byte("bye")); n != 3 || err != nil {
		t.Fatal(n, err)
	}
	r.be.Submit(&backend.Op{Kind: backend.Close, File: r.file})
	r.completion()
	settle(r.net)
	if s, err := drain(r.peer); s != "bye" || err != io.EOF {
		t.Errorf("the peer got %q, %v", s, err)
	}
}

// TestBackpressure: a peer that does not read stops the sender until it reads again.
func TestBackpressure(t *testing.T) {
	r := newRig(t, Options{Seed: 1, Buffer: 1000})
	op := &backend.SendOp{Op: backend.Op{Kind: backend.Send, File: r.file}, Bufs: [][]byte{make([]byte, 1500)}}
	r.be.Send(op)
	settle(r.net)
	if r.be.Next(new(backend.Completion)) {
		t.Fatal("1500 bytes went into a connection that holds 1000")
	}
	if n := r.peer.Buffered(); n != 1000 {
		t.Fatalf("%d bytes arrived", n)
	}
	if n, err := r.be.TrySend(r.file, make([]byte, 1)); n != 0 || err != nil {
		t.Fatal("TrySend while a Send is in flight:", n, err)
	}
	drain(r.peer)
	if c := r.completion(); c.N != 1500 || c.Err != nil {
		t.Fatal(c.N, c.Err)
	}
	settle(r.net)
	if n := r.peer.Buffered(); n != 500 {
		t.Fatalf("%d more bytes arrived, want 500", n)
	}
	// The other direction.
	n, err := r.peer.Write(make([]byte, 1500))
	if n != 1000 || err != nil {
		t.Fatal(n, err)
	}
	if n, err := r.peer.Write(make([]byte, 1)); n != 0 || err != nil {
		t.Fatal(n, err)
	}
}

// TestCloseWithInputResets: Close with unread input resets the connection, as TCP does,
// and so does input that arrives after Close.
func TestCloseWithInputResets(t *testing.T) {
	for name, late := range map[string]bool{"unread": false, "after": true} {
		t.Run(name, func(t *testing.T) {
			r := newRig(t, Options{Seed: 1})
			if !late {
				r.peer.Write([]byte("hello"))
				settle(r.net)
			}
			r.be.Submit(&backend.Op{Kind: backend.Close, File: r.file})
			r.completion()
			if late {
				r.peer.Write([]byte("hello"))
			}
			settle(r.net)
			if _, err := drain(r.peer); !errors.Is(err, syscall.ECONNRESET) {
				t.Errorf("the peer's read error is %v", err)
			}
			_, err := r.peer.Write([]byte("x"))
			if !errors.Is(err, syscall.EPIPE) && !errors.Is(err, syscall.ECONNRESET) {
				t.Errorf("the peer's write error is %v", err)
			}
		})
	}
}

// TestConnReset: bytes that arrived before a reset remain readable.
func TestConnReset(t *testing.T) {
	r := newRig(t, Options{Seed: 1})
	r.peer.Write([]byte("hello"))
	settle(r.net)
	r.peer.Reset()
	settle(r.net)
	if a := r.be.RemoteAddr(r.file); a != nil {
		t.Errorf("the remote address is still %v", a)
	}
	if s, err := r.recv(); s != "hello" || err != nil {
		t.Errorf("%q, %v", s, err)
	}
	if s, err := r.recv(); s != "" || !errors.Is(err, syscall.ECONNRESET) {
		t.Errorf("%q, %v", s, err)
	}
	for name, f := range map[string]func() error{
		"Read":       func() error { _, err := r.peer.Read(make([]byte, 1)); return err },
		"Write":      func() error { _, err := r.peer.Write(make([]byte, 1)); return err },
		"Close":      r.peer.Close,
		"CloseWrite": r.peer.CloseWrite,
		"Reset":      r.peer.Reset,
	} {
		if err := f(); err != net.ErrClosed {
			t.Errorf("%s after Reset: %v", name, err)
		}
	}
}

func TestDialErrors(t *testing.T) {
	r := newRig(t, Options{Seed: 1})
	for address, want := range map[string]error{
		"tcp 127.0.0.1:1":  syscall.ECONNREFUSED,
		"unix @nobody":     syscall.ECONNREFUSED,
		"unix /no/file":    syscall.ENOENT,
		"tcp4 127.0.0.1:1": syscall.ECONNREFUSED,
	} {
		network, address, _ := strings.Cut(address, " ")
		c := dial(t, r.net, network, address)
		if over, _ := c.Connected(); over {
			t.Error("connected at once")
		}
		settle(r.net)
		if over, err := c.Connected(); !over || err != want {
			t.Errorf("%s %s: %v, %v, want %v", network, address, over, err, want)
		}
	}
	for address, want := range map[string]string{
		"udp 127.0.0.1:1":   "unknown network udp",
		"tcp 127.0.0.1":     "missing port",
		"tcp 127.0.0.1:x":   "port is not a number",
		"tcp example.com:1": "no names",
		"tcp4 [::1]:1":      "no suitable address",
		"tcp6 127.0.0.1:1":  "no suitable address",
	} {
		network, address, _ := strings.Cut(address, " ")
		if _, err := r.net.Dial(network, address, netip.Addr{}); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%s %s: %v, want %s", network, address, err, want)
		}
	}
}

// TestFullBacklog: a listener with a full queue does not answer. The dialing side tries
// again and finally gives up.
func TestFullBacklog(t *testing.T) {
	n := NewUndriven(Options{Seed: 1, Backlog: 2})
	be := n.Open()
	_, addr, err := be.Listen("tcp", ":0", nil)
	if err != nil {
		t.Fatal(err)
	}
	var conns []*Conn
	for range 3 {
		conns = append(conns, dial(t, n, "tcp", addr.String()))
	}
	be.Wait(be.Now().Add(20e9))
	waiting := 0
	for _, c := range conns {
		if over, err := c.Connected(); err != nil {
			t.Error(err)
		} else if !over {
			waiting++
		}
	}
	if waiting != 1 {
		t.Errorf("%d of 3 clients wait, with a backlog of 2; want 1", waiting)
	}
	be.Wait(be.Now().Add(100e9))
	for _, c := range conns {
		if _, err := c.Connected(); err == syscall.ETIMEDOUT {
			waiting--
		}
	}
	if waiting != 0 {
		t.Error("the third client did not give up")
	}
}

func TestListenAddresses(t *testing.T) {
	for _, test := range []struct {
		first, second string
		free          bool
	}{
		{"tcp 127.0.0.1:7", "tcp 127.0.0.1:7", false},
		{"tcp 127.0.0.1:7", "tcp 127.0.0.2:7", true},
		{"tcp 127.0.0.1:7", "tcp 127.0.0.1:8", true},
		{"tcp :7", "tcp 127.0.0.1:7", false},
		{"tcp 127.0.0.1:7", "tcp :7", false},
		{"tcp :7", "tcp4 :7", false},
		{"tcp4 :7", "tcp6 :7", true},
		{"tcp6 :7", "tcp4 127.0.0.1:7", true},
		{"tcp :7", "unix :7", true},
		{"unix @a", "unix @a", false},
		{"unix @a", "unix @b", true},
		{"tcp :0", "tcp :0", true},
		{"unix ", "unix ", true},
	} {
		be := NewUndriven(Options{}).Open()
		listen := func(s string) error {
			network, address, _ := strings.Cut(s, " ")
			_, _, err := be.Listen(network, address, nil)
			return err
		}
		if err := listen(test.first); err != nil {
			t.Fatal(err)
		}
		err := listen(test.second)
		if (err == nil) != test.free || err != nil && !errors.Is(err, syscall.EADDRINUSE) {
			t.Errorf("listening on %s, then on %s: %v", test.first, test.second, err)
		}
	}
}

// TestReusePort: listeners with one address share its connections.
func TestReusePort(t *testing.T) {
	n := NewUndriven(Options{Seed: 1})
	s := &backend.Socket{ReusePort: true}
	var all []*Backend
	address := ":0"
	for range 3 {
		be := n.Open()
		f, addr, err := be.Listen("tcp", address, s)
		if err != nil {
			t.Fatal(err)
		}
		address = addr.String()
		be.Submit(&backend.Op{Kind: backend.Accept, File: f})
		all = append(all, be)
	}
	if _, _, err := all[0].Listen("tcp", address, nil); !errors.Is(err, syscall.EADDRINUSE) {
		t.Errorf("listening without ReusePort: %v", err)
	}
	for range 60 {
		dial(t, n, "tcp", address)
	}
	settle(n)
	sum := 0
	for i, be := range all {
		be.Wait(0)
		got := 0
		for c := (backend.Completion{}); be.Next(&c); got++ {
			be.Discard(c.Conn)
		}
		if got == 0 {
			t.Errorf("listener %d got none of 60 connections", i)
		}
		sum += got
	}
	if sum != 60 {
		t.Errorf("%d of 60 connections were accepted", sum)
	}
}

// TestAddresses: both sides see the same addresses, of the dialed family.
func TestAddresses(t *testing.T) {
	for _, test := range []struct{ listen, network, dial, from, remote string }{
		{":7", "tcp", "127.0.0.1:7", "", "127.0.0.1"},
		{":7", "tcp", "[::1]:7", "", "::1"},
		{":7", "tcp", ":7", "", "127.0.0.1"},
		{":7", "tcp", "localhost:7", "192.0.2.1", "192.0.2.1"},
		{"192.0.2.9:7", "tcp4", "192.0.2.9:7", "", "192.0.2.9"},
	} {
		be := NewUndriven(Options{Seed: 1}).Open()
		f, _, err := be.Listen("tcp", test.listen, nil)
		if err != nil {
			t.Fatal(err)
		}
		from, _ := netip.ParseAddr(test.from)
		c, err := be.net.Dial(test.network, test.dial, from)
		if err != nil {
			t.Fatal(err)
		}
		r := &rig{t: t, net: be.net, be: be}
		be.Submit(&backend.Op{Kind: backend.Accept, File: f})
		h := r.completion().Conn
		if h.Peer.Addr().String() != test.remote || c.LocalAddr().String() != h.Peer.String() {
			t.Errorf("dialed %s from %q: peer is %v, local address %v", test.dial, test.from, h.Peer, c.LocalAddr())
		}
		file, err := be.Adopt(h)
		if err != nil {
			t.Fatal(err)
		}
		if be.RemoteAddr(file).String() != h.Peer.String() || be.LocalAddr(file).String() != c.RemoteAddr().String() {
			t.Errorf("dialed %s: addresses are %v and %v", test.dial, be.LocalAddr(file), be.RemoteAddr(file))
		}
	}
}

// TestForeignHandle: a Handle of another network, or of another backend, is refused.
func TestForeignHandle(t *testing.T) {
	r := newRig(t, Options{Seed: 1})
	other := NewUndriven(Options{}).Open()
	for _, h := range []backend.Handle{r.handle, {FD: 3}, {FD: -1, Obj: "x"}} {
		if f, err := other.Adopt(h); err == nil {
			t.Errorf("adopted %v as File %x", h, f)
		}
		other.Discard(h) // must do nothing
	}
}
