package pool

import (
	"errors"
	"fmt"
	"net"
	"time"

	"github.com/rondo-go/rondo"
)

// After a failed dial the pool pauses before it dials for MinIdle again. The pause doubles
// each time.
const (
	minPause = 100 * time.Millisecond
	maxPause = 30 * time.Second
)

var errPanicked = errors.New("the function panicked")

// A dial is a connection that is being made.
type dial struct {
	pool    *Pool
	dialing *rondo.Dialing
	conn    *rondo.Conn  // while its filters are not ready; else nil
	late    *rondo.Timer // limits the filters; nil: there are none, or no conn
}

// coming returns the number of connections that will be free soon if all goes
// well.
func (p *Pool) coming() int { return len(p.dialing) + p.busy }

// balance makes sure that a connection is coming for each waiter, and that
// MinIdle connections are idle, as far as MaxLive allows.
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

// cancel gives up the dial. It makes the loop call opened with an error.
func (d *dial) cancel() {
	d.dialing.Cancel()
	if d.conn != nil {
		d.conn.Abort(rondo.ErrClosed) // during a handshake: there is no output to send
	}
}

// tooLong aborts a connection whose filters do not get ready. The loop then calls opened.
func (d *dial) tooLong() { d.conn.Abort(fmt.Errorf("its filters are not ready: %w", errPatience)) }

// opened receives the result of the dial.
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

// dialFailed passes the error to the first waiter, if there are more waiters
// than connections that may still come.
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

// loopEnded reports whether a dial failed because its loop has ended.
func loopEnded(err error) bool {
	op, ok := err.(*net.OpError)
	return ok && op.Op == "dial" && op.Err == rondo.ErrClosed
}

// finished takes the result of Setup or Check. It is called by done, by the
// timer, or by the end of the connection. Only the first call counts.
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
