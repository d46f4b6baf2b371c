package redis

import (
	"context"
	"iter"
	"log/slog"
	"net"
	"strings"
	"time"

	"github.com/rondo-go/rondo/internal/bridge"
	"github.com/rondo-go/rondo/internal/sys"
	"github.com/rondo-go/rondo/redis/acl"
	"github.com/rondo-go/rondo/redis/internal/script"
)

// A script runs on the loop's thread, in a coroutine, so that it can stand still in the middle:
//
//	                     step                      longer than busy-reply-threshold
//	EVAL: idle ---------------------------> running ------------------------------> suspended
//	        ^                                 |  ^                                      |
//	        +------ done: the reply ----------+  +----- proceed, in each turn, for -----+
//	                                                    scriptSlice
//
// While it is suspended its client is blocked, as by BLPOP, the time that commands see stands
// still, and other clients get BUSY for all but a few commands. So a script is one step for
// them, however long it takes. One within EXEC suspends that too.
//
// A short script costs two switches of goroutines, without the scheduler, about 0.2 µs.

const (
	// scriptSlice is how long a suspended script runs in each turn of the loop.
	scriptSlice = 2 * time.Millisecond
	// scriptPause lets the loop take a turn.
	scriptPause = time.Microsecond
)

// scriptRun is a run of a script.
type scriptRun struct {
	function   *script.Function
	name       string
	eval       bool // no function of a library
	keys, args [][]byte

	client   *client
	readonly bool
	allowOOM bool
	oom      bool // memory was full at the start
	dirty    bool // it has called a command that may write
	mayYield bool
	outer    bool // the client has executed something already: EXEC
	proto    int  // chosen by redis.setresp

	start   time.Time
	slice   time.Time // when it began to run in this turn
	request [][]byte  // set when it is suspended
	wait    *wait

	done    bool
	value   script.Value
	failure *script.Error
}

// scriptRunner is the coroutine.
type scriptRunner struct {
	next      func() (struct{}, bool)
	stop      func()
	yield     func(struct{}) bool
	goroutine uintptr
}

// execute runs a script and replies, or suspends it.
func (s *scripts) execute(c *client, cmd *command, args [][]byte, run scriptRun, flags scriptFlags) {
	if s.lua().Running() {
		c.fail("ERR a script can't run within another one")
		return
	}
	server := s.server
	readonly := strings.HasSuffix(cmd.name, "_ro")
	run.oom = server.config.maxMemory > 0 && !server.makeRoom()
	if flags&scriptCompatible == 0 {
		if readonly && flags&scriptNoWrites == 0 {
			c.fail("ERR Can not execute a script with write flag using *_ro command.")
			return
		}
		if run.oom && flags&(scriptAllowOOM|scriptNoWrites) == 0 {
			c.fail("OOM allow-oom flag is not set on the script, can not run it when used memory > 'maxmemory'")
			return
		}
		run.allowOOM = flags&scriptAllowOOM != 0
	}
	run.readonly = readonly || flags&scriptNoWrites != 0
	run.client, run.outer, run.proto = c, c.executing, 2
	run.mayYield = !c.nowait && c.depth == 0
	run.start = time.Now()
	run.slice = run.start
	s.run = run
	s.caller.db, s.caller.user, s.caller.Proto = c.db, c.user, 2
	s.caller.created, s.caller.active = c.created, c.active
	s.caller.tracks = nil
	if c.tracks != nil {
		s.caller.tracks = c.tracksWithin(cmd, args)
	}
	c.executing = true // holds messages back until the reply is complete
	s.step()
	r := &s.run
	if !r.done {
		s.suspend(cmd, args)
		return
	}
	c.executing = r.outer
	s.reply(c, r)
	s.engine.Forget()
	*r = scriptRun{}
}

// step lets the script run until it has ended or yields.
func (s *scripts) step() {
	r := &s.runner
	loop := s.server.loop
	if r.next == nil {
		if loop != nil {
			bridge.LoopOf(loop).BindThread()
		}
		r.next, r.stop = iter.Pull(s.runScripts)
	}
	var was uintptr
	if loop != nil {
		was = bridge.LoopOf(loop).SetGuest(r.goroutine)
	}
	completed := false
	defer func() {
		if loop != nil {
			bridge.LoopOf(loop).SetGuest(was)
		}
		if !completed { // a command has panicked, and the coroutine has ended
			s.runner, s.run = scriptRunner{}, scriptRun{}
			s.engine.Forget()
			s.setBusy(false)
		}
	}()
	r.next()
	completed = true
}

