package std

import (
	"iter"
	"net"
	"os"
	"time"

	"github.com/rondo-go/rondo/internal/backend"
	"github.com/rondo-go/rondo/internal/sys"
)

// A file is a socket: a listener, a connection, or what is to become one by
// Connect. It belongs to the loop.
//
//	open     Submit accepts Ops
//	closing  a Close or Reset was submitted: end is set, Ops in flight are
//	         hurried, new ones get ErrClosed
//	closed   the last Op in flight was taken by Next: the socket is closed, and
//	         end's completion posted
//	gone     Next handed that out: the slot is free
type file struct {
	b  *Backend
	id backend.File

	conn    net.Conn  // nil: not connected
	slow    bool      // conn is a foreign one: its CloseWrite and Close may block
	shared  bool      // see backend.Handle
	reader  *reader   // nil: no Recv yet
	sender  func()    // its method send, so that a Send allocates nothing
	accept  *acceptor // nil: not a listener
	dial    *dialer   // nil: not made by Socket
	watched *watched  // nil: not made by Watch
	packet  *packets  // nil: not a datagram socket

	// Ops in flight: from their submission until Next hands out the last of
	// their completions.
	in   *backend.Op     // Recv, Accept, Connect or a Poll
	out  *backend.SendOp // Send
	shut *backend.Op     // Shutdown, while it waits for out
	end  *backend.Op     // Close or Reset

	ending    bool // a CloseWrite is under way
	postponed bool // in waits for the lent buffer to come home
	// A deadline in the past was set to end an Op, or may have been left by
	// who had the connection before.
	readStopped, writeStopped bool
}

// past is a deadline that ends what blocks.
var past = time.Unix(1, 0)

// completed settles what a result, which Next is about to hand out, means for
// its file.
func (f *file) completed(r *result, c *backend.Completion) {
	switch r.op.Kind {
	case backend.PollIn, backend.PollOut, backend.PollBoth:
		f.in = nil
	case backend.Recv:
		f.in = nil
		c.Err = ownTimeout(c.Err, f.readStopped)
		if r.lent != nil {
			c.Lent = r.lent
			f.b.lender = f
		}
	case backend.Send:
		f.out = nil
		c.Err = ownTimeout(c.Err, f.writeStopped)
		if f.shut != nil {
			f.shutdown(f.shut)
			f.shut = nil
		}
	case backend.Accept:
		f.accepted(r, c)
	case backend.RecvFrom:
		f.in = nil
		f.b.packet = f.packet
	case backend.SendTo:
		f.packet.out = nil
	case backend.Shutdown:
		f.ending = false
	case backend.Connect:
		f.in = nil
		f.conn = r.conn
	case backend.Close, backend.Reset:
		f.b.files.remove(f.id)
		return
	}
	if f.end == nil {
		return
	}
	if c.Err == backend.ErrCanceled {
		c.Err = backend.ErrClosed // hurried for Close, not by Cancel
	}
	f.finishIfIdle()
}

// close begins the end of f.
func (f *file) close(op *backend.Op) {
	f.end = op
	if f.shut != nil {
		f.b.done(f.shut, backend.ErrClosed)
		f.shut = nil
	}
	f.hurryIn()
	f.hurryOut()
	f.finishIfIdle()
}

// idle reports whether nothing is in flight, and so no goroutine inside the
// socket.
func (f *file) idle() bool {
	return f.in == nil && f.out == nil && f.shut == nil && !f.ending && (f.packet == nil || f.packet.out == nil)
}

// finishIfIdle closes a closing file's socket when nothing is in flight on it:
// then closing it does not block, unless it is slow.
func (f *file) finishIfIdle() {
	if !f.idle() {
		return
	}
	if l, ok := f.conn.(interface{ SetLinger(int) error }); ok && f.end.Kind == backend.Reset {
		l.SetLinger(0) // fails only where the connection is reset already
	}
	f.apart(f.end, f.release)
}

// ownTimeout is err, unless that is a timeout which is none of the loop's doing: a
// connection may be of a type that has deadlines of its own.
func ownTimeout(err error, stopped bool) error {
	if err == backend.ErrCanceled && !stopped {
		return os.ErrDeadlineExceeded
	}
	return err
}

// apart calls do, on a goroutine if that may block, and posts what became of it as op's
// completion; nil: nobody is to know.
func (f *file) apart(op *backend.Op, do func() error) {
	if !f.slow {
		f.perform(op, do)
		return
	}
	f.b.workers.Add(1)
	go func() {
		defer f.b.workers.Done()
		f.perform(op, do)
	}()
}

func (f *file) perform(op *backend.Op, do func() error) {
	var err error
	returned := false
	defer func() {
		if !returned {
			err = f.exited()
		}
		if op != nil {
			f.b.post(result{op: op, file: f, err: plain(err)})
		}
	}()
	err = do()
	returned = true
}

// exited is the error of a call that has ended by runtime.Goexit: only a foreign
// connection's can.
func (f *file) exited() error { return f.conn.(*foreign).panicked() }

// release gives back all that f has. Blocked goroutines end; it waits for them
// to leave the socket.
func (f *file) release() (err error) {
	if f.reader != nil {
		close(f.reader.recvs)
	}
	if f.packet != nil {
		f.packet.release()
	}
	if f.conn != nil {
		return closeConn(f.conn, f.shared)
	}
	if f.watched != nil {
		return sys.Close(f.watched.fd)
	}
	if a := f.accept; a != nil {
		if addr, ok := a.listener.Addr().(*net.UnixAddr); ok && a.options.Listener == nil {
			sys.Unlink(addr.Name)
		}
		err = a.listener.Close()
	}
	return err
}

// closeConn closes conn, and does not wait for its peer if it is package net's own.
func closeConn(conn net.Conn, shared bool) error {
	if shared && isNets(conn) { // a foreign one does so itself
		sys.NeverLinger(conn)
	}
	return conn.Close()
}

// abandon ends f with what is in flight on it, for Backend.Close, which waits for
// the goroutines.
func (f *file) abandon() {
	if f.end != nil && f.idle() {
		return // released
	}
	f.hurryIn()
	f.hurryOut()
	f.apart(nil, f.release)
}

// table holds the files by slot, from base on. The first stays empty, so that
// File 0 is none.
type table struct {
	base  uint32
	slots []slot
	free  []uint32
}

type slot struct {
	file       *file // nil: free
	generation uint32
}

func (t *table) init() { t.slots = make([]slot, 1) }

// get is nil for a File that is stale or never was.
func (t *table) get(id backend.File) *file {
	i := id.Slot() - t.base // huge for one below it
	if i >= uint32(len(t.slots)) {
		return nil
	}
	s := &t.slots[i]
	if s.generation != id.Generation() {
		return nil
	}
	return s.file
}

func (t *table) add(f *file) backend.File {
	var i uint32
	if last := len(t.free) - 1; last >= 0 {
		i = t.free[last]
		t.free = t.free[:last]
	} else {
		i = uint32(len(t.slots))
		t.slots = append(t.slots, slot{})
	}
	s := &t.slots[i]
	s.generation++
	s.file = f
	f.id = backend.MakeFile(t.base+i, s.generation)
	return f.id
}

func (t *table) remove(id backend.File) {
	i := id.Slot() - t.base
	t.slots[i].file = nil
	t.free = append(t.free, i)
}

// all ranges over the files.
func (t *table) all() iter.Seq[*file] {
	return func(yield func(*file) bool) {
		for _, s := range t.slots {
			if s.file != nil && !yield(s.file) {
				return
			}
		}
	}
}
