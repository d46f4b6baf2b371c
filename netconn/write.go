package netconn

import (
	"net"
	"sync"
	"syscall"
)

const (
	// mostPending is how many bytes may wait until the loop takes them.
	mostPending = 64 << 10
	// directPiece is how much of a long Write the loop sends when the system is full.
	// After that the Write goes on directly.
	directPiece = largeBlock
)

// outbound is the output of a Conn. pending are bytes that Writes have accepted, held are
// bytes that the loop has taken. With a Direct both are mostly empty: Writes send
// directly, unless behind says that the loop must send something first.
type outbound struct {
	half
	turn    sync.Mutex // held by the Write that is running
	ended   bool       // by CloseWrite
	waits   bool       // a Write waits, for room or until the loop has sent everything
	behind  bool       // the loop has not yet sent what Writes left to it
	pending blocks
	direct  direct // nil: the loop sends everything
	failure error  // of the direct send that has ended the input, too; see endOfInput

	// The rest is the loop's.
	held   blocks
	begun  bool   // output has been pushed, or is about to be
	owned  bool   // there was a Direct: blocks are sent without a copy, one at a time
	flying *block // the block that is being sent
	sent   func() // the method landed: made once
	ends   uint32 // toEndWrite, toClose: what to do when everything is sent
}

// write is Write without its checks.
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
				out.failed(err)
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

// writable returns the reason if a Write must fail.
func (out *outbound) writable() error {
	if err := out.usable(); err != nil {
		return err
	}
	if out.ended {
		return syscall.EPIPE
	}
	return out.err
}

// share returns how many of size bytes go to the loop: all of them, or as many as there
// is room for. Of a long Write that can go on directly, it is one piece.
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

// push writes waiting output to the rondo.Conn, as far as there is room, then ends the
// output if that was asked for.
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
			return // it is closing: Ending or Closed handles that
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

// writesFailed ends the output if a send has failed. Reads go on.
func (c *Conn) writesFailed() bool {
	why := failed(c.conn)
	if why == nil {
		return false
	}
	out := &c.out
	out.mu.Lock()
	out.direct = nil // dropped bytes must not be followed by more
	out.mu.Unlock()
	out.fail(reason(why))
	c.lose()
	c.hub.note()
	return true
}

// more takes the pending bytes if nothing is held. It reports whether there is output.
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

// fly sends a block from its own memory.
func (c *Conn) fly() {
	b := c.out.held.pop()
	c.out.flying = b
	c.conn.WriteOwned(b.bytes[b.start:b.end], c.out.sent) // landed handles an error
}

// landed is called when a block's memory is free: the block was sent, or never will be.
func (c *Conn) landed() {
	b := c.out.flying
	c.out.flying = nil
	b.release()
	c.push()
}

// finish writes everything to the rondo.Conn at once, and closes it.
func (c *Conn) finish() {
	c.out.ends = 0
	c.giveAll()
	c.conn.Close()
}

// giveAll gives the rondo.Conn everything that Writes have accepted.
func (c *Conn) giveAll() {
	if !c.unsent() {
		return
	}
	unbound(c.conn)
	for err := error(nil); err == nil && c.more(); {
		var n int
		n, err = c.conn.Write(c.out.held.front())
		c.out.held.drop(n)
	}
}

// unsent reports whether Writes have accepted bytes that the rondo.Conn does not have.
func (c *Conn) unsent() bool {
	out := &c.out
	out.mu.Lock()
	defer out.mu.Unlock()
	return out.pending.size > 0 || out.held.size > 0
}

// lose drops output that cannot be sent any more.
func (c *Conn) lose() {
	out := &c.out
	out.held.clear()
	out.mu.Lock()
	out.pending.clear()
	out.mu.Unlock()
}
