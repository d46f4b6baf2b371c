package fdpass

import (
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"net"
	"syscall"
	"time"

	"github.com/rondo-go/rondo"
	"github.com/rondo-go/rondo/internal/sys"
)

// A message is a header of 12 bytes, data, and the unread bytes of a connection. Its
// files go with the header's first byte. The header is the version, the number of files,
// two zeros, and the lengths of both runs of bytes, big-endian.
const (
	version    = 1
	headerSize = 12
)

// outgoing is a message to be sent.
type outgoing struct {
	bytes  []byte
	sent   int
	rights []int // duplicates; nil once the system has them
	done   func(error)
}

func (o *outgoing) tell(err error) {
	if o.done != nil {
		o.done(err)
	}
}

// Send sends a message of bytes and files: an *os.File, *net.TCPConn, *net.TCPListener
// or whatever else has a descriptor. data and files are the caller's again when Send
// returns: the Channel has duplicates.
//
// done, unless it is nil, is called exactly once if Send returns no error, on the loop
// and not before Send returns: with nil when the system has taken the message, or with
// the reason why it will not. The error is ErrFull, ErrTooMuch, net.ErrClosed after Close
// or Abort, or a file's.
func (ch *Channel) Send(data []byte, done func(error), files ...syscall.Conn) error {
	rights, err := ch.admit(len(data), files)
	if err == nil {
		ch.enqueue(&outgoing{bytes: frame(len(rights), data, nil), rights: rights, done: done})
	}
	return err
}

// SendConn sends a connection, with the bytes that are in front of it if it comes from
// Conn.Detach or from rondo.PrefixConn: Message.Conn gives both. It must be one of package
// net's that has a descriptor, or PrefixConn's of such a one: a *tls.Conn's secrets stay in
// this process.
//
// Until done is called nc is the Channel's, and nobody may read from it. done is called
// as Send's: with nil, when nc has been sent and closed here; or with the reason why it
// was not and the connection, which is the caller's again, with its bytes. If SendConn
// returns an error, nc is as it was.
func (ch *Channel) SendConn(data []byte, nc net.Conn, done func(net.Conn, error)) error {
	inner, size := nc, 0
	if u, ok := nc.(interface {
		Buffered() int
		NetConn() net.Conn
	}); ok {
		inner, size = u.NetConn(), u.Buffered()
	}
	file, ok := inner.(syscall.Conn)
	if !ok {
		return fmt.Errorf("fdpass: a %T has no descriptor", inner)
	}
	rights, err := ch.admit(len(data)+size, []syscall.Conn{file})
	if err != nil {
		return err
	}
	rest := make([]byte, size)
	defer func() { closeAll(rights) }() // nc's Read is the user's, perhaps
	io.ReadFull(nc, rest)               // it has them at hand
	o := &outgoing{bytes: frame(1, data, rest), rights: rights}
	rights = nil
	o.done = func(err error) {
		switch {
		case err != nil && done != nil && size > 0:
			done(rondo.PrefixConn(inner, rest), err)
		case err != nil && done != nil:
			done(nc, err)
		case done != nil:
			defer done(nil, nil)
			fallthrough
		default:
			inner.Close()
		}
	}
	ch.enqueue(o)
	return nil
}

// frame is a message's bytes.
func frame(files int, data, unread []byte) []byte {
	b := make([]byte, headerSize, headerSize+len(data)+len(unread))
	b[0], b[1] = version, byte(files)
	binary.BigEndian.PutUint32(b[4:], uint32(len(data)))
	binary.BigEndian.PutUint32(b[8:], uint32(len(unread)))
	return append(append(b, data...), unread...)
}

// admit duplicates the files of a message that may be sent.
func (ch *Channel) admit(size int, files []syscall.Conn) (rights []int, err error) {
	switch {
	case ch.state != open:
		return nil, fmt.Errorf("fdpass: send: %w", rondo.ErrClosed)
	case size > MaxBytes || len(files) > MaxFiles:
		return nil, ErrTooMuch
	case len(ch.out) >= MaxQueued:
		return nil, ErrFull
	}
	made := make([]int, 0, len(files))
	defer func() { closeAll(made) }() // a file's methods are the user's, perhaps
	for _, f := range files {
		fd, err := sys.Duplicate(f)
		if err != nil {
			return nil, fmt.Errorf("fdpass: send a %T: %w", f, err)
		}
		made = append(made, fd)
	}
	rights, made = made, nil
	return rights, nil
}

func (ch *Channel) enqueue(o *outgoing) {
	ch.out = append(ch.out, o)
	ch.flushSoon()
}

// flushSoon has what is queued sent at the turn's end.
func (ch *Channel) flushSoon() {
	if !ch.due {
		ch.due = true
		ch.loop.Defer(func() {
			ch.due = false
			ch.goOn()
		})
	}
}

// goOn sends, and waits for what there is to wait for.
func (ch *Channel) goOn() {
	returned := false
	defer ch.guard(&returned)
	ch.flush()
	ch.watch()
	returned = true
}

// pause is how long the Channel waits when the system takes no more descriptors: they
// are counted while they are under way, for all of a user's sockets.
const pause = 10 * time.Millisecond

// sendsPerTurn is how often a Channel sends before others have their turn: what is told
// that a message was sent may send the next.
const sendsPerTurn = 64

// flush sends what is queued, as far as the system takes it, and closes if that was
// what remained to be done.
func (ch *Channel) flush() {
	for sends := 0; sends < sendsPerTurn && len(ch.out) > 0 && ch.state != closed && ch.err == nil && ch.retry == nil; sends++ {
		o := ch.out[0]
		n, err := sys.SendRights(ch.fd, o.bytes[o.sent:], o.rights)
		switch {
		case errors.Is(err, sys.ErrBusy):
			ch.retry = ch.loop.AfterFunc(pause, func() {
				ch.retry = nil
				ch.goOn()
			})
			return
		case err != nil:
			ch.end(fmt.Errorf("fdpass: %w", err))
			return
		case n == 0:
			return
		}
		closeAll(o.rights)
		o.rights = nil
		if o.sent += n; o.sent == len(o.bytes) {
			ch.out[0] = nil
			ch.out = ch.out[1:]
			o.tell(nil)
		}
	}
	if ch.err != nil || ch.state == closing && len(ch.out) == 0 {
		ch.end(ch.err)
	}
}
