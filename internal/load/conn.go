package load

import (
	"errors"
	"fmt"
	"time"

	"github.com/rondo-go/rondo"
)

// A conn is a connection of a load.
type conn struct {
	worker *worker
	rc     *rondo.Conn
	id     int

	talk     Talk
	parts    []Part // the remaining parts before the load
	todo     int    // unsent requests of the current part
	inflight int
	answered int64 // answered requests; once the load has begun, only its own
	starts   starts

	owed  int   // open loop: requests that are due but not sent
	place int64 // open loop: place of the next request to send in the connection's schedule
}

// connected is called with the result of the dial.
func (c *conn) connected(rc *rondo.Conn, err error) rondo.Handler {
	w := c.worker
	if err != nil {
		w.fail(err)
		return nil
	}
	now := w.now()
	w.made(rc, now)
	c.rc = rc
	if prepare := w.run.Workload.Prepare; prepare != nil {
		c.parts = prepare(c.id)
	}
	c.prepare(now)
	return c
}

// Data takes replies. It reads the clock once, since all of them arrived
// together.
func (c *conn) Data(_ *rondo.Conn, in []byte) (int, error) {
	w := c.worker
	now := w.now()
	n, replies, wrong := c.talk.Replies.Check(in, c.inflight)
	switch {
	case wrong != nil:
		wrong.Reply += c.answered
		return n, c.fail(wrong)
	case n < len(in):
		surplus := in[n:]
		return n, c.fail(fmt.Errorf("after reply %d the server sent bytes that answer no request: %q", c.answered+int64(replies), surplus[:min(len(surplus), shown)]))
	}
	w.heard = now
	if now >= w.from {
		w.tally.received += int64(n)
	}
	if replies > 0 {
		c.replied(replies, now)
	}
	return n, nil
}

func (c *conn) replied(n int, now time.Duration) {
	w := c.worker
	c.inflight -= n
	w.inflight -= n
	c.answered += int64(n)
	if !w.began {
		c.prepare(now)
		return
	}
	w.tally.answered += int64(n)
	c.starts.take(n, now, w)
	if w.run.Rate > 0 {
		w.pacer.serve(c, now)
	} else {
		c.fill(now)
	}
	w.settle()
}

// prepare sends the next requests that come before the load.
func (c *conn) prepare(now time.Duration) {
	for c.todo == 0 && c.inflight == 0 {
		if len(c.parts) == 0 {
			c.answered = 0
			c.talk = c.worker.run.Workload.Talk(c.id)
			c.worker.ready(now)
			return
		}
		c.talk, c.todo = c.parts[0].Talk, c.parts[0].Count
		c.parts = c.parts[1:]
	}
	n := min(c.todo, c.worker.run.Workload.batch()-c.inflight)
	c.todo -= n
	c.send(n, now)
}

// batch is the number of requests in flight while a connection prepares.
func (w *Workload) batch() int { return min(max(1, leastPiece/w.RequestSize), 64) }

// fill sends as many requests of a closed loop as there is room for.
func (c *conn) fill(now time.Duration) {
	w := c.worker
	if n := w.allow(w.run.Pipeline-c.inflight, now); n > 0 {
		c.starts.add(n, now)
		c.send(n, now)
	}
}

// send sends the next n requests.
func (c *conn) send(n int, now time.Duration) {
	w := c.worker
	if w.inflight == 0 {
		w.heard = now
	}
	c.inflight += n
	w.inflight += n
	b := c.talk.Requests.Next(&w.buf, n)
	if now >= w.from {
		w.tally.sent += int64(len(b))
	}
	c.rc.Write(b) // Closed reports an error
}

// fail ends the run with an error of the connection.
func (c *conn) fail(err error) error {
	when := ""
	if !c.worker.began {
		when = " before the load"
	}
	err = fmt.Errorf("connection %d of %d%s: %w", c.id+1, c.worker.run.Conns, when, err)
	c.worker.fail(err)
	return err
}

// Closed ends the run with an error, unless it has ended.
func (c *conn) Closed(_ *rondo.Conn, err error) {
	if c.worker.finished {
		return
	}
	if err == nil {
		err = errClosedByServer
	}
	c.fail(fmt.Errorf("lost after %d replies, with %d outstanding: %w", c.answered, c.inflight, err))
}

var errClosedByServer = errors.New("the server closed it")
