package netconn

import (
	"net"
	"sync"
	"syscall"
)

const (
	// mostPending is how many bytes may wait for the loop to take them.
	mostPending = 64 << 10
	// directPiece is how much of a long Write the loop sends when the system is full,
	// before the Write goes on by itself.
	directPiece = largeBlock
)

// outbound is the output of a Conn: pending bytes that Writes have accepted, and held bytes
// that the loop has taken. With a Direct nothing is pending or held most of the time: Writes
// send by themselves, unless behind says that the loop has something to send first.
type outbound struct {
	half
	turn    sync.Mutex // of the one Write that goes on
	ended   bool       // by CloseWrite
	waits   bool       // a Write does, for room or until the loop has sent everything
	behind  bool       // Writes have left something to the loop, which it has not sent
	pending blocks
	direct  direct // nil: there is none, the loop sends everything

	// The rest is the loop's.
	held   blocks
	begun  bool   // something was pushed, or is to be
	owned  bool   // there was a Direct: blocks are sent from where they are, one at a time
	flying *block // the one that is being sent
	sent   func() // the method landed: made once
	ends   uint32 // toEndWrite, toClose: when everything is sent
}

// write is Write.
func (c *Conn) write(p []byte) (n int, err error) {
	out := &c.out
	c.hub.lock(&out.turn, "Conn.Write")
	defer out.turn.Unlock()
	out.mu.Lock()
	defer out.mu.Unlock()
	for {
		if err := out.writable(); err != nil {
			return n, err
		}
		if n == len(p) {
			return n, nil
		}
		if out.direct != nil && !out.behind {
			k, err := out.direct.Send(p[n:])
			if n += k; err != nil {
				return n, reason(err)
			}
			if n == len(p) {
				return n, nil
			}
		}
		if k := out.share(len(p) - n); k > 0 {
			out.pending.add(p[n : n+k])
			out.behind = true
			c.ask(toWrite)
			if n += k; n == len(p) {
				return n, nil
			}
		}
		c.hub.mustNotBeOnLoop("Conn.Write")
		out.waits = true
		out.cond.Wait()
		out.waits = false
	}
}

// writable returns why a Write must not go on, if it must not.
func (out *outbound) writable() error {
	if err := out.usable(); err != nil {
		return err
	}
	if out.ended {
		return syscall.EPIPE
	}
	return out.err
}

// share is how many of size bytes the loop is to send: all, if there is room, and else as
// many as there is room for. Of a long Write that can go on by itself it is one piece.
func (out *outbound) share(size int) int {
	room := mostPending - out.pending.size
	switch {
	case size <= room:
		return size
	case out.direct == nil:
		return room
	case out.behind:
		return 0
	}
	return min(directPiece, room)
}

// end is CloseWrite.
func (out *outbound) end() error {
	out.mu.Lock()
	defer out.mu.Unlock()
	if out.closed {
		return net.ErrClosed
	}
	if out.err != nil {
		return out.err
	}
	out.ended = true
	out.cond.Broadcast()
	return nil
}

// The rest runs on the loop.

// push gives the rondo.Conn what is to be sent, as far as there is room, and then what is
// to come after it.
func (c *Conn) push() {
	out := &c.out
	if out.ends&toClose != 0 {
		c.finish()
		return
	}
	if c.writesFailed() {
		return
	}
	for out.flying == nil && c.more() {
		switch room := room(c.conn); {
		case room < 0:
			return // it is closing: Ending and Closed tell
		case room == 0:
			awaitDrain(c.conn)
			return
		case out.owned:
			c.fly()
		default:
			p := out.held.front()
			n, err := c.conn.Write(p[:min(len(p), room)])
			out.held.drop(n)
			if err != nil {
				c.writesFailed()
				return
			}
		}
	}
	if out.flying == nil && out.ends&toEndWrite != 0 {
		out.ends = 0
		c.conn.CloseWrite()
	}
}

// writesFailed ends the output if the system has failed to send it. Reads go on.
func (c *Conn) writesFailed() bool {
	why := failed(c.conn)
	if why == nil {
		return false
	}
	out := &c.out
	out.mu.Lock()
	out.direct = nil // what was dropped must not be followed by more
	out.mu.Unlock()
	out.fail(reason(why))
	c.lose()
	c.hub.note()
	return true
}

// more takes what is pending if nothing is held, and reports whether there is something.
func (c *Conn) more() bool {
	out := &c.out
	if out.held.size > 0 {
		return true
	}
	out.mu.Lock()
	out.held.take(&out.pending)
	some := out.held.size > 0
	out.behind = some
	wake := out.waits && (!some || out.direct == nil)
	out.mu.Unlock()
	if wake {
		c.hub.wake(&out.cond)
	}
	return some
}

// fly sends a block from where it is.
func (c *Conn) fly() {
	b := c.out.held.pop()
	c.out.flying = b
	c.conn.WriteOwned(b.bytes[b.start:b.end], c.out.sent) // landed hears of an error
}

// landed is called when a block's memory is free: it was sent, or never will be.
func (c *Conn) landed() {
	b := c.out.flying
	c.out.flying = nil
	b.release()
	c.push()
}

// finish gives the rondo.Conn everything at once, and closes it.
func (c *Conn) finish() {
	out := &c.out
	out.ends = 0
	if c.unsent() {
		unbound(c.conn)
		for err := error(nil); err == nil && c.more(); {
			var n int
			n, err = c.conn.Write(out.held.front())
			out.held.drop(n)
		}
	}
	c.conn.Close()
}

// unsent reports whether Writes have accepted bytes that the rondo.Conn does not have.
func (c *Conn) unsent() bool {
	out := &c.out
	out.mu.Lock()
	defer out.mu.Unlock()
	return out.pending.size > 0 || out.held.size > 0
}

// lose drops what cannot be sent any more.
func (c *Conn) lose() {
	out := &c.out
	out.held.clear()
	out.mu.Lock()
	out.pending.clear()
	out.mu.Unlock()
}
