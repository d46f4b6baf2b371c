package pool

// Calls of users' functions are collected. settle makes them at the end of the turn, on the
// loop's goroutine, never within a call of the pool or in a coroutine. So a borrower may
// return and borrow connections in any order. A connection that was put back within its
// Data is examined after Data has returned. And borrowers that borrow and return without
// end do not stop the loop's turns.

// settleLater makes settle examine c, in its new state.
func (p *Pool) settleLater(c *Conn, s state) {
	c.state = s
	p.busy++
	p.work = append(p.work, c)
	p.schedule()
}

func (p *Pool) schedule() {
	if !p.scheduled {
		p.scheduled = true
		p.loop.Defer(p.settleFunc) // called by settle, it waits for the next turn
	}
}

// stepsPerTurn bounds the work of settle in a turn.
const stepsPerTurn = 256

func (p *Pool) settle() {
	p.scheduled = false
	defer p.settled() // also if a user's function panics
	for steps := 0; p.head < len(p.work) && steps < stepsPerTurn; steps++ {
		c := p.work[p.head]
		p.work[p.head] = nil
		p.head++
		p.step(c)
	}
	for steps := 0; len(p.failures) > 0 && steps < stepsPerTurn; steps++ {
		t := p.failures[0]
		p.failures[0] = failure{}
		p.failures = p.failures[1:]
		t.f(nil, t.err)
	}
}

func (p *Pool) settled() {
	if p.head == len(p.work) {
		p.work, p.head = p.work[:0], 0
	}
	if len(p.work) > 0 || len(p.failures) > 0 {
		p.schedule()
	} else {
		p.failures = nil
	}
}

// step does the next step for c.
func (p *Pool) step(c *Conn) {
	switch c.state {
	case setUpDue:
		c.begin(settingUp, p.config.Setup)
	case checkDue:
		c.begin(checking, p.config.Check)
	case returned:
		switch {
		case !c.clean():
			c.unclean()
		case p.waiters.first != nil:
			p.serve(c)
		default:
			p.busy--
			p.keep(c)
		}
	}
}

// begin calls Setup or Check.
func (c *Conn) begin(s state, f func(*Conn, func(error))) {
	if c.done == nil {
		c.done = c.finished
		c.timer = timer(c.pool.loop, c.tooLong)
	}
	c.state = s
	c.timer.Reset(c.pool.config.Patience)
	returned := false
	defer func() {
		if !returned {
			c.finished(errPanicked)
		}
	}()
	f(c, c.done)
	returned = true
}

func (c *Conn) tooLong() { c.finished(errPatience) }
