package sim

import (
	"errors"
	"sync"
	"testing"

	"github.com/rondo-go/rondo/internal/backend"
)

// server is a few small echo loops on the seam. The first loop accepts and distributes
// the connections.
type server struct {
	t     testing.TB
	loops []*loop
	done  sync.WaitGroup
	addr  string
	bad   int // accepts that failed
}

type loop struct {
	server *server
	be     *Backend
	accept backend.Op
	conns  map[*echo]bool

	mu    sync.Mutex
	inbox []func()
	ended bool // belongs to the loop
}

// serve starts loops that echo on address.
func serve(t testing.TB, n *Network, loops int, address string) *server {
	s := &server{t: t}
	for range loops {
		s.loops = append(s.loops, &loop{server: s, be: n.Open(), conns: map[*echo]bool{}})
	}
	s.done.Add(loops)
	for _, l := range s.loops {
		go l.run()
	}
	await(t, n, func() {
		listening := make(chan error)
		l := s.loops[0]
		l.post(func() {
			f, addr, err := l.be.Listen("tcp", address, nil)
			if err == nil {
				s.addr = addr.String()
				l.accept = backend.Op{Kind: backend.Accept, File: f, Owner: l}
				l.be.Submit(&l.accept)
			}
			listening <- err
		})
		if err := <-listening; err != nil {
			t.Error(err)
		}
	})
	return s
}

// stop ends the loops and the network.
func (s *server) stop(n *Network) {
	await(s.t, n, func() {
		for _, l := range s.loops {
			l.post(func() { l.ended = true })
		}
		s.done.Wait()
	})
	if err := n.Close(); err != nil {
		s.t.Error(err)
	}
}

func await(t testing.TB, n *Network, f func()) {
	t.Helper()
	if err := n.Await(f); err != nil {
		t.Fatal(err)
	}
}

func (l *loop) post(f func()) {
	l.mu.Lock()
	l.inbox = append(l.inbox, f)
	l.mu.Unlock()
	l.be.Wake()
}

func (l *loop) run() {
	defer l.server.done.Done()
	defer l.be.Close()
	var c backend.Completion
	for {
		for l.be.Next(&c) {
			c.Op.Owner.Complete(&c)
		}
		l.mu.Lock()
		inbox := l.inbox
		l.inbox = nil
		l.mu.Unlock()
		for _, f := range inbox {
			f()
		}
		if l.ended {
			break
		}
		if _, err := l.be.Wait(backend.Forever); err != nil {
			return
		}
	}
	// Handles that were posted and not yet adopted.
	l.mu.Lock()
	defer l.mu.Unlock()
	for _, f := range l.inbox {
		f()
	}
	l.inbox = nil
}

// Complete handles completions of the Accept.
func (l *loop) Complete(c *backend.Completion) {
	if !c.More {
		l.server.bad++
		l.be.Submit(&l.accept)
	}
	if c.Err != nil {
		return
	}
	h := c.Conn
	to := l.server.loops[h.Peer.Port()%uint16(len(l.server.loops))]
	if to == l {
		l.adopt(h)
	} else {
		to.post(func() { to.adopt(h) })
	}
}

func (l *loop) adopt(h backend.Handle) {
	f, err := l.be.Adopt(h)
	if err != nil {
		l.server.t.Error(err)
		return
	}
	e := &echo{loop: l, file: f}
	e.recv = backend.Op{Kind: backend.Recv, File: f, Owner: e}
	e.send.Op = backend.Op{Kind: backend.Send, File: f, Owner: e}
	e.close = backend.Op{Kind: backend.Close, File: f, Owner: e}
	e.shut = backend.Op{Kind: backend.Shutdown, File: f, Owner: e}
	l.conns[e] = true
	l.be.Submit(&e.recv)
}

// echo is a connection. It receives while it has nothing to send. From time to time it
// cancels a Recv, or uses a buffer of its own.
type echo struct {
	loop              *loop
	file              backend.File
	recv, close, shut backend.Op
	send              backend.SendOp
	out               []byte
	turns             int
	eof, failed       bool
}

func (e *echo) Complete(c *backend.Completion) {
	be := e.loop.be
	t := e.loop.server.t
	switch c.Op.Kind {
	case backend.Close:
		delete(e.loop.conns, e)
		return
	case backend.Recv:
		if c.Lent != nil {
			e.out = append(e.out, c.Lent[backend.Headroom:backend.Headroom+c.N]...)
			be.Return(c.Lent)
		} else if c.Err == nil {
			e.out = append(e.out, e.recv.Buf[:c.N]...)
		}
		e.eof = c.N == 0 && c.Err == nil
	case backend.Send:
		if c.Err == nil && c.N != len(e.out) {
			t.Errorf("Send completed with %d bytes of %d", c.N, len(e.out))
		}
		e.out = e.out[:0]
	case backend.Shutdown:
		be.Submit(&e.close)
		return
	}
	e.failed = e.failed || c.Err != nil && !errors.Is(c.Err, backend.ErrCanceled)
	switch {
	case e.failed:
		be.Submit(&e.close)
	case len(e.out) > 0:
		e.flush()
	case e.eof:
		be.Submit(&e.shut)
	default:
		e.receive()
	}
}

func (e *echo) receive() {
	be := e.loop.be
	e.turns++
	e.recv.Buf = nil
	if e.turns%3 == 0 {
		e.recv.Buf = make([]byte, 100)
	}
	be.Submit(&e.recv)
	if e.turns%5 == 0 {
		be.Cancel(&e.recv)
	}
}

func (e *echo) flush() {
	be := e.loop.be
	n, err := be.TrySend(e.file, e.out)
	if err != nil {
		e.failed = true
		be.Submit(&e.close)
		return
	}
	e.out = append(e.out[:0], e.out[n:]...)
	half := len(e.out) / 2
	e.send.Bufs = [][]byte{e.out[:half], e.out[half:]}
	be.Send(&e.send)
}
