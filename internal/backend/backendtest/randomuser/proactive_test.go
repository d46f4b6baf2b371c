package randomuser

import (
	"errors"
	"net"
	"os"

	"time"

	"github.com/rondo-go/rondo/proactor"
)

// queued is a peer's connection that a proactor.Queue serves, on a loop of the user.
type queued struct {
	w       *world
	q       *proactor.Queue
	nc      net.Conn
	local   net.Addr
	remote  net.Addr
	rest    []byte // read, and not delivered
	reading bool
	writes  int // submitted
	readErr error
	sendErr error
	read    time.Time
}

func (w *world) queued(c raw, st *step) raw {
	q, err := proactor.New(w.engines[st.intn(len(w.engines))], proactor.Options{})
	if err != nil {
		return c
	}
	w.mu.Lock()
	w.closings = append(w.closings, func() { w.called("Queue.Close", func() { q.Close() }) })
	w.mu.Unlock()
	return &queued{w: w, q: q, nc: c, local: c.LocalAddr(), remote: c.RemoteAddr()}
}

// wait takes the results that arrive within d.
func (c *queued) wait(d time.Duration) {
	c.w.called("Queue.Wait", func() {
		ctx, cancel := c.w.place.timeout(d)
		defer cancel()
		results, _ := c.q.Wait(ctx)
		for _, r := range results {
			if r.Kind == proactor.Read {
				c.reading = false
				c.rest = append(c.rest, r.Buf[:r.N]...)
				c.readErr = r.Err
			} else {
				c.writes--
				c.sendErr = errors.Join(c.sendErr, r.Err)
			}
		}
	})
}

func (c *queued) Read(p []byte) (int, error) {
	if len(c.rest) == 0 && c.readErr == nil {
		if !c.reading {
			if err := c.q.Read(c.nc, nil, nil); err != nil {
				return 0, err
			}
			c.reading = true
		}
		c.wait(c.read.Sub(c.w.place.now()))
	}
	n := copy(p, c.rest)
	c.rest = c.rest[n:]
	switch {
	case n > 0 || len(c.rest) > 0:
		return n, nil
	case c.readErr != nil:
		return 0, c.readErr
	}
	return 0, os.ErrDeadlineExceeded
}

// Write submits p. Nobody knows yet whether it will be written.
func (c *queued) Write(p []byte) (int, error) {
	if c.sendErr != nil {
		return 0, c.sendErr
	}
	if err := c.q.Write(c.nc, append([]byte(nil), p...), nil); err != nil {
		return 0, err
	}
	c.writes++
	return len(p), nil
}

// CloseWrite frees the connection: a Queue has no half-close.
func (c *queued) CloseWrite() error {
	for range 3 {
		if c.writes > 0 {
			c.wait(time.Millisecond)
		}
	}
	return c.q.Free(c.nc)
}

// Close waits for the loops.
func (c *queued) Close() (err error) {
	c.w.called("Queue.Close", func() { err = errors.Join(c.q.Free(c.nc), c.q.Close()) })
	return err
}

func (c *queued) LocalAddr() net.Addr                { return c.local }
func (c *queued) RemoteAddr() net.Addr               { return c.remote }
func (c *queued) SetDeadline(t time.Time) error      { return c.SetReadDeadline(t) }
func (c *queued) SetReadDeadline(t time.Time) error  { c.read = t; return nil }
func (c *queued) SetWriteDeadline(t time.Time) error { return nil }
