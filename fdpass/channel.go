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

// Bounds of a Channel. A Channel's memory and descriptors are bounded by them,
// whatever its peer does.
const (
	MaxFiles  = 64       // of a message
	MaxBytes  = 16 << 20 // of a message: its data, and the unread bytes of a connection
	MaxQueued = 256      // messages that were not sent yet
)

// A Handler is told of a Channel's messages. Its methods run on the loop.
type Handler interface {
	// Message takes a message. m, and its Data, are valid until it returns; files that
	// were not taken from it are closed then.
	Message(ch *Channel, m *Message)
	// Closed is the last call, made exactly once. err is nil after Close, and if the
	// peer has closed between two messages.
	Closed(ch *Channel, err error)
}

var (
	// ErrFull is the error of sending while MaxQueued messages wait to be sent. What is
	// told of their end may send again.
	ErrFull = errors.New("fdpass: MaxQueued messages wait for the peer")
	// ErrTooMuch is the error of a message beyond MaxFiles or MaxBytes.
	ErrTooMuch = fmt.Errorf("fdpass: a message may have %d files and %d MiB of bytes", MaxFiles, MaxBytes>>20)
	// ErrProtocol ends a Channel whose peer sends what no Channel would.
	ErrProtocol = errors.New("fdpass: the peer does not speak this package's protocol, or sends files that no message has announced")
)

// A Channel is one end of a unix connection over which messages with files go in both
// directions. Its methods may be called on its loop only.
type Channel struct {
	loop    *rondo.Loop
	handler Handler
	fd      int
	poll    *rondo.Poll
	forget  func() // that it ends with the engine
	err     error  // why it ends
	state   state
	due     bool // flush is, at the turn's end
	retry   *rondo.Timer
	linger  *rondo.Timer

	out    []*outgoing
	in     []byte // received, and not a whole message
	rights []int  // that came with it
}

// A Channel is open, then closing (by Close: it sends what is queued and reads no
// more), then closed.
type state uint8

const (
	open state = iota
	closing
	closed
)

// New makes a Channel of nc, on the loop that calls it. nc is the Channel's from then
// on; on an error it is still the caller's.
func New(l *rondo.Loop, nc *net.UnixConn, h Handler) (*Channel, error) {
	fail := func(err error) (*Channel, error) { return nil, fmt.Errorf("fdpass: %w", err) }
	switch {
	case nc == nil:
		return fail(errors.New("New: nc is nil: want a connection"))
	case h == nil:
		return fail(errors.New("New: h is nil: want a Handler"))
	}
	if network := nc.LocalAddr().Network(); network != "unix" {
		return fail(fmt.Errorf("a %s connection is no stream: want unix", network))
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

// Loop is the loop that the Channel belongs to. Any goroutine may call it.
func (ch *Channel) Loop() *rondo.Loop { return ch.loop }

// Queued is how many messages wait to be sent.
func (ch *Channel) Queued() int { return len(ch.out) }

// lingerTime is how long Close waits for a peer that does not read.
const lingerTime = 5 * time.Second

// Close sends what is queued, up to five seconds long, and closes. Messages that come
// meanwhile are not delivered.
func (ch *Channel) Close() {
	if ch.state != open {
		return
	}
	ch.state = closing
	ch.linger = ch.loop.AfterFunc(lingerTime, func() { ch.end(errLinger) })
	ch.flushSoon()
}

var errLinger = fmt.Errorf("fdpass: the peer did not take what was sent in time: %w", rondo.ErrLinger)

// Abort closes now. What was queued is not sent.
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

// guard is to be deferred by what calls the user's functions: a panic in one of them
// ends the Channel.
func (ch *Channel) guard(returned *bool) {
	if !*returned {
		ch.end(errPanicked)
	}
}

var errPanicked = errors.New("fdpass: a function of the Channel's user panicked")

// ready is called by the Poll.
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

// watch waits for what there is to wait for.
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

// end closes the Channel, and tells everybody.
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

// tellAll tells each of its end, also if a function that is told does not return.
func tellAll(out []*outgoing, err error) {
	if len(out) > 0 {
		defer tellAll(out[1:], err)
		out[0].tell(err)
	}
}

func closeAll(fds []int) {
	for _, fd := range fds {
		if fd >= 0 {
			sys.CloseShared(fd) // whose it was may have had it linger
		}
	}
}
