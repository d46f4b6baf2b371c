package netconn

import (
	"io"
	"net"
	"sync"
)

// inbound is the input of a Conn: the received bytes that nobody has read, and the Read
// that waits.
//
// state says who reads the socket:
//
//	byLoop --more than readAhead is queued--> paused --nothing is in flight--> byReads
//	  ^                                         |                               |
//	  |                                         | a Read has emptied the queue  | a Read has found
//	  |                                         v                               v the socket empty
//	  +------the loop has resumed------------ asked <---------------------------+
//
// While byLoop, the loop reads. While byReads, the Read that has the turn reads, with mu
// locked. Without a Direct the connection stays paused until half of the queue is read.
type inbound struct {
	half
	turn   sync.Mutex // held by the Read that is running
	state  readState
	ended  bool   // by CloseRead
	dst    []byte // of the waiting Read; nil: none waits
	n      int    // bytes of dst that the loop has filled
	queue  blocks
	direct direct // nil: there is none
}

type readState uint8

const (
	byLoop  readState = iota
	paused            // nobody reads
	asked             // nobody reads, until the loop has resumed
	byReads           // past the loop
)

// read is Read without its checks.
func (c *Conn) read(p []byte) (int, error) {
	in := &c.in
	if len(p) == 0 {
		in.mu.Lock()
		defer in.mu.Unlock()
		if in.closed {
			return 0, net.ErrClosed
		}
		return 0, nil
	}
	c.hub.lock(&in.turn, "Conn.Read")
	defer in.turn.Unlock()
	in.mu.Lock()
	defer in.mu.Unlock()
	for {
		if err := in.usable(); err != nil {
			return 0, err
		}
		if in.queue.size > 0 {
			n := in.queue.read(p)
			if in.state == paused && in.direct == nil && in.queue.size <= c.readAhead/2 {
				c.readOn()
			}
			return n, nil
		}
		if in.err != nil {
			return 0, in.err
		}
		switch in.state {
		case byReads:
			if n, done, err := in.receive(p); done {
				return n, err
			}
			c.readOn()
		case paused:
			c.readOn()
		}
		if n := c.await(p); n > 0 {
			return n, nil
		}
	}
}

// receive reads the socket. done is false if the socket is empty, or at the end of the stream:
// the loop knows whether that is the peer's, or a send has got a reset.
func (in *inbound) receive(p []byte) (n int, done bool, err error) {
	n, ok, err := in.direct.Recv(p)
	switch {
	case err != nil:
		in.err = reason(err) // the system reports it once
	case !ok || n == 0:
		return 0, false, nil
	default:
		return n, true, nil
	}
	return 0, true, in.err
}

// readOn makes the loop read again.
func (c *Conn) readOn() {
	c.in.state = asked
	c.ask(toRead)
}

// await waits for a change, and returns how many bytes the loop has put into p.
func (c *Conn) await(p []byte) int {
	c.hub.mustNotBeOnLoop("Conn.Read")
	in := &c.in
	in.dst = p
	in.cond.Wait()
	n := in.n
	in.dst, in.n = nil, 0
	return n
}

// end is CloseRead. stopped reports whether nobody reads the socket now.
func (in *inbound) end() (stopped bool, err error) {
	in.mu.Lock()
	defer in.mu.Unlock()
	if in.closed {
		return false, net.ErrClosed
	}
	in.ended = true
	if in.err == nil {
		in.err = io.EOF
	}
	in.queue.clear()
	in.cond.Broadcast()
	if in.state == byLoop || in.state == asked {
		return false, nil
	}
	in.state = asked
	return true, nil
}

// forget drops the unread input.
func (in *inbound) forget() {
	in.mu.Lock()
	in.queue.clear()
	in.mu.Unlock()
}

// The rest runs on the loop.

// arm lets the loop read again.
func (c *Conn) arm() {
	in := &c.in
	in.mu.Lock()
	if in.state == asked {
		in.state = byLoop
	}
	in.mu.Unlock()
	c.conn.Resume()
}

// received takes input, for the waiting Read or for a later one.
func (c *Conn) received(p []byte) {
	in := &c.in
	in.mu.Lock()
	if in.closed || in.ended {
		in.mu.Unlock()
		return
	}
	waits := in.dst != nil
	if waits && in.queue.size == 0 {
		k := copy(in.dst[in.n:], p)
		in.n += k
		p = p[k:]
	}
	if len(p) > 0 {
		in.queue.add(p)
		if in.queue.size > c.readAhead && in.state == byLoop {
			c.conn.Pause()
			in.state = paused
			c.release()
		}
	}
	in.mu.Unlock()
	if waits {
		c.hub.wake(&in.cond)
	}
}

// release lets Reads read the socket, if the loop has no receive in flight. The caller
// has locked in.mu, and the connection is paused.
func (c *Conn) release() {
	if in := &c.in; in.state == paused && in.direct != nil && !receiving(c.conn) {
		in.state = byReads
	}
}
