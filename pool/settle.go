package pool

// What users' functions are called for is collected, and done by settle: at the end
// of the turn, on the loop's own goroutine, never inside of a call of the pool's, nor
// in a coroutine. So a borrower may give back and borrow in any order, a connection
// that was put back within its own Data is looked at when Data has returned, and
// those who borrow and give back without end leave the loop its turns.

// settleLater has settle look at c, in its new state.
func (p *Pool) settleLater(c *Conn, s state) {
	c.state = s
	p.busy++
	p.work = append(p.work, c)
	p.schedule()
}

func (p *Pool) schedule() {
	if !p.scheduled {
		p.scheduled = true
		p.loop.Defer(p.settleFunc) // for the turn that follows, if settle asks for it
	}
}

// stepsPerTurn bounds what settle does at a time.
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

// step does what is due for c.
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

// begin has Setup or Check called.
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
