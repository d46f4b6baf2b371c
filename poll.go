package rondo

import (
	"errors"
	"fmt"
	"log/slog"
	"net"
	"os"
	"slices"

	"github.com/rondo-go/rondo/internal/backend"
	"github.com/rondo-go/rondo/internal/sys"
)

// Events are conditions of a descriptor that a Poll watches.
type Events uint8

const (
	// Readable: a read would not block; there are bytes, the end, or an error.
	Readable Events = backend.Readable
	// Writable: a write would not block; there is room for at least a byte, or an error.
	Writable Events = backend.Writable
	// Failed is reported once, last and alone, if the descriptor cannot be watched any
	// more. Poll.Err returns the error.
	Failed Events = 1 << 7
)

// A Poll watches a descriptor. Only its loop may call its methods.
type Poll struct {
	loop *Loop
	f    func(Events)
	mask Events // Readable and Writable, as watched for
	op   backend.Op
	shut backend.Op
	err  error

	flying bool // op is in flight
	inside bool // f is running
	closed bool
}

// Poll watches a descriptor and calls f on the loop with those Events of mask that hold:
// for a pipe, a terminal, an eventfd, timerfd, inotify or signalfd, a socket of another
// library. It calls f in every turn in which one holds (level-triggered), so f reads or
// writes, or removes that Event by Modify. A hang-up or an error sets all Events of mask:
// the next read or write returns it.
//
// Make the descriptor non-blocking, since another reader or writer may be quicker; Poll
// does not. The loop watches a duplicate, so fd may be closed and its number used again.
// The open file behind it stays open until the Poll is closed, too.
//
// Files and directories are refused with syscall.EPERM: they are always ready, and block
// all the same. On Windows and the simulated network, which have no descriptors, the error
// is errors.ErrUnsupported. If f panics, the Poll is closed.
func (l *Loop) Poll(fd int, mask Events, f func(Events)) (*Poll, error) {
	l.check()
	if f == nil {
		return nil, fmt.Errorf("rondo: poll descriptor %d: f is nil: want a function to call", fd)
	}
	if l.stopping {
		return nil, fmt.Errorf("rondo: poll descriptor %d: loop: %w", fd, ErrClosed)
	}
	file, err := l.backend.Watch(fd)
	if err != nil {
		return nil, fmt.Errorf("rondo: poll descriptor %d: %w", fd, err)
	}
	p := &Poll{loop: l, f: f, mask: mask & (Readable | Writable)}
	p.op = backend.Op{File: file, Owner: (*pollOwner)(p)}
	l.polls[p] = struct{}{}
	p.submit()
	return p, nil
}

// submit watches for mask, if it is not empty.
func (p *Poll) submit() {
	if p.closed || p.flying || p.inside || p.mask == 0 {
		return
	}
	p.flying = true
	p.op.Kind = backend.PollIn + backend.Kind(p.mask-Readable)
	p.loop.backend.Submit(&p.op)
}

// Mask returns the Events watched for.
func (p *Poll) Mask() Events {
	p.loop.check()
	return p.mask
}

// Err returns, after Failed, why the descriptor cannot be watched any more.
func (p *Poll) Err() error {
	p.loop.check()
	return p.err
}

// Modify sets the Events to watch for; 0 stops watching for now. It returns ErrClosed
// after Close.
func (p *Poll) Modify(mask Events) error {
	p.loop.check()
	if p.closed {
		return ErrClosed
	}
	p.mask = mask & (Readable | Writable)
	if p.flying && p.op.Kind.Polls() != int(p.mask) {
		p.loop.backend.Cancel(&p.op)
	}
	p.submit()
	return nil
}

// Close stops watching: f is not called any more. It does not close fd: the caller does.
func (p *Poll) Close() {
	p.loop.check()
	if p.closed {
		return
	}
	p.closed = true
	p.shut = backend.Op{Kind: backend.Close, File: p.op.File, Owner: (*pollOwner)(p)}
	p.loop.backend.Submit(&p.shut)
}

// pollOwner is a Poll, as the owner of its ops.
type pollOwner Poll

// Complete handles the completions of polls, then of Close.
func (o *pollOwner) Complete(c *backend.Completion) {
	p := (*Poll)(o)
	p.loop.begin(nil)
	if c.Op == &p.shut {
		delete(p.loop.polls, p)
		return
	}
	p.flying = false
	switch {
	case p.closed:
		return
	case c.Err == nil:
		if got := Events(c.N) & p.mask; got != 0 {
			p.call(got)
		}
	case !errors.Is(c.Err, backend.ErrCanceled):
		p.err = c.Err
		p.Close()
		p.loop.call(p, func() { p.f(Failed) })
		return
	}
	p.submit()
}