// runScripts is the body of the coroutine: a script for each call of next.
func (s *scripts) runScripts(yield func(struct{}) bool) {
	s.runner.goroutine, s.runner.yield = sys.Goroutine(), yield
	if loop := s.server.loop; loop != nil {
		bridge.LoopOf(loop).SetGuest(s.runner.goroutine)
	}
	for {
		r := &s.run
		if r.eval {
			r.value, r.failure = s.engine.Eval(r.function, r.keys, r.args)
		} else {
			r.value, r.failure = s.engine.Call(r.function, r.keys, r.args)
		}
		r.done = true
		if !yield(struct{}{}) {
			return
		}
	}
}

// reply adds the result of a run.
func (s *scripts) reply(c *client, r *scriptRun) {
	if x := r.failure; x != nil {
		text := x.Text
		if x.Source != "" {
			text += " script: " + r.name + ", on " + x.Source + ":" + x.Line + "."
		}
		c.scriptError(text, x.Counted)
		return
	}
	if !r.value.Fits(s.engine.MaxMemory) {
		c.scriptError("ERR the reply of the script is too large", false)
		return
	}
	out := script.Replier{Reply: &c.Reply, Protocol: r.proto, Fail: c.scriptError}
	out.Add(r.value)
	c.spill()
}

// scriptError is fail for an error that may have been counted.
func (c *client) scriptError(text string, counted bool) {
	text = strings.NewReplacer("\r", " ", "\n", " ").Replace(strings.TrimRight(text, "\r\n"))
	if counted {
		c.Error(text)
		return
	}
	c.fail(text)
}

// setBusy makes the keys stand still, or ends that.
func (s *scripts) setBusy(on bool) {
	if s.busy == on {
		return
	}
	s.busy = on
	if s.server.loop != nil {
		s.server.expiry.restart()
	}
}

// suspend blocks the client of the script, which has yielded.
func (s *scripts) suspend(cmd *command, args [][]byte) {
	r := &s.run
	c := r.client
	r.request = copyArgs(args, 0)
	r.wait = &wait{client: c, cmd: cmd, unending: true}
	if c.tracks != nil {
		s.caller.tracks = c.tracksWithin(cmd, r.request)
	}
	c.wait = r.wait
	s.server.blocking.count++
	if c.silent() {
		c.B = c.B[:c.base]
	}
	c.exemptFromIdle()
	s.setBusy(true)
	s.server.log().Warn("redis: a script runs longer than busy-reply-threshold: other clients get BUSY until it ends, or SCRIPT KILL or FUNCTION KILL ends it",
		"script", r.name, "client", c.describe())
	s.server.blocking.after(scriptPause, s.proceed)
}

// proceed lets a suspended script go on for a moment.
func (s *scripts) proceed() {
	r := &s.run
	if !s.busy || r.client == nil {
		return
	}
	server := s.server
	server.begin(r.client)
	defer server.end(r.client)
	r.slice = time.Now()
	s.step()
	if r.done {
		s.finish()
	} else {
		server.blocking.after(scriptPause, s.proceed)
	}
	server.completed = true
}

// finish replies to the client of a script that was suspended, which may have gone, and runs the
// rest of its transaction.
func (s *scripts) finish() {
	server := s.server
	r := s.run
	s.run = scriptRun{}
	s.setBusy(false)
	c, w := r.client, r.wait
	took := time.Since(r.start)
	c.endWait()
	c.B, c.base, c.charged = nil, 0, c.errors
	s.reply(c, &r)
	s.engine.Forget()
	w.took = took
	server.countAnswer(c, w, 0)
	w.cmd.calls++
	if c.errors != c.charged {
		w.cmd.failed++
	}
	if r.outer {
		c.execRest(w.rest)
	}
	if c.gone && c.wait == nil { // the rest of the transaction may have begun something
		c.executing = false
		c.endSubscriptions()
		server.tracking.leave(c)
	}
	if c.wait == nil && !w.exec {
		c.executing = false
	}
	if c.wait != nil && w.exec {
		c.wait.exec = true
	}
	if c.wait == nil && c.reply != replyOn {
		c.endSilent()
	}
	if len(c.B) > 0 && !c.gone {
		c.send(c.B, nil)
	}
	c.B, c.base = nil, 0
	if c.wait != nil {
		return
	}
	if len(server.space.ready) > 0 {
		server.serveBlocked()
	}
	if c.gone {
		return
	}
	if c.late != nil {
		c.deliverLate()
	}
	c.exemptFromIdle()
	c.transport.resume()
}

// killed makes the suspended script end soon.
func (s *scripts) killed() {
	s.engine.Kill("Script killed by user with SCRIPT KILL...")
	s.server.log().Warn("redis: a script was ended by SCRIPT KILL or FUNCTION KILL", "script", s.run.name)
}

// end ends the coroutine, and before that a script that is suspended.
func (s *scripts) end() {
	for s.busy && !s.run.done {
		s.engine.Kill("The server is shutting down")
		s.run.mayYield = false
		s.step()
	}
	if s.runner.stop != nil {
		s.runner.stop()
	}
	s.runner = scriptRunner{}
	s.setBusy(false)
}

