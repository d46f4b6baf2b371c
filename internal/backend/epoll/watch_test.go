//go:build linux

package epoll

import (
	"errors"
	"io"
	"net"
	"os"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"github.com/rondo-go/rondo/internal/backend"
	"github.com/rondo-go/rondo/internal/backend/readiness"
	"github.com/rondo-go/rondo/internal/sys"
)

// counting counts the calls of Watch, and the removals by Forget.
type counting struct {
	*poller
	changes, removed int
}

func (c *counting) Forget(fd int, f backend.File, alone bool) {
	if !alone {
		c.removed++
	}
	c.poller.Forget(fd, f, alone)
}

func (c *counting) Watch(fd int, f backend.File, old, now readiness.Interest) error {
	c.changes++
	return c.poller.Watch(fd, f, old, now)
}

// TestTurnsAreRegisteredOnce: input may arrive while no Recv is in flight, as when
// reads follow writes. That must not register the connection anew for each message. A
// connection that nobody reads is unwatched at its second message.
func TestTurnsAreRegisteredOnce(t *testing.T) {
	p, err := newPoller()
	if err != nil {
		t.Fatal(err)
	}
	c := &counting{poller: p}
	b := readiness.NewEdge(c)
	defer b.Close()
	file, peer := pair(t, b)
	send := func() {
		if _, err := unix.Write(peer, []byte("x")); err != nil {
			t.Fatal(err)
		}
	}
	var done backend.Completion
	turn := func() bool {
		if _, err := b.Wait(b.Now()); err != nil {
			t.Fatal(err)
		}
		return b.Next(&done)
	}
	op := &backend.Op{Kind: backend.Recv, File: file, Buf: make([]byte, 10)}
	const rounds = 5
	for i := range rounds {
		if i > 0 {
			send()
		}
		if turn() { // the input came before the Recv
			t.Fatal("an Op completed before any was submitted")
		}
		b.Submit(op)
		if i == 0 {
			send()
		}
		if !turn() || done.Op != op || done.N != 1 || done.Err != nil {
			t.Fatalf("round %d: %+v", i, done)
		}
	}
	if c.changes != 1 {
		t.Errorf("%d rounds called Watch %d times, want once", rounds, c.changes)
	}
	for range rounds {
		send()
		turn()
	}
	if c.changes != 2 {
		t.Errorf("a connection that nobody reads: %d calls of Watch, want one", c.changes-1)
	}
	b.Submit(op)
	if !turn() || done.N != rounds {
		t.Fatalf("after input without a Recv: %+v", done)
	}
}

// TestDialedIsRegisteredOnce: one system call registers a dialed connection for all that it
// does, and none removes it.
func TestDialedIsRegisteredOnce(t *testing.T) {
	p, err := newPoller()
	if err != nil {
		t.Fatal(err)
	}
	c := &counting{poller: p}
	b := readiness.NewEdge(c)
	defer b.Close()
	ln, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer ln.Close()
	file, err := b.Socket("tcp4", nil, &backend.Socket{})
	if err != nil {
		t.Fatal(err)
	}
	completed := func(op *backend.Op, n int) {
		t.Helper()
		var done backend.Completion
		for !b.Next(&done) {
			if _, err := b.Wait(b.Now().Add(time.Minute)); err != nil {
				t.Fatal(err)
			}
		}
		if done.Op != op || done.N != n || done.Err != nil {
			t.Fatalf("%+v, want kind %d and %d bytes", done, op.Kind, n)
		}
	}
	connect := &backend.ConnectOp{Op: backend.Op{Kind: backend.Connect, File: file}, Addr: ln.Addr()}
	b.Connect(connect)
	completed(&connect.Op, 0)
	peer, err := ln.Accept()
	if err != nil {
		t.Fatal(err)
	}
	defer peer.Close()
	const much = 32 << 20 // more than the system takes at once
	for range 3 {
		recv := &backend.Op{Kind: backend.Recv, File: file, Buf: make([]byte, 10)}
		b.Submit(recv)
		if _, err := peer.Write([]byte("x")); err != nil {
			t.Fatal(err)
		}
		completed(recv, 1)
		send := &backend.SendOp{Op: backend.Op{Kind: backend.Send, File: file}, Bufs: [][]byte{make([]byte, much)}}
		b.Send(send)
		go io.CopyN(io.Discard, peer, much)
		completed(&send.Op, much)
	}
	shut := &backend.Op{Kind: backend.Close, File: file}
	b.Submit(shut)
	completed(shut, 0)
	if c.changes != 1 || c.removed != 0 {
		t.Errorf("Watch was called %d times, and Forget removed %d registrations; want 1 and none", c.changes, c.removed)
	}
}

