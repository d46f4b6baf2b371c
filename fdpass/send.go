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

// A message is a header of 12 bytes, the data, and the unread bytes of a connection. Its
// files travel with the header's first byte. The header holds the version, the number of
// files, two zeros, and the lengths of the data and of the unread bytes, big-endian.
const (
	version    = 1
	headerSize = 12
)

// outgoing is a queued message.
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

// Send sends a message of bytes and files. A file is an *os.File, *net.TCPConn,
// *net.TCPListener or anything else with a descriptor. The caller may use data
// and files again when Send returns: the Channel has a copy and duplicates.
//
// If Send returns nil, done, unless it is nil, is called exactly once, on the
// loop, after Send has returned. Its argument is nil if the system has taken
// the message, else the reason why it will not. Send fails with ErrFull,
// ErrTooMuch, net.ErrClosed after Close or Abort, or with the error of a file.
func (ch *Channel) Send(data []byte, done func(error), files ...syscall.Conn) error {
	rights, err := ch.admit(len(data), files)
	if err == nil {
		ch.enqueue(&outgoing{bytes: frame(len(rights), data, nil), rights: rights, done: done})
	}
	return err
}

// SendConn sends a connection. If the connection comes from Conn.Detach or from
// rondo.PrefixConn, SendConn also sends the bytes read ahead; Message.Conn
// returns both. nc must be a connection of package net with a descriptor, or a
// PrefixConn of one. A *tls.Conn does not work, since its keys stay in this
// process.
//
// The Channel owns nc until it calls done, and nobody may read from nc. It
// calls done as Send does: with nil, after it has sent nc and closed it here;
// or with the reason and the unsent connection, including its bytes, which
// belongs to the caller again. If SendConn returns an error, nc is unchanged.
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
		return fmt.Errorf("fdpass: send a %T: it has no descriptor", inner)
	}
	rights, err := ch.admit(len(data)+size, []syscall.Conn{file})
	if err != nil {
		return err
	}
	rest := make([]byte, size)
	defer func() { closeAll(rights) }() // nc.Read may panic
	io.ReadFull(nc, rest)               // does not block: nc holds these bytes
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

// frame encodes a message.
func frame(files int, data, unread []byte) []byte {
	b := make([]byte, headerSize, headerSize+len(data)+len(unread))
	b[0], b[1] = version, byte(files)
	binary.BigEndian.PutUint32(b[4:], uint32(len(data)))
	binary.BigEndian.PutUint32(b[8:], uint32(len(unread)))
	return append(append(b, data...), unread...)
}

// admit checks whether a message may be sent, and duplicates its files.
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
	defer func() { closeAll(made) }() // a file's methods may panic
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

// flushSoon makes the end of the turn send the queued messages.
func (ch *Channel) flushSoon() {
	if !ch.due {
		ch.due = true
		ch.loop.Defer(func() {
			ch.due = false
			ch.goOn()
		})
	}
}

// goOn sends, and sets the Poll to the events that the Channel then waits for.
func (ch *Channel) goOn() {
	returned := false
	defer ch.guard(&returned)
	ch.flush()
	ch.watch()
	returned = true
}

// pause is how long the Channel waits if the system takes no more descriptors.
// The system limits the descriptors on their way, over all sockets of a user.
const pause = 10 * time.Millisecond

// sendsPerTurn is the number of sends of a Channel in a turn. A done function
// may send the next message, so the queue alone does not bound them.
const sendsPerTurn = 64

// flush sends the queued messages, as far as the system takes them. A closing
// Channel ends once its queue is empty.
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
			ch.hear()
			if ch.err == nil { // the Handler did not call Abort
				ch.err = fmt.Errorf("fdpass: %w", err)
			}
			ch.end(ch.err)
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