// scriptHost is the scripts as package script calls them.
type scriptHost scripts

// Tick implements script.Host. It yields if the script has run for its time.
func (h *scriptHost) Tick() {
	s := (*scripts)(h)
	r, threshold := &s.run, s.server.config.busyReply
	if threshold <= 0 {
		return
	}
	now := time.Now()
	if s.busy {
		if now.Sub(r.slice) < scriptSlice {
			return
		}
	} else if now.Sub(r.start) < time.Duration(min(threshold, 1<<40))*time.Millisecond {
		return
	}
	if !r.mayYield {
		s.engine.Kill("the script runs longer than busy-reply-threshold within a command of the program, which can't wait for it")
		return
	}
	if !s.runner.yield(struct{}{}) {
		s.engine.Kill("The server is shutting down")
	}
}

// Call implements script.Host.
func (h *scriptHost) Call(args [][]byte) (reply []byte, refusal string) {
	s := (*scripts)(h)
	c, r := s.caller, &s.run
	cmd := s.server.commands.find(args)
	if refusal = s.refusal(cmd, args); refusal != "" {
		code, _, _ := strings.Cut(strings.TrimPrefix(refusal, "-"), " ")
		if refusal[0] != '-' {
			code = "ERR"
		}
		s.server.stats.countError(code)
		if cmd != nil {
			cmd.rejected++
		}
		return nil, refusal
	}
	if cmd.flags&flagWrite != 0 {
		r.dirty = true
	}
	out := &s.output
	out.long = out.long[:0]
	c.B, c.base, c.lastCmd = out.buffer(), 0, cmd
	s.server.tracking.inner++
	c.call(cmd, args)
	s.server.tracking.inner--
	if len(out.long) > 0 {
		out.long = append(out.long, c.B...)
		reply = out.long
		if cap(out.long) > maxScratch {
			out.long = nil
		}
	} else {
		reply = c.B
	}
	if cap(c.B) <= maxScratch {
		out.short = c.B[:0]
	}
	c.flushed = false
	return reply, ""
}

// refusal returns why a script may not call a command, or "". The checks are in Redis's order.
func (s *scripts) refusal(cmd *command, args [][]byte) string {
	r := &s.run
	switch {
	case cmd == nil:
		return "Unknown Redis command called from script"
	case !cmd.arityOK(len(args)):
		return "Wrong number of args calling Redis command from script"
	case !s.caller.user.Unlimited():
		if why := s.caller.aclCheck(cmd, args); why != "" {
			return "-" + why
		}
	}
	switch {
	case cmd.flags&flagNoscript != 0:
		return "This Redis command is not allowed from script"
	case r.readonly && (cmd.flags&flagWrite != 0 || cmd.replicates()):
		return "Write commands are not allowed from read-only scripts."
	case cmd.flags&flagDenyOOM != 0 && r.oom && !r.allowOOM && !r.dirty:
		return "-" + errOOM
	}
	return ""
}

// Permitted implements script.Host.
func (h *scriptHost) Permitted(args [][]byte) (permitted, known bool) {
	cmd := h.server.commands.find(args)
	if cmd == nil {
		return false, false
	}
	why, _ := h.server.mayRun(h.run.client.user, cmd, args)
	return why == acl.Allowed, true
}

// SetProtocol implements script.Host.
func (h *scriptHost) SetProtocol(version int) {
	h.caller.Proto = version
	h.run.proto = version
}

// Log implements script.Host.
func (h *scriptHost) Log(level int, text string) {
	h.server.log().Log(context.Background(), scriptLevels[level], "redis: redis.log of a script", "text", text)
}

var scriptLevels = [...]slog.Level{
	script.LogDebug: slog.LevelDebug, script.LogVerbose: slog.LevelDebug + 2, script.LogNotice: slog.LevelInfo, script.LogWarning: slog.LevelWarn,
}

// Outside implements script.Host.
func (h *scriptHost) Outside() int64 { return h.server.space.store.Memory().Heap }

// scriptOutput is the transport of the client that runs scripts' commands. It keeps a reply for
// which the reply buffer is too small.
type scriptOutput struct{ short, long []byte }

func (o *scriptOutput) buffer() []byte        { return o.short[:0] }
func (o *scriptOutput) write(p []byte)        { o.long = append(o.long, p...) }
func (o *scriptOutput) pending() int          { return 0 }
func (o *scriptOutput) refresh()              {}
func (o *scriptOutput) full() bool            { return false }
func (o *scriptOutput) allow(int)             {}
func (o *scriptOutput) resume()               {}
func (o *scriptOutput) close(patience)        {}
func (o *scriptOutput) abort(error)           {}
func (o *scriptOutput) setIdle(time.Duration) {}
func (o *scriptOutput) local() net.Addr       { return nil }
func (o *scriptOutput) peer() net.Addr        { return nil }