// TestSharedIsForgotten: a registration lives as long as its file. If somebody else has the
// file too, closing the descriptor must remove it.
func TestSharedIsForgotten(t *testing.T) {
	for _, way := range []string{"adopted", "Control"} {
		p, err := newPoller()
		if err != nil {
			t.Fatal(err)
		}
		b := readiness.NewEdge(p)
		defer b.Close()
		file, peer := pair(t, b)
		other := -1
		duplicate := func(fd uintptr) error {
			other, err = unix.Dup(int(fd))
			return err
		}
		if err := b.Control(file, duplicate); err != nil {
			t.Fatal(err)
		}
		defer unix.Close(other)
		if way == "adopted" { // by Control's duplicate
			h, err := b.Release(file)
			if err != nil {
				t.Fatal(err)
			}
			if file, err = b.Adopt(h); err != nil {
				t.Fatal(err)
			}
		}
		isForgotten(t, b, p, file, peer)
	}
}

// TestSentIsForgotten: a process that has sent a connection to this one closes its descriptor
// some time later, perhaps after this one. The closed connection does not wake the loop until then.
func TestSentIsForgotten(t *testing.T) {
	p, err := newPoller()
	if err != nil {
		t.Fatal(err)
	}
	b := readiness.NewEdge(p)
	defer b.Close()
	fds, err := unix.Socketpair(unix.AF_UNIX, unix.SOCK_STREAM|unix.SOCK_NONBLOCK|unix.SOCK_CLOEXEC, 0)
	if err != nil {
		t.Fatal(err)
	}
	defer unix.Close(fds[1])
	theirs, err := unix.Dup(fds[0])
	if err != nil {
		t.Fatal(err)
	}
	defer unix.Close(theirs)
	file, err := b.Adopt(backend.Handle{FD: fds[0]}) // as for bridge.Loop.AttachSole
	if err != nil {
		t.Fatal(err)
	}
	isForgotten(t, b, p, file, fds[1])
}

// isForgotten closes a connection, and wants no event when its peer has written.
func isForgotten(t *testing.T, b backend.Backend, p *poller, file backend.File, peer int) {
	t.Helper()
	b.Submit(&backend.Op{Kind: backend.Recv, File: file})
	b.Submit(&backend.Op{Kind: backend.Close, File: file})
	var done backend.Completion
	for done.Op == nil || done.Op.Kind != backend.Close {
		if !b.Next(&done) {
			if _, err := b.Wait(b.Now()); err != nil {
				t.Fatal(err)
			}
		}
	}
	if _, err := unix.Write(peer, []byte("x")); err != nil {
		t.Fatal(err)
	}
	if n, err := p.Wait(10 * time.Millisecond); n != 0 || err != nil {
		t.Errorf("%d events of a closed connection, error %v", n, err)
	}
}

// pair returns one end of a connection on b, and the descriptor of the other end.
func pair(t *testing.T, b backend.Backend) (file backend.File, peer int) {
	t.Helper()
	ln, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer ln.Close()
	nc, err := net.Dial("tcp", ln.Addr().String())
	if err != nil {
		t.Fatal(err)
	}
	h, err := b.Import(nc)
	if err != nil {
		t.Fatal(err)
	}
	if file, err = b.Adopt(h); err != nil {
		t.Fatal(err)
	}
	other, err := ln.Accept()
	if err != nil {
		t.Fatal(err)
	}
	defer other.Close()
	if peer, err = sys.Duplicate(other.(*net.TCPConn)); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { unix.Close(peer) })
	return file, peer
}

