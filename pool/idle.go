package pool

import "slices"

// keep makes c idle.
func (p *Pool) keep(c *Conn) {
	c.state = idle
	c.since = p.loop.Now()
	p.idle = append(p.idle, c)
	if p.config.IdleTime > 0 && !p.expires {
		p.expires = true
		p.expiry.Reset(p.config.IdleTime)
	}
}

// notIdle removes c, usually the last one, from the idle connections.
func (p *Pool) notIdle(c *Conn) {
	i := len(p.idle) - 1
	for p.idle[i] != c {
		i--
	}
	p.idle = slices.Delete(p.idle, i, i+1)
}

// expire closes the connections that were idle for too long. It is called when
// the idle time of the oldest one may be over. Often that one was lent
// meanwhile; so lending need not touch the timer.
func (p *Pool) expire() {
	p.expires = false
	now := p.loop.Now()
	for len(p.idle) > 0 {
		c := p.idle[0]
		if left := p.config.IdleTime - now.Sub(c.since); left > 0 {
			p.expires = true
			p.expiry.Reset(left)
			return
		}
		p.stats.Expired++
		c.close()
	}
}

// lend takes an idle connection that needs no check. It returns nil if there is
// none.
func (p *Pool) lend() *Conn {
	for n := len(p.idle); n > 0 && !p.checks(p.idle[n-1]); n = len(p.idle) {
		c := p.idle[n-1]
		if !c.conn.Reusable() { // it is closing, before the call of Closed
			c.lost()
			continue
		}
		p.notIdle(c)
		c.state = borrowed
		p.stats.Reused++
		if p.config.MinIdle > 0 {
			p.balance()
		}
		return c
	}
	return nil
}

// checks reports whether Check must run before c is lent.
func (p *Pool) checks(c *Conn) bool {
	return p.config.Check != nil && p.loop.Now().Sub(c.since) >= p.config.CheckAfter
}
