package pool

import (
	"errors"
	"fmt"
	"net"
	"time"

	"github.com/rondo-go/rondo"
)

// After a dial that failed the pool waits for some time, doubling, before it dials for
// MinIdle again.
const (
	minPause = 100 * time.Millisecond
	maxPause = 30 * time.Second
)

var errPanicked = errors.New("it panicked")

// A dial is a connection that is being made.
type dial struct {
	pool    *Pool
	dialing *rondo.Dialing
	conn    *rondo.Conn  // whose filters are not ready; nil: it is not connected, or was told
	late    *rondo.Timer // limits the filters; nil: there are none, or no conn
}

// coming is how many connections will be free soon, if all goes well.
func (p *Pool) coming() int { return len(p.dialing) + p.busy }

// balance dials until a connection is coming for every waiter, and there are MinIdle idle
// ones, as far as MaxLive allows.
func (p *Pool) balance() {
	if p.closed || p.invalid != nil {
		return
	}
	for p.waiters.n > p.coming() && len(p.idle) > 0 {
		c := p.idle[len(p.idle)-1]
		p.notIdle(c)
		if p.checks(c) {
			p.settleLater(c, checkDue)
		} else {
			p.settleLater(c, returned)
		}
	}
	want := p.waiters.n
	if !p.paused {
		want += p.config.MinIdle
	}
	for p.coming()+len(p.idle) < want && len(p.live)+len(p.dialing) < p.config.MaxLive {
		p.dial()
	}
}

func (p *Pool) dial() {
	d := &dial{pool: p}
	p.dialing = append(p.dialing, d)
	opened := d.opened
	if len(p.config.Filters) > 0 {
		filtered := rondo.FilteredDial(opened, p.config.Filters...)
		opened = func(conn *rondo.Conn, err error) rondo.Handler {
			if d.conn = conn; conn != nil {
				d.late = p.loop.AfterFunc(p.config.Patience, d.tooLong)
			}
			return filtered(conn, err)
		}
	}
	d.dialing = p.loop.Dial(p.config.Network, p.config.Address, p.config.Socket, opened)
}

// cancel gives up. opened is told.
func (d *dial) cancel() {
	d.dialing.Cancel()
	if d.conn != nil {
		d.conn.Abort(rondo.ErrClosed) // in mid-handshake: that has nothing to say yet
	}
}

// tooLong ends a connection whose filters do not get ready: opened is told.
func (d *dial) tooLong() { d.conn.Abort(fmt.Errorf("its filters are not ready: %w", errPatience)) }

// opened is told what became of the dial.
func (d *dial) opened(conn *rondo.Conn, err error) rondo.Handler {
	p := d.pool
	if d.late != nil {
		d.late.Stop()
	}
	for i, other := range p.dialing {
		if other == d {
			p.dialing = append(p.dialing[:i], p.dialing[i+1:]...)
			break
		}
	}
	switch {
	case p.closed:
		return nil
	case err != nil:
		p.dialFailed(err)
		return nil
	}
	c := &Conn{pool: p, conn: conn, at: len(p.live)}
	p.live = append(p.live, c)
	if p.config.Setup != nil {
		p.settleLater(c, setUpDue)
	} else {
		p.made()
		c.ready()
		p.settleLater(c, returned)
	}
	return (*keeper)(c)
}

// made counts a connection that is ready.
func (p *Pool) made() {
	p.stats.Dialed++
	p.pause = 0
}

// dialFailed tells the first waiter, if there are more of them than connections that
// may still come.
func (p *Pool) dialFailed(err error) {
	p.stats.DialsFailed++
	if loopEnded(err) {
		p.Close()
		return
	}
	if p.waiters.n > p.coming() {
		if _, ok := err.(*net.OpError); !ok {
			err = p.opError("dial", err)
		}
		p.fail(p.waiters.first, err)
	}
	p.pause = min(max(2*p.pause, minPause), maxPause)
	if !p.paused && p.config.MinIdle > 0 {
		p.paused = true
		p.retry.Reset(p.pause)
	}
	p.balance()
}

// loopEnded reports whether a dial failed since its loop accepts no more of them.
func loopEnded(err error) bool {
	op, ok := err.(*net.OpError)
	return ok && op.Op == "dial" && op.Err == rondo.ErrClosed
}

// finished takes the result of Setup or of Check. It is called by them, too late, or
// by the end of the connection; only the first of these counts.
func (c *Conn) finished(err error) {
	p, before := c.pool, c.state
	switch before {
	case setUpDue, settingUp, checking:
	default:
		return
	}
	if c.timer != nil {
		c.timer.Stop()
	}
	if err == nil {
		if before == settingUp {
			p.made()
			c.ready()
		}
		c.conn.SetHandler((*keeper)(c))
		p.busy--
		p.settleLater(c, returned)
		return
	}
	if before == checking {
		p.stats.ChecksFailed++
		c.close()
		return
	}
	p.drop(c)
	p.dialFailed(fmt.Errorf("setting up the connection: %w", err))
	c.end()
}
