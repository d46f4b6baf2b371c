package std

import (
	"iter"
	"net"
	"os"
	"syscall"
	"time"

	"github.com/rondo-go/rondo/internal/backend"
	"github.com/rondo-go/rondo/internal/sys"
)

// A file is a listener, a connection, a watched descriptor, or a socket that Connect
// will connect. It belongs to the loop.
//
//	open     Submit accepts Ops
//	closing  a Close or Reset was submitted: end is set, Ops in flight are
//	         hurried, new ones get ErrClosed
//	closed   Next took the last Op in flight: the socket is closed, and the
//	         completion of end posted
//	gone     Next returned that completion: the slot is free
type file struct {
	b  *Backend
	id backend.File

	conn    net.Conn  // nil: not connected
	slow    bool      // conn is foreign: its CloseWrite and Close may block
	shared  bool      // see backend.Handle.Shared
	reader  *reader   // nil before the first Recv
	sender  func()    // the method value f.send, kept so that a Send allocates nothing
	accept  *acceptor // nil if not a listener
	dial    *dialer   // nil if not made by Socket
	watched *watched  // nil if not made by Watch
	packet  *packets  // nil if not a datagram socket

	// Ops in flight, from submission until Next returns their last completion.
	in   *backend.Op     // Recv, Accept, Connect or poll
	out  *backend.SendOp // Send
	shut *backend.Op     // Shutdown waiting for out
	end  *backend.Op     // Close or Reset

	ending    bool // a CloseWrite is running
	postponed bool // in waits for Return of the lent buffer
	endHeld   bool // in has found the end of the stream; see holds
	// A past deadline was set to end an Op, or may be left from the connection's
	// previous owner.
	readStopped, writeStopped bool
}

// past is a deadline that ends blocking calls.
var past = time.Unix(1, 0)

// completed updates f for a result that Next is about to return.
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
		if f.endHeld {
			f.endHeld = false
			f.b.post(result{op: f.in, file: f, held: true})
		}
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
		c.Err = backend.ErrClosed // Close hurried it, not Cancel
	}
	f.finishIfIdle()
}

// holds keeps the end of the stream back until the Send in flight has completed, if the connection
// can send nothing more. A system reports a reset only once. If the goroutine of the Send has got
// it, the Recv finds the end of the stream, which is then not the peer's: the engine knows so when
// the Send completes first. A type's Write may keep the error to itself, so the end is held once.
func (f *file) holds(r *result) bool {
	if r.held || f.out == nil || r.op.Kind != backend.Recv || r.n > 0 || r.err != nil {
		return false
	}
	switch conn := f.conn.(type) {
	case *net.TCPConn:
		f.endHeld = hungUp(conn)
	case *foreign:
		f.endHeld = conn.hungUp()
	}
	return f.endHeld
}

// hungUp is sys.HungUp of a TCP connection, and false of others: a unix socket or a pipe that hangs
// up was not reset.
func hungUp(conn syscall.Conn) (is bool) {
	sys.Control(conn, func(fd uintptr) error { is = sys.IsInternet(fd) && sys.HungUp(fd); return nil })
	return is
}

// close starts to close f.
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

// idle reports whether nothing is in flight, so that no goroutine uses the socket.
func (f *file) idle() bool {
	return f.in == nil && f.out == nil && f.shut == nil && !f.ending && (f.packet == nil || f.packet.out == nil)
}

// finishIfIdle closes the socket of a closing file if nothing is in flight on it. Then
// the close does not block, unless f is slow.
func (f *file) finishIfIdle() {
	if !f.idle() {
		return
	}
	if l, ok := f.conn.(interface{ SetLinger(int) error }); ok && f.end.Kind == backend.Reset {
		l.SetLinger(0) // fails only if the connection is already reset
	}
	f.apart(f.end, f.release)
}

// ownTimeout returns err, but turns ErrCanceled into a timeout if the loop did not
// cause it: a foreign connection may have its own deadlines.
func ownTimeout(err error, stopped bool) error {
	if err == backend.ErrCanceled && !stopped {
		return os.ErrDeadlineExceeded
	}
	return err
}

// apart calls do, on a goroutine if do may block, and posts its result as op's
// completion. If op is nil it posts nothing.
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

// exited returns the error of a call that ended by runtime.Goexit. Only a foreign
// connection's methods can do that.
func (f *file) exited() error { return f.conn.(*foreign).panicked() }

// release frees everything f has. Blocked goroutines end; their calls leave the socket
// before it closes.
func (f *file) release() (err error) {
	if f.reader != nil {
		close(f.reader.recvs)
	}
	if f.packet != nil {
		f.packet.release()
	}
	if f.conn != nil {
		return CloseConn(f.conn, f.shared)
	}
	if f.watched != nil {
		return sys.Close(f.watched.fd)
	}
	if a := f.accept; a != nil {
		if addr, ok := a.listener.Addr().(*net.UnixAddr); ok && a.options.Listener == nil && !a.keepsFile {
			sys.Unlink(addr.Name)
		}
		err = a.listener.Close()
	}
	return err
}

// CloseConn closes conn. It does not wait for the peer if conn is package net's.
func CloseConn(conn net.Conn, shared bool) error {
	if shared && isNets(conn) { // foreign.Close does this itself
		sys.NeverLinger(conn)
	}
	return conn.Close()
}

// abandon ends f and the Ops in flight on it, for Backend.Close, which waits for the
// goroutines.
func (f *file) abandon() {
	if f.end != nil && f.idle() {
		return // already released
	}
	f.hurryIn()
	f.hurryOut()
	f.apart(nil, f.release)
}

// table holds the files by slot; slots start at base. The first slot stays empty, so
// that no File is 0.
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

// get returns the file, or nil if the File is stale or never existed.
func (t *table) get(id backend.File) *file {
	i := id.Slot() - t.base // a huge number if the slot is below base
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
