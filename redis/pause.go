package redis

import (
	"container/list"
	"time"

	"github.com/rondo-go/rondo/resp"
)

// pause is the state of CLIENT PAUSE: until a time, the commands of clients wait,
// all of them or those that may write.
//
//	        CLIENT PAUSE                    CLIENT UNPAUSE, or the time has come
//	running ------------> a command: postpone ----------------------> release: dispatch again
//
// A client whose command waits is blocked as by BLPOP: its further input stays with
// its connection.
//
// Meanwhile the keys stay as they are, so that a copy of them has one state: expired keys are not
// deleted, though no command finds them, and none are evicted. Writes that cannot wait,
// those of a transaction that pauses, say, are as always.
type pause struct {
	on      bool
	all     bool  // not only commands that may write
	until   int64 // milliseconds since 1970
	stop    func() bool
	waiting list.List // of *wait, in the order they came
}

func clientPauseCommand(c *client, args [][]byte) {
	all := true
	switch {
	case len(args) > 4:
		c.subcommandSyntax(args)
		return
	case len(args) == 4 && isWord(args[3], "WRITE"):
		all = false
	case len(args) == 4 && !isWord(args[3], "ALL"):
		c.fail("ERR CLIENT PAUSE mode must be WRITE or ALL")
		return
	}
	timeout, ok := resp.ParseInt(args[2])
	switch {
	case !ok:
		c.fail("ERR timeout is not an integer or out of range")
		return
	case timeout < 0:
		c.fail("ERR timeout is negative")
		return
	}
	if timeout > 0 {
		const longest = 1 << 40 // 34 years: Duration has no room for all timeouts
		c.server.pauseFor(min(timeout, longest), all)
	}
	c.ok()
}

func clientUnpauseCommand(c *client, _ [][]byte) {
	c.server.pause.end(c.server)
	c.ok()
}

// pauseFor pauses clients. A second pause adds to the first.
func (s *Server) pauseFor(timeout int64, all bool) {
	p := &s.pause
	p.all = all || p.on && p.all
	p.until = max(p.until, s.space.now+timeout)
	p.on = true
	s.space.pause(true)
	s.expiry.restart()
	if p.stop != nil {
		p.stop()
	}
	p.stop = s.blocking.after(time.Duration(p.until-s.space.now)*time.Millisecond, func() { p.end(s) })
}

// end ends the pause. The clients go on soon: they are not served within the
// command of another one.
func (p *pause) end(s *Server) {
	if !p.on {
		return
	}
	p.on, p.until = false, 0
	p.stop()
	s.space.pause(false)
	s.expiry.restart()
	var waiting []*wait
	for e := p.waiting.Front(); e != nil; e = p.waiting.Front() {
		w := p.waiting.Remove(e).(*wait)
		w.paused = nil
		waiting = append(waiting, w)
	}
	s.blocking.after(0, func() { s.releaseAll(waiting) })
}

// releaseAll releases clients, soon also those behind one whose command panics.
func (s *Server) releaseAll(waiting []*wait) {
	defer func() {
		if len(waiting) > 0 {
			s.blocking.after(0, func() { s.releaseAll(waiting) })
		}
	}()
	for len(waiting) > 0 {
		w := waiting[0]
		waiting = waiting[1:]
		s.release(w)
	}
}

// holds reports whether a command must wait. One that cannot wait runs.
func (p *pause) holds(c *client, cmd *command, args [][]byte) bool {
	if c.monitor || !c.mayBlock() {
		return false
	}
	writes := cmd.flags&flagWrite != 0 || cmd.replicates()
	if cmd.flags&flagScript != 0 && cmd.flags&flagReadonly == 0 {
		flags := c.server.scripts.effective(cmd, args)
		writes = flags == cmd.flags || flags&flagWrite != 0 // one without flags may write
	}
	if cmd.name == "exec" && c.tx != nil {
		writes = writes || c.tx.flags&flagWrite != 0 || c.tx.replicates
	}
	return p.all || writes
}

// replicates reports whether a command that is no write changes what replicas and
// subscribers get.
func (cmd *command) replicates() bool {
	switch cmd.name {
	case "publish", "spublish", "pfcount":
		return true
	}
	return false
}

// postpone makes a command wait for the end of the pause.
func (c *client) postpone(cmd *command, args [][]byte) {
	if !c.owned {
		args = copyArgs(args, 0)
	}
	c.wait = &wait{client: c, cmd: cmd, postponed: args}
	c.server.blocking.count++
	c.wait.paused = c.server.pause.waiting.PushBack(c.wait)
	c.exemptFromIdle()
}

// release runs a command that was postponed, and then the client's further input.
func (s *Server) release(w *wait) {
	c := w.client
	if c.wait != w || c.closing {
		return
	}
	c.endWait()
	c.exemptFromIdle()
	s.begin(c)
	defer s.end(c)
	c.B = c.transport.buffer()
	c.runRequest(w.postponed, true)
	c.conclude()
	if c.wait == nil {
		c.transport.resume()
	}
	s.completed = true
}
