package fdpass

import (
	"errors"
	"fmt"
	"io"
	"net"
	"time"

	"github.com/rondo-go/rondo"
	"github.com/rondo-go/rondo/internal/sys"
)

// Bounds of a Channel. They bound its memory and its descriptors, whatever the peer does.
const (
	MaxFiles  = 64       // files of a message
	MaxBytes  = 16 << 20 // bytes of a message: data, and the unread bytes of a connection
	MaxQueued = 256      // messages not sent yet
)

// A Handler receives a Channel's messages. Its methods run on the loop.
type Handler interface {
	// Message handles a message. m and m.Data are valid until Message returns.
	// Then the Channel closes the files that were not taken from m.
	Message(ch *Channel, m *Message)
	// Closed is the last call, made exactly once. err is nil after Close, and
	// if the peer closed between two messages.
	Closed(ch *Channel, err error)
}

var (
	// ErrFull is the error of sending while MaxQueued messages wait to be sent. The done
	// function of one of them may send again.
	ErrFull = fmt.Errorf("fdpass: %d messages wait for the peer: send again when one is done", MaxQueued)
	// ErrTooMuch is the error of a message beyond MaxFiles or MaxBytes.
	ErrTooMuch = fmt.Errorf("fdpass: the message is too large: want at most %d files and %d MiB", MaxFiles, MaxBytes>>20)
	// ErrProtocol ends a Channel whose peer does not behave like a Channel.
	ErrProtocol = errors.New("fdpass: the peer does not speak this package's protocol, or sent files that no message announced")
)

// A Channel is one end of a unix connection that carries messages with files in
// both directions. Call its methods on its loop only.
type Channel struct {
	loop    *rondo.Loop
	handler Handler
	fd      int
	poll    *rondo.Poll
	forget  func() // undoes Loop.OnClose
	err     error  // the reason to end
	state   state
	due     bool // the end of the turn calls flush
	retry   *rondo.Timer
	linger  *rondo.Timer

	out    []*outgoing
	in     []byte // received bytes of an incomplete message
	rights []int  // received descriptors of incomplete messages
}

// A Channel is open, then closing, then closed. Close makes it closing: it
// sends the queued messages and reads no more.
type state uint8

const (
	open state = iota
	closing
	closed
)

// New makes a Channel of nc, on the loop that calls it. The Channel then owns
// nc; if New fails, the caller still does.
func New(l *rondo.Loop, nc *net.UnixConn, h Handler) (*Channel, error) {
	fail := func(err error) (*Channel, error) { return nil, fmt.Errorf("fdpass: %w", err) }
	switch {
	case nc == nil:
		return fail(errors.New("New: nc is nil: want a connection"))
	case h == nil:
		return fail(errors.New("New: h is nil: want a Handler"))
	}
	if network := nc.LocalAddr().Network(); network != "unix" {
		return fail(fmt.Errorf("New: nc is a %s connection: want a unix stream", network))
	}
	fd, err := sys.Duplicate(nc)
	if err != nil {
		return fail(err)
	}
	ch := &Channel{loop: l, handler: h, fd: fd}
	if ch.poll, err = l.Poll(fd, rondo.Readable, ch.ready); err != nil {
		sys.Close(fd)
		return fail(err)
	}
	nc.Close()
	ch.forget = l.OnClose(func() { ch.end(rondo.ErrClosed) })
	return ch, nil
}

// Loop returns the loop that the Channel belongs to. Any goroutine may call it.
func (ch *Channel) Loop() *rondo.Loop { return ch.loop }

// Queued returns the number of messages that wait to be sent.
func (ch *Channel) Queued() int { return len(ch.out) }

// lingerTime is how long Close waits for a peer that does not read.
const lingerTime = 5 * time.Second

// Close sends the queued messages, for at most five seconds, and then closes.
// It does not deliver messages that arrive meanwhile.
func (ch *Channel) Close() {
	if ch.state != open {
		return
	}
	ch.state = closing
	ch.linger = ch.loop.AfterFunc(lingerTime, func() { ch.end(errLinger) })
	ch.flushSoon()
}

var errLinger = fmt.Errorf("fdpass: the peer did not read the queued messages within %v of Close: %w", lingerTime, rondo.ErrLinger)

// Abort closes the Channel now and drops the queued messages. Closed gets err,
// or net.ErrClosed if err is nil.
func (ch *Channel) Abort(err error) {
	if ch.state == closed || ch.err != nil {
		return
	}
	if err == nil {
		err = rondo.ErrClosed
	}
	ch.state, ch.err = closing, err
	ch.flushSoon()
}

// guard ends the Channel if a user's function panics. Defer it before calling
// users' functions, and set *returned after them.
func (ch *Channel) guard(returned *bool) {
	if !*returned {
		ch.end(errPanicked)
	}
}

var errPanicked = errors.New("fdpass: a Handler's method or a done function panicked")

// ready is the Poll's function.
func (ch *Channel) ready(ev rondo.Events) {
	returned := false
	defer ch.guard(&returned)
	ch.serve(ev)
	returned = true
}

func (ch *Channel) serve(ev rondo.Events) {
	switch {
	case ev&rondo.Failed != 0:
		ch.end(ch.poll.Err())
		return
	case ev&rondo.Writable != 0:
		ch.flush()
	}
	if ev&rondo.Readable != 0 && ch.state == open {
		ch.read()
	}
	ch.watch()
}

// watch sets the Poll to the events that the Channel waits for.
func (ch *Channel) watch() {
	var mask rondo.Events
	if ch.state == open {
		mask = rondo.Readable
	}
	if len(ch.out) > 0 && ch.retry == nil {
		mask |= rondo.Writable
	}
	if ch.state != closed && ch.poll.Mask() != mask {
		ch.poll.Modify(mask)
	}
}

// hear delivers what the peer has sent before it closed its end: a send may find that first.
func (ch *Channel) hear() {
	buf := buffers.Get(ch.loop)
	for range mostHeard {
		if ch.state != open {
			return
		}
		n, rights, again, err := sys.RecvRights(ch.fd, buf.bytes, buf.control)
		ch.rights = append(ch.rights, rights...)
		if err != nil || again || n == 0 {
			return
		}
		ch.in = append(ch.in, buf.bytes[:n]...)
		if ch.deliver() != nil {
			return
		}
	}
}

// mostHeard is more receives than the system's buffer of a unix socket takes.
const mostHeard = 4096

// end closes the Channel, and calls the done functions and Closed.
func (ch *Channel) end(err error) {
	if ch.state == closed {
		return
	}
	ch.state = closed
	ch.forget()
	ch.poll.Close()
	for _, t := range []*rondo.Timer{ch.retry, ch.linger} {
		if t != nil {
			t.Stop()
		}
	}
	sys.Close(ch.fd)
	closeAll(ch.rights)
	ch.in, ch.rights = nil, nil
	defer ch.handler.Closed(ch, err)
	if err == nil || err == io.EOF {
		err = rondo.ErrClosed
	}
	out := ch.out
	ch.out = nil
	for _, o := range out {
		closeAll(o.rights)
	}
	tellAll(out, err)
}

// tellAll calls each message's done function, even if one of them does not
// return.
func tellAll(out []*outgoing, err error) {
	if len(out) > 0 {
		defer tellAll(out[1:], err)
		out[0].tell(err)
	}
}

func closeAll(fds []int) {
	for _, fd := range fds {
		if fd >= 0 {
			sys.CloseShared(fd) // its owner may have set SO_LINGER
		}
	}
}
