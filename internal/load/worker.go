package load

import (
	"fmt"
	"math"
	"net"
	"time"

	"github.com/rondo-go/rondo"
)

// A worker makes the load of one loop, and belongs to that loop, except for the
// work of its collector.
//
// It connects, lets each connection prepare, waits for the other workers, and
// begins. It is over when no more requests will be sent, and finished when all
// replies have arrived.
type worker struct {
	run   *run
	loop  *rondo.Loop
	conns []*conn
	buf   []byte // for requests being built

	address  string // of the server
	dialed   int    // conns dialed so far
	dialing  int    // of these, not connected yet
	prepared int    // conns that are ready for the load

	began bool
	from  time.Duration // when the warm-up ends; never before the load has begun
	until time.Duration // when the measurement ends
	left  int64         // with Count: requests still to send and measure

	over     bool
	finished bool
	inflight int           // requests of all connections
	heard    time.Duration // when the server last sent something awaited

	pacer pacer // of an open loop
	tally *tally
}

const never = time.Duration(math.MaxInt64)

// maxDialing bounds the number of concurrent dials, since a server bounds its
// queue of connections to accept.
const maxDialing = 64

func newWorker(r *run, l *rondo.Loop) *worker {
	return &worker{run: r, loop: l, from: never, until: never, tally: newTally()}
}

func (w *worker) now() time.Duration { return w.run.Clock(w.loop) }

func (w *worker) fail(err error) { w.run.end(err) }

// first dials the first connection of the run. Its address serves the other
// connections, and without a server there is only one error.
func (w *worker) first() {
	w.watch()
	w.address = w.run.Address
	w.dial()
}

// connect dials the other connections.
func (w *worker) connect(address string) {
	w.address = address
	if w.dialed == 0 {
		w.watch()
	}
	w.dialMore()
}

func (w *worker) dial() {
	c := w.conns[w.dialed]
	w.dialed++
	w.dialing++
	w.loop.Dial(w.run.Network, w.address, rondo.SocketOptions{}, rondo.FilteredDial(c.connected, w.run.Filters...))
}

func (w *worker) dialMore() {
	for w.dialing < maxDialing && w.dialed < len(w.conns) {
		w.dial()
	}
}

// made records that a connection was made.
func (w *worker) made(c *rondo.Conn, now time.Duration) {
	w.heard = now
	w.dialing--
	if w == w.run.workers[0] && w.dialed == 1 {
		address := w.run.Address
		if a, ok := c.RemoteAddr().(*net.TCPAddr); ok {
			address = a.String()
		}
		w.run.connected(address)
	} else {
		w.dialMore()
	}
}

// ready records that a connection is ready for the load.
func (w *worker) ready(now time.Duration) {
	w.prepared++
	if w.prepared == len(w.conns) {
		w.run.ready(now)
	}
}

// begin begins the load. start is the same for all workers.
func (w *worker) begin(start time.Duration) {
	w.began = true
	w.from = start + w.run.Warmup
	now := w.now()
	w.heard = now
	if w.run.Count == 0 {
		w.until = w.from + w.run.Duration
		w.loop.AfterFunc(w.until-now, w.end)
	} else {
		w.over = w.left == 0 // there are more workers than requests
	}
	if w.run.Rate > 0 {
		w.pacer.begin(w, start)
	} else {
		for _, c := range w.conns {
			c.fill(now)
		}
	}
	w.settle()
}

// allow returns how many of n requests may be sent now, and counts them as
// sent.
func (w *worker) allow(n int, now time.Duration) int {
	switch {
	case w.over || now >= w.until:
		return 0
	case w.run.Count == 0 || now < w.from:
		return n
	}
	n = int(min(int64(n), w.left))
	w.left -= int64(n)
	w.over = w.left == 0
	return n
}

// end stops sending at the end of Duration.
func (w *worker) end() {
	w.over = true
	w.pacer.drop()
	w.settle()
}

// settle finishes the worker if it has nothing left to do.
func (w *worker) settle() {
	if w.over && !w.finished && w.inflight == 0 && w.pacer.owed == 0 {
		w.finished = true
		w.run.finished()
	}
}

// replied measures the latency of n requests that began at the time began.
func (w *worker) replied(n int, began, now time.Duration) {
	if began >= w.from {
		w.tally.record(n, now-began, now)
	}
}

// watch ends the run when the server no longer answers.
func (w *worker) watch() {
	w.heard = w.now()
	timeout := w.run.Timeout
	w.loop.Every(max(timeout/4, time.Millisecond), func() {
		if w.now()-w.heard < timeout {
			return
		}
		switch {
		case w.dialing > 0:
			w.fail(fmt.Errorf("%s: %d connections failed to connect within %v", w.address, w.dialing, timeout))
		case w.inflight > 0:
			w.fail(w.unanswered())
		}
	})
}

func (w *worker) unanswered() error {
	conns, first := 0, 0
	for _, c := range w.conns {
		if c.inflight == 0 {
			continue
		}
		if conns == 0 {
			first = c.id + 1
		}
		conns++
	}
	return fmt.Errorf("the server sent nothing for %v while %d requests waited for replies, on %d connections; the first is connection %d of %d",
		w.run.Timeout, w.inflight, conns, first, w.run.Conns)
}