// call calls f. A panic of f closes p: f would panic again in every turn.
func (p *Poll) call(got Events) {
	p.inside = true
	p.loop.call(p, func() { p.f(got) })
	p.inside = false
}

func (p *Poll) brokenBy(error) { p.Close() }

func (p *Poll) logAttr() slog.Attr { return slog.Int("poll", int(p.mask)) }

// sockets is a Listener with the methods of bridge.Listener, which has their docs.
type sockets Listener

// Files implements bridge.Listener.
func (s *sockets) Files() ([]*os.File, error) {
	s.engine.mustNotBeOnLoop("Files", "")
	files, err := filesOf(s.acceptors, func(a *acceptor) (*Loop, backend.File) { return a.loop, a.op.File })
	if err != nil {
		return nil, fmt.Errorf("rondo: the socket of listener %s cannot be passed on: %w", s.network, err)
	}
	return files, nil
}

// filesOf duplicates the descriptors of sockets. where returns a socket's loop and File.
func filesOf[T any](all []T, where func(T) (*Loop, backend.File)) (files []*os.File, err error) {
	for _, one := range all {
		l, file := where(one)
		alive := l.do(func() {
			err = l.backend.Control(file, func(fd uintptr) error {
				f, err := sys.DuplicateFile(fd)
				if err == nil {
					files = append(files, f)
				}
				return err
			})
		})
		if !alive {
			err = ErrClosed
		}
		if err != nil {
			for _, f := range files {
				f.Close()
			}
			return nil, err
		}
	}
	return files, nil
}

// keepFile makes Close of a socket leave its file. It runs on the loop.
func (l *Loop) keepFile(f backend.File) {
	if k, ok := l.backend.(backend.FileKeeper); ok {
		k.KeepFile(f)
	}
}

// KeepFile implements bridge.Listener.
func (s *sockets) KeepFile() {
	for _, a := range s.acceptors {
		a.loop.do(func() { a.loop.keepFile(a.op.File) })
	}
}

// IsStill implements bridge.Listener.
func (s *sockets) IsStill() bool {
	for _, a := range s.acceptors {
		still := false
		if a.loop.do(func() { still = a.idle || a.closing }) && !still {
			return false
		}
	}
	// Of a connection that has left its acceptor, the loop that gets it knows.
	return !slices.ContainsFunc(s.engine.loops, func(l *Loop) bool { return l.expected.Load() > 0 })
}

// packets is a PacketConn with the methods of bridge.Packets, which has their docs.
type packets PacketConn

// Files implements bridge.Packets.
func (p *packets) Files() ([]*os.File, error) {
	p.loop.engine.mustNotBeOnLoop("Files", "")
	files, err := filesOf(p.group.conns, func(c *PacketConn) (*Loop, backend.File) { return c.loop, c.file })
	if err != nil {
		return nil, fmt.Errorf("rondo: the socket %s cannot be passed on: %w", (*PacketConn)(p), err)
	}
	return files, nil
}

// KeepFile implements bridge.Packets.
func (p *packets) KeepFile() {
	for _, c := range p.group.conns {
		c.loop.do(func() { c.loop.keepFile(c.file) })
	}
}

// SetPaused implements bridge.Packets.
func (p *packets) SetPaused(on bool) {
	for _, c := range p.group.conns {
		c.loop.do(func() {
			if on {
				c.Pause()
			} else {
				c.Resume()
			}
		})
	}
}

// AttachPacket implements bridge.Loop.
func (r *reactor) AttachPacket(network string, socket net.PacketConn, handler any) (any, error) {
	l, g := (*Loop)(r), new(packetGroup)
	address := socket.LocalAddr().String()
	c, err := l.openPacket(network, handler.(PacketHandler), g, func(b backend.PacketBackend) (backend.File, net.Addr, error) {
		return b.ListenPacket(network, address, &backend.Socket{Packets: socket})
	})
	if err == nil && !g.made() { // the engine was closed meanwhile
		g.close(nil)
		err = ErrClosed
	}
	if err != nil {
		socket.Close() // again, if it is not that the loop has ended
		return nil, packetError("attach", network, address, err)
	}
	l.Post(func() { // if the loop has ended, Closed was called
		l.keepFile(c.file)
		c.read()
	})
	return c, nil
}
