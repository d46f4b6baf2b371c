package randomuser

import (
	"crypto/tls"
	"errors"
	"fmt"
	"io"
	"os"
	"slices"
	"sync"
	"syscall"
	"time"

	"github.com/rondo-go/rondo"
)

// A peer is the other end of one of the user's connections, outside of any engine.
type peer struct {
	w       *world
	name    string
	c       raw
	in, out *stream
	shut    bool // it has ended its output
	over    bool // it has closed, or seen an error
	sawEnd  bool
}

// connect makes another peer.
func (w *world) connect() {
	st := w.src.step("connect")
	w.mu.Lock()
	ln := w.listeners[st.intn(len(w.listeners))]
	if f := w.focus; (f.wants("co") || f.wants("filtered")) && !st.one(4) {
		for _, special := range w.listeners {
			if special.filtered || special.co {
				ln = special
			}
		}
	}
	w.mu.Unlock()
	c, err := w.place.dial(ln.addr)
	if err != nil {
		return // the listener may be closed
	}
	local, remote := text(c.LocalAddr()), text(c.RemoteAddr())
	switch {
	case ln.tls:
		if c = w.shaken(c); c == nil {
			return
		}
	case st.one(5):
		c = w.queued(c, st)
	}
	w.peers = append(w.peers, &peer{w: w, name: fmt.Sprintf("peer%d", len(w.peers)), c: c,
		in: w.stream(remote, local), out: w.stream(local, remote)})
}

// shaken returns c as a TLS client, or nil if the handshake fails.
func (w *world) shaken(c raw) raw {
	_, config := secrets()
	t := tls.Client(c, config)
	c.SetDeadline(w.place.now().Add(300 * time.Millisecond))
	if t.Handshake() != nil {
		c.Close()
		return nil
	}
	c.SetDeadline(time.Time{})
	return t
}

var sizes = [...]int{0, 1, 7, 100, 100, 700, 1500, 4000, 9000, 20000, 70000}

// act does something.
func (p *peer) act() {
	if p.over {
		return
	}
	st := p.w.src.step(p.name)
	switch st.intn(16) {
	case 0:
	case 1, 2, 3, 4, 5:
		p.send(sizes[st.intn(len(sizes))])
	case 12:
		if st.one(2) || p.w.focus.wants("ends") {
			p.c.CloseWrite()
			p.shut = true
		}
	case 13:
		if st.one(4) {
			p.in.tear("the peer reset it")
			p.over = true
			reset(p.c)
		}
	case 14:
		if st.one(4) {
			p.in.tear("the peer closed it")
			p.over = true
			p.c.Close()
		}
	case 15:
		p.receive(sizes[st.intn(len(sizes))], p.w.place.poll())
	default:
		if p.w.slow && !st.one(8) {
			return
		}
		p.receive(sizes[st.intn(len(sizes))], p.w.place.poll())
	}
}

func (p *peer) send(n int) {
	if p.shut {
		return
	}
	p.out.write(n, func(b []byte) int {
		p.c.SetWriteDeadline(p.w.place.now().Add(p.w.place.poll()))
		n, err := p.c.Write(b)
		_, encrypted := p.c.(*tls.Conn)
		if errors.Is(err, syscall.ECONNRESET) {
			p.in.tear(err.Error()) // which is told once: reads find the end of the stream
		}
		switch {
		case err == nil:
		case encrypted:
			p.shut = true
			return len(b) // nobody knows how many bytes will be read
		case !errors.Is(err, os.ErrDeadlineExceeded):
			p.shut = true
		}
		return n
	})
}

// receive reads up to n bytes, and reports whether there were any.
func (p *peer) receive(n int, d time.Duration) bool {
	b := make([]byte, n)
	p.c.SetReadDeadline(p.w.place.now().Add(d))
	n, err := p.c.Read(b)
	if e := p.in.offered(b[:n], n); e != nil {
		p.w.failf("bytes: %s: %v", p.name, e)
	}
	switch {
	case err == nil || errors.Is(err, os.ErrDeadlineExceeded):
	case err == io.EOF:
		p.sawEnd, p.over = true, true
		p.c.Close()
	default:
		p.in.tear(err.Error())
		p.over = true
		p.c.Close()
	}
	return n > 0
}

// finish ends the peer in order: it reads until the other end has closed or is silent.
func (p *peer) finish() {
	if p.over {
		return
	}
	if !p.shut {
		p.c.CloseWrite()
	}
	for silent := 0; silent < 3 && !p.over; silent++ {
		for p.receive(64<<10, 5*time.Millisecond) {
			silent = 0
		}
	}
	if !p.over {
		p.in.tear("the peer closed it at the end")
		p.c.Close()
	}
}

// A bystander is a connection that the user does not touch. Its peer sends requests,
// which must be answered within a number of turns.
type bystander struct {
	c     raw
	addr  string // of its listener
	loop  *rondo.Loop
	mu    sync.Mutex
	conn  *rondo.Conn
	ended error
	over  bool

	w       *world
	asked   byte
	waiting bool
	since   uint64 // turn of the request
	when    time.Time
}

