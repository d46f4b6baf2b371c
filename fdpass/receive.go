package fdpass

import (
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"net"
	"os"

	"github.com/rondo-go/rondo"
	"github.com/rondo-go/rondo/internal/sys"
)

// A Message is a received message: bytes and files. It is valid while
// Handler.Message runs. A taken file belongs to its taker, which must close it.
type Message struct {
	// Data is the data that the peer passed to Send or SendConn.
	Data []byte

	unread []byte
	rights []int // -1: taken
}

var errTaken = errors.New("fdpass: the message has no such file, or the file was already taken")

// Files returns the number of files that came with the message.
func (m *Message) Files() int { return len(m.rights) }

// take hands over the i-th descriptor.
func (m *Message) take(i int) (int, error) {
	if i < 0 || i >= len(m.rights) || m.rights[i] < 0 {
		return -1, errTaken
	}
	fd := m.rights[i]
	m.rights[i] = -1
	return fd, nil
}

// File takes the i-th file, counted from 0.
func (m *Message) File(i int) (*os.File, error) {
	fd, err := m.take(i)
	if err != nil {
		return nil, err
	}
	return os.NewFile(uintptr(fd), "passed"), nil
}

// Conn takes the first file as a connection, for Loop.Attach or for use with
// package net. Reading from it first returns the bytes that SendConn sent
// along.
func (m *Message) Conn() (net.Conn, error) { return m.ConnAt(0) }

// ConnAt takes the i-th file, counted from 0, as a connection. Bytes of SendConn
// belong to the first one.
func (m *Message) ConnAt(i int) (net.Conn, error) {
	fd, err := m.take(i)
	if err != nil {
		return nil, err
	}
	nc, err := sys.NetConn(fd)
	if err != nil {
		return nil, fmt.Errorf("fdpass: %w", err)
	}
	if i == 0 && len(m.unread) > 0 {
		nc = rondo.PrefixConn(nc, append([]byte(nil), m.unread...))
	}
	return nc, nil
}

// Listener takes the i-th file as a listener, for Engine.AttachListener or for
// use with package net.
func (m *Message) Listener(i int) (net.Listener, error) {
	f, err := m.File(i)
	if err != nil {
		return nil, err
	}
	defer f.Close() // net.FileListener duplicates the descriptor
	ln, err := net.FileListener(f)
	if err != nil {
		return nil, fmt.Errorf("fdpass: %w", err)
	}
	return ln, nil
}

// buffers holds each loop's receive buffers for its Channels.
var buffers = rondo.LoopLocal[*buffer]{New: func(*rondo.Loop) *buffer {
	return &buffer{make([]byte, 64<<10), make([]byte, sys.RightsRoom)}
}}

type buffer struct{ bytes, control []byte }

// receivesPerTurn is the number of receives of a Channel in a turn.
const receivesPerTurn = 16

// read receives what has arrived.
func (ch *Channel) read() {
	buf := buffers.Get(ch.loop)
	for range receivesPerTurn {
		n, rights, again, err := sys.RecvRights(ch.fd, buf.bytes, buf.control)
		ch.rights = append(ch.rights, rights...)
		if err == nil && !again && n > 0 {
			ch.in = append(ch.in, buf.bytes[:n]...)
			err = ch.deliver()
		} else if err == nil && !again {
			if err = io.EOF; len(ch.in) > 0 {
				err = io.ErrUnexpectedEOF
			}
		}
		switch {
		case ch.state == closed:
			return
		case err == io.EOF:
			ch.end(nil)
			return
		case err != nil:
			ch.end(fmt.Errorf("fdpass: %w", err))
			return
		case again || ch.state != open:
			return
		}
	}
}

// deliver passes complete messages to the handler.
func (ch *Channel) deliver() error {
	done := 0
	for ch.state == open {
		m, size, err := parse(ch.in[done:], ch.rights)
		if err != nil {
			return err
		}
		if size == 0 {
			break
		}
		done += size
		if ch.rights = ch.rights[len(m.rights):]; len(ch.rights) == 0 {
			ch.rights = nil
		}
		ch.tell(m)
	}
	if done == len(ch.in) {
		ch.in = nil
	} else if done > 0 {
		ch.in = append([]byte(nil), ch.in[done:]...)
	}
	if len(ch.rights) > MaxFiles {
		return ErrProtocol
	}
	return nil
}

// tell passes a message to the handler, and closes the files that it does not
// take.
func (ch *Channel) tell(m *Message) {
	defer func() {
		closeAll(m.rights)
		*m = Message{}
	}()
	ch.handler.Message(ch, m)
}

// parse reads a message; size is 0 if the message is incomplete. It checks all
// announced numbers against the bounds.
func parse(in []byte, rights []int) (m *Message, size int, err error) {
	if len(in) < headerSize {
		return nil, 0, nil
	}
	files := int(in[1])
	data, unread := uint64(binary.BigEndian.Uint32(in[4:])), uint64(binary.BigEndian.Uint32(in[8:]))
	if in[0] != version || in[2] != 0 || in[3] != 0 || files > MaxFiles || files > len(rights) || data+unread > MaxBytes {
		return nil, 0, ErrProtocol
	}
	if size = headerSize + int(data+unread); len(in) < size {
		return nil, 0, nil
	}
	end := headerSize + int(data)
	return &Message{Data: in[headerSize:end:end], unread: in[end:size], rights: rights[:files:files]}, size, nil
}