// refusing fails to watch for output, as the kernel does without memory or above the
// user's limit (fs.epoll.max_user_watches).
type refusing struct{ *poller }

func (r refusing) Watch(fd int, f backend.File, old, now readiness.Interest) error {
	if now&^old&readiness.Out != 0 {
		return os.NewSyscallError("epoll_ctl", unix.ENOSPC)
	}
	return r.poller.Watch(fd, f, old, now)
}

// TestUnwatchedSendFails: a Send that must wait fails if its descriptor cannot be
// watched; otherwise it would wait for ever. The next Send fails too.
func TestUnwatchedSendFails(t *testing.T) {
	p, err := newPoller()
	if err != nil {
		t.Fatal(err)
	}
	b := readiness.NewEdge(refusing{p})
	defer b.Close()
	file, _ := pair(t, b)
	for range 2 {
		op := &backend.SendOp{Op: backend.Op{Kind: backend.Send, File: file}, Bufs: [][]byte{make([]byte, 32<<20)}}
		b.Send(op)
		var c backend.Completion
		for turns := 0; !b.Next(&c); turns++ {
			if turns == 10 {
				t.Fatal("the Send does not complete")
			}
			if _, err := b.Wait(b.Now()); err != nil {
				t.Fatal(err)
			}
		}
		if c.Op != &op.Op || c.N != op.Sent || !errors.Is(c.Err, unix.ENOSPC) {
			t.Fatalf("%d of %d bytes sent, error %v", c.N, 32<<20, c.Err)
		}
	}
}

// TestOutputOfNextEvent: an event that completes a Send and then a Recv leaves the next event's
// output alone.
func TestOutputOfNextEvent(t *testing.T) {
	b, err := New()
	if err != nil {
		t.Fatal(err)
	}
	defer b.Close()
	ln, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer ln.Close()
	next := func() backend.Completion {
		t.Helper()
		var done backend.Completion
		for end := b.Now().Add(10 * time.Second); !b.Next(&done); {
			if b.Now() >= end {
				t.Fatal("nothing completes")
			}
			if _, err := b.Wait(end); err != nil {
				t.Fatal(err)
			}
		}
		return done
	}
	// A connection whose output is full, and one more Send waits.
	full := func() (send *backend.SendOp, peer net.Conn, sent int64) {
		file, err := b.Socket("tcp4", nil, &backend.Socket{})
		if err != nil {
			t.Fatal(err)
		}
		connect := &backend.ConnectOp{Op: backend.Op{Kind: backend.Connect, File: file}, Addr: ln.Addr()}
		b.Connect(connect)
		if done := next(); done.Err != nil {
			t.Fatal(done.Err)
		}
		if peer, err = ln.Accept(); err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { peer.Close() })
		for piece := make([]byte, 1<<20); ; {
			n, err := b.TrySend(file, piece)
			if err != nil {
				t.Fatal(err)
			}
			if sent += int64(n); n < len(piece) {
				break
			}
		}
		send = &backend.SendOp{Op: backend.Op{Kind: backend.Send, File: file}, Bufs: [][]byte{{1}}}
		b.Send(send)
		return send, peer, sent
	}
	first, firstPeer, n := full()
	second, secondPeer, m := full()
	recv := &backend.Op{Kind: backend.Recv, File: first.File, Buf: make([]byte, 10)}
	b.Submit(recv)
	var done backend.Completion
	if _, err := b.Wait(b.Now()); err != nil || b.Next(&done) {
		t.Fatalf("completed too early: %+v, %v", done, err)
	}
	if _, err := firstPeer.Write([]byte("x")); err != nil {
		t.Fatal(err)
	}
	for peer, n := range map[net.Conn]int64{firstPeer: n, secondPeer: m} {
		if _, err := io.CopyN(io.Discard, peer, n); err != nil {
			t.Fatal(err)
		}
	}
	ended := map[*backend.Op]bool{}
	for range 3 {
		done := next()
		if done.Err != nil {
			t.Fatal(done.Err)
		}
		ended[done.Op] = true
	}
	if !ended[&first.Op] || !ended[&second.Op] || !ended[recv] {
		t.Errorf("completed are %v", ended)
	}
}