const (
	// readyTurns is how many turns a bystander may wait once its request has arrived.
	// The turn that finds the request must serve it: nobody goes first. The first
	// request also needs the accept and a post to the loop.
	readyTurns, firstTurns = 0, 3
	// realTurns is that number on this machine, where nobody knows when the request has
	// arrived.
	realTurns = 2000
	// bystanderTime is how long an answer may take on the simulated network: 1 ms each
	// way, and 10 ms if the completion is late. The accept of the first one may be late
	// too.
	bystanderTime, firstTime = 12 * time.Millisecond, 24 * time.Millisecond
	maxLooks                 = 20_000 // at the end, for the last answer
)

type echo struct{ b *bystander }

func (e echo) Data(c *rondo.Conn, in []byte) (int, error) {
	e.b.served(c.Loop(), in[len(in)-1] == 1)
	return c.Write(in)
}

// served checks how many turns the loop has taken since the request arrived. On the
// simulated network that was, at the earliest, when time last passed: events at an
// instant happen before the loops' turns. So turns in which the loop was busy with
// others, while the request was under way, do not count.
func (b *bystander) served(l *rondo.Loop, first bool) {
	t := &b.w.home(l).turn
	if !b.w.sim || !l.Now().Equal(t.now) {
		return // the first turn since time passed
	}
	turns, most := t.still+1, readyTurns
	if first {
		most = firstTurns
	}
	if turns > most {
		b.w.failf("bystander: what it asked was there, and the loop took %d turns without serving it, want %d", turns, most)
	}
}
func (e echo) Closed(c *rondo.Conn, err error) {
	e.b.mu.Lock()
	defer e.b.mu.Unlock()
	e.b.over, e.b.ended = true, err
}

// bystander adds a bystander on a loop of e.
func (w *world) bystander(e *rondo.Engine) {
	b := &bystander{w: w}
	w.called("Engine.Listen", func() {
		ln, err := e.Listen("tcp", "127.0.0.1:0", rondo.SocketOptions{}, func(c *rondo.Conn) rondo.Handler {
			b.mu.Lock()
			defer b.mu.Unlock()
			b.conn, b.loop = c, c.Loop()
			return echo{b}
		})
		if err != nil {
			w.failf("listen: %v", err)
			return
		}
		b.addr = ln.Addr().String()
		w.mu.Lock()
		w.bystanders = append(w.bystanders, b)
		w.mu.Unlock()
		b.c, err = w.place.dial(b.addr)
		if err != nil {
			w.failf("bystander: %v", err)
		}
	})
}

func (w *world) isBystander(c *rondo.Conn) bool {
	local, _ := w.pair(c)
	w.mu.Lock()
	defer w.mu.Unlock()
	return slices.ContainsFunc(w.bystanders, func(b *bystander) bool { return b.addr == local })
}

func (b *bystander) turn(w *world) uint64 {
	b.mu.Lock()
	defer b.mu.Unlock()
	if b.loop == nil {
		return 0
	}
	return w.home(b.loop).turn.count.Load()
}

// act sends a request, or looks for the answer.
func (b *bystander) act(w *world) {
	b.mu.Lock()
	over, err := b.over, b.ended
	b.mu.Unlock()
	if over && w.ending.Load() {
		return
	}
	if over && !resets(w) {
		w.failf("bystander: closed with %v", err)
		return
	}
	if over {
		return
	}
	if !b.waiting {
		b.asked++
		b.c.SetWriteDeadline(w.place.now().Add(time.Second))
		b.c.Write([]byte{b.asked})
		b.waiting, b.since, b.when = true, b.turn(w), w.place.now()
	}
	b.look(w)
}

func (b *bystander) look(w *world) {
	var p [2]byte
	b.c.SetReadDeadline(w.place.now().Add(w.place.poll()))
	n, err := b.c.Read(p[:])
	switch {
	case n == 1 && p[0] == b.asked:
		b.waiting = false
		if turns := b.turn(w) - b.since; !w.sim && turns > realTurns {
			w.failf("bystander: answered after %d turns", turns)
		}
	case n > 0:
		w.failf("bystander: answered %v to %d", p[:n], b.asked)
	case errors.Is(err, os.ErrDeadlineExceeded):
		most := bystanderTime
		if b.asked == 1 {
			most = firstTime
		}
		if w.sim && w.place.now().Sub(b.when) > most && !w.ending.Load() {
			w.die("bystander: not answered within %v, %d turns of its loop", most, b.turn(w)-b.since)
		}
	}
}

// finish waits for the last answer.
func (b *bystander) finish(w *world) {
	for looks := 0; b.waiting && !w.ending.Load() && len(w.failed()) == 0; looks++ {
		if looks == maxLooks {
			w.failf("bystander: not answered, %d turns of its loop", b.turn(w)-b.since)
		}
		b.mu.Lock()
		over := b.over
		b.mu.Unlock()
		if over {
			break
		}
		b.look(w)
		if b.waiting {
			w.pass(time.Millisecond)
		}
	}
	b.c.Close()
}

// resets reports whether the network breaks connections.
func resets(w *world) bool { return w.breaks }
