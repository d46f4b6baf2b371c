package upgrade

import (
	"context"
	"encoding/binary"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net"
	"os"
	"sync/atomic"
	"syscall"
	"time"

	"github.com/rondo-go/rondo"
	"github.com/rondo-go/rondo/fdpass"
)

// A Channel is the connection between the processes of an upgrade, for either side.
type Channel struct {
	Loop   *rondo.Loop // of Pass
	Pass   *fdpass.Channel
	Gone   chan struct{} // Pass is closed
	why    error         // then; before, on the loop: why this process closes it
	closed atomic.Bool   // then, for those that do not wait
}

// ErrGone is the error of a Channel that the other process has closed.
var ErrGone = errors.New("the other process has ended, or has closed the connection")

// NewChannel returns a Channel to Open.
func NewChannel() *Channel {
	return &Channel{Gone: make(chan struct{})}
}

// Open makes the connection. The Channel owns nc if there is no error.
func (c *Channel) Open(l *rondo.Loop, nc *net.UnixConn, h fdpass.Handler) error {
	c.Loop = l
	err := errors.New("the engine has ended")
	c.Do(func() { c.Pass, err = fdpass.New(l, nc, h) })
	return err
}

// Do runs f on the Channel's loop, and waits.
func (c *Channel) Do(f func()) {
	done := make(chan struct{})
	if c.Loop.Post(func() { defer close(done); f() }) == nil {
		<-done
	}
}

// Send sends a message. If it cannot, the Channel ends.
func (c *Channel) Send(data []byte) {
	c.Do(func() {
		if err := c.Pass.Send(data, nil); err != nil {
			c.Pass.Abort(err)
		}
	})
}

// SendFiles sends a message with files, and waits until the system has taken it.
func (c *Channel) SendFiles(ctx context.Context, data []byte, files []*os.File) error {
	sent := make(chan struct{})
	c.Do(func() {
		var conns []syscall.Conn
		for _, f := range files {
			conns = append(conns, f)
		}
		err := c.Pass.Send(data, func(err error) {
			if err == nil {
				close(sent)
			}
		}, conns...)
		if err != nil {
			c.Pass.Abort(err)
		}
	})
	return c.Wait(ctx, sent, "does not read its messages")
}

// fullPause is the time between two tries while MaxQueued messages wait.
const fullPause = 10 * time.Millisecond

// SendConns sends a message with sockets of TCP or unix. sent is called on the loop on, when the
// system has taken the message or with the reason why not: then the sockets are the caller's, which
// closes them either way. If on has ended, SendConns closes them. A message that is too large is
// an error for sent, and any other one ends the Channel too.
func (c *Channel) SendConns(on *rondo.Loop, data []byte, sent func(error), conns ...net.Conn) {
	var files []syscall.Conn
	for _, nc := range conns {
		files = append(files, nc.(syscall.Conn))
		ResetAtClose(nc, true)
	}
	tell := func(err error) {
		posted := on.Post(func() {
			if err != nil {
				for _, nc := range conns {
					ResetAtClose(nc, false)
				}
			}
			sent(err)
		})
		for _, nc := range conns {
			switch {
			case posted == nil: // sent does it
			case err == nil:
				nc.Close() // not reset: the new process has it
			default:
				Reset(nc)
			}
		}
	}
	var try func()
	try = func() {
		switch err := c.Pass.Send(data, tell, files...); {
		case err == fdpass.ErrFull: // there are very many loops
			c.Loop.AfterFunc(fullPause, try)
		case err == fdpass.ErrTooMuch:
			tell(err)
		case err != nil:
			c.Pass.Abort(err)
			tell(err)
		}
	}
	if err := c.Loop.Post(try); err != nil {
		tell(err)
	}
}

// Closed implements fdpass.Handler.
func (c *Channel) Closed(_ *fdpass.Channel, err error) {
	switch {
	case c.why != nil:
	case err == nil:
		c.why = ErrGone
	default:
		c.why = err
	}
	c.closed.Store(true)
	close(c.Gone)
}

// HasEnded reports whether the Channel is closed.
func (c *Channel) HasEnded() bool { return c.closed.Load() }

// Wait waits for a step of the other process. late says what that process did if ctx ends first.
func (c *Channel) Wait(ctx context.Context, step <-chan struct{}, late string) error {
	select {
	case <-step:
	case <-c.Gone:
	case <-ctx.Done():
	}
	// Several may be ready: a process may do its last step and close. Then the step counts.
	switch {
	case IsClosed(step):
		return nil
	case IsClosed(c.Gone):
		return c.why
	}
	return fmt.Errorf("the other process %s: %w", late, ctx.Err())
}

// IsPeers reports whether it is the other process that has ended the Channel, by err: it has
// died, or has closed it. Otherwise this process could not go on.
func IsPeers(err error) bool {
	return errors.Is(err, ErrGone) || errors.Is(err, io.ErrUnexpectedEOF) || errors.Is(err, syscall.EPIPE) || errors.Is(err, syscall.ECONNRESET)
}

// ErrMessage is the error of a message that makes no sense.
var ErrMessage = errors.New("a message of the other process cannot be understood: it may be of another version")

// Encode returns a message for a Channel: m as JSON behind its length, four bytes, and then
// the bytes that belong to it.
func Encode(m any, bytes ...[]byte) []byte {
	text, err := json.Marshal(m)
	if err != nil {
		panic(err) // there is no type that could fail
	}
	out := binary.BigEndian.AppendUint32(nil, uint32(len(text)))
	out = append(out, text...)
	for _, b := range bytes {
		out = append(out, b...)
	}
	return out
}

// Decode is the reverse: it sets the message at m.
func Decode(in []byte, m any) (bytes []byte, err error) {
	if len(in) < 4 {
		return nil, ErrMessage
	}
	size := binary.BigEndian.Uint32(in)
	if in = in[4:]; uint64(size) > uint64(len(in)) {
		return nil, ErrMessage
	}
	if err := json.Unmarshal(in[:size], m); err != nil {
		return nil, fmt.Errorf("%w: %w", ErrMessage, err)
	}
	return in[size:], nil
}

// CloseOnce is for channels that only one loop closes.
func CloseOnce(c chan struct{}) {
	if !IsClosed(c) {
		close(c)
	}
}

// IsClosed reports whether c is closed.
func IsClosed(c <-chan struct{}) bool {
	select {
	case <-c:
		return true
	default:
		return false
	}
}

// Reset closes a connection that cannot be served, so that its peer sees no end of a stream.
func Reset(nc net.Conn) {
	ResetAtClose(nc, true)
	nc.Close()
}

// ResetAtClose sets whether the system resets a connection when its last descriptor is closed. On
// its way it must be so: if the new process ends meanwhile, the system closes it.
func ResetAtClose(nc net.Conn, on bool) {
	if l, ok := nc.(interface{ SetLinger(int) error }); ok {
		seconds := -1
		if on {
			seconds = 0
		}
		l.SetLinger(seconds)
	}
}
