package redis

import (
	"container/list"
	"math"
	"math/big"
	"slices"
	"time"

	"github.com/rondo-go/rondo/redis/store"
	"github.com/rondo-go/rondo/resp"
)

// A wait is what a blocked client waits for: that one of its keys gets a value of a type.
//
//	         block              a key has something, timeout, CLIENT UNBLOCK
//	running ------> blocked ------------------------------------------------> running
//	                   |    leave
//	                   +-----------> gone
//
// While a client is blocked its input stays with the connection, which still notices the
// peer's end.
//
// A command marks a key as ready when it adds the key, or an entry to a stream, and when a
// stream goes. The mark counts only if a client waits for the key, and any client for a value
// of that type: this gives the keys of a transaction Redis's order. After the command, or after
// the whole transaction, serveBlocked serves the clients that wait for the key, in the order
// they came, while the key has something for them.
type wait struct {
	client *client
	cmd    *command
	typ    store.Type
	keys   []*waiter
	// serve replies to the client and takes what it waited for from the value of a key,
	// which has the type. It returns false if there is nothing for the client.
	serve func(c *client, key []byte, it store.Item) bool
	stop  func() bool // stops the timer; nil without a timeout
	// lost is the error for a client whose key goes, or gets another type; "": it waits on.
	lost string
	// missed adds the reply to a client that did not get what it waited for; nil: a null.
	missed func(*resp.Reply)

	postponed [][]byte      // instead of keys: the command waits for the end of CLIENT PAUSE
	paused    *list.Element // of pause.waiting, if postponed is set

	unending bool     // instead of keys: the client's script is suspended, or the server ends
	exec     bool     // within EXEC
	rest     []queued // of the transaction

	args [][]byte      // of the command
	took time.Duration // its run, before it waited
}

// A waiter stands for a client in the queue of a key.
type waiter struct {
	wait           *wait
	queue          *waitQueue
	before, behind *waiter
}

// waitQueue holds the clients that wait for a key, of any type.
type waitQueue struct {
	db          *database
	key         []byte
	first, last *waiter
	ready       bool // in keyspace.ready
	stream      bool // the key has a stream: see keeps this
	bound       int  // waiters whose wait.lost is set
}

// blocking is the state of all blocked clients but their queues, which the databases have.
type blocking struct {
	count  int    // blocked clients
	timed  int    // of these: with a timeout
	buffer []byte // for the reply to a client that is served
	// after calls a function on the loop after a time, unless stop is called.
	after func(time.Duration, func()) (stop func() bool)
}

func (b *blocking) init(s *Server) {
	if b.after == nil {
		b.after = func(d time.Duration, f func()) func() bool { return s.loop.AfterFunc(d, f).Stop }
	}
}

// mayBlock reports whether a command may block the client. Otherwise it replies at once,
// as after a timeout.
func (c *client) mayBlock() bool { return !c.executing && !c.nowait }

// block makes the client wait for one of the keys. No other request of it runs, and the
// running command must not reply. timeout is in milliseconds; 0 means none.
func (c *client) block(keys [][]byte, typ store.Type, timeout int64, serve func(c *client, key []byte, it store.Item) bool) {
	c.await(&wait{client: c, cmd: c.lastCmd, typ: typ, serve: serve}, keys, timeout)
}

// await is block for a wait that has no keys yet.
func (c *client) await(w *wait, keys [][]byte, timeout int64) {
	w.keys = make([]*waiter, 0, len(keys))
	for _, key := range keys {
		w.join(c.db, key)
	}
	b := &c.server.blocking
	b.count++
	if len(keys) > 0 {
		c.server.space.awaited[w.typ]++
	}
	c.wait = w
	c.exemptFromIdle()
	if timeout > 0 {
		b.timed++
		const longest = 1 << 40 // 34 years: Duration has no room for all timeouts
		d := time.Duration(min(timeout, longest)) * time.Millisecond
		w.stop = b.after(d, func() { c.server.timedOut(w) })
	}
}

// join puts the client at the end of a key's queue, unless it is there already.
func (w *wait) join(db *database, key []byte) {
	q := db.waiting[string(key)]
	switch {
	case q == nil:
		q = &waitQueue{db: db, key: slices.Clone(key)}
		q.see(db.keys.Peek(key))
		if db.waiting == nil {
			db.waiting = make(map[string]*waitQueue)
		}
		db.waiting[string(key)] = q
	case q.last.wait == w:
		return
	}
	x := &waiter{wait: w, queue: q, before: q.last}
	if q.last != nil {
		q.last.behind = x
	} else {
		q.first = x
	}
	q.last = x
	if w.lost != "" {
		q.bound++
	}
	w.keys = append(w.keys, x)
}

// leave removes the waiter from its queue.
func (x *waiter) leave() {
	q := x.queue
	if x.wait.lost != "" {
		q.bound--
	}
	if x.before != nil {
		x.before.behind = x.behind
	} else {
		q.first = x.behind
	}
	if x.behind != nil {
		x.behind.before = x.before
	} else {
		q.last = x.before
	}
	if q.first == nil {
		delete(q.db.waiting, string(q.key))
	}
}

// endWait removes a client from the queues, if it is blocked.
func (c *client) endWait() {
	w := c.wait
	if w == nil {
		return
	}
	c.wait = nil
	b := &c.server.blocking
	b.count--
	if w.stop != nil {
		b.timed--
		w.stop()
	}
	if len(w.keys) > 0 {
		c.server.space.awaited[w.typ]--
	}
	for _, x := range w.keys {
		x.leave()
	}
	if w.paused != nil {
		c.server.pause.waiting.Remove(w.paused)
	}
}

// ready makes the end of the running command serve the clients that wait for a key. A
// command calls it when it has added or overwritten the key, or changed its stream in a way that
// they have to be told of.
func (db *database) ready(key []byte) {
	if len(db.waiting) == 0 {
		return
	}
	q := db.waiting[string(key)]
	if q == nil {
		return
	}
	it := db.keys.Peek(key)
	q.see(it)
	if it.Exists() {
		q.mark(it.Type())
	}
}

// mark makes the queue the last one that is ready, unless it is ready, or no client waits for
// a value of the type.
func (q *waitQueue) mark(typ store.Type) {
	if space := q.db.space; !q.ready && space.awaited[typ] > 0 {
		q.ready = true
		space.ready = append(space.ready, q)
	}
}

// see tells the queue what its key has now. It marks the queue if the key had a stream and
// has none any more: clients that wait for entries of a group are told.
func (q *waitQueue) see(it store.Item) {
	had := q.stream
	q.stream = it.Exists() && it.Type() == store.Stream
	if had && !q.stream {
		q.mark(store.Stream)
	}
}

// suspect is called when a key has changed, or is about to go.
func (db *database) suspect(key []byte, goes bool) {
	q := db.waiting[string(key)]
	switch {
	case q == nil:
	case goes:
		q.see(store.Item{})
	default:
		q.see(db.keys.Peek(key))
	}
}

// suspectAll is suspect for every key of the database: all are about to be deleted, or have
// become those of another one.
func (db *database) suspectAll(deleted bool) {
	var found []string
	for key, q := range db.waiting {
		if q.stream {
			found = append(found, key)
		}
	}
	slices.Sort(found)
	for _, key := range found {
		db.suspect([]byte(key), deleted)
	}
}

// readyAll is ready for every key of the database: it has got the keys of another one.
func (db *database) readyAll() {
	if len(db.waiting) == 0 {
		return
	}
	var found []string
	for key := range db.waiting {
		if db.keys.Peek([]byte(key)).Exists() {
			found = append(found, key)
		}
	}
	slices.Sort(found)
	for _, key := range found {
		db.ready([]byte(key))
	}
}

// serveBlocked serves clients until there is nothing more for them. What one client gets
// may be an element for another one.
func (s *Server) serveBlocked() {
	for i := 0; i < len(s.space.ready); i++ {
		q := s.space.ready[i]
		if q == nil {
			continue // its turn has ended with a panic
		}
		s.space.ready[i] = nil
		q.ready = false
		q.serve()
	}
	s.space.ready = s.space.ready[:0]
}

// serve serves the clients that wait for the key.
func (q *waitQueue) serve() {
	var behind *waiter
	for x := q.first; x != nil; x = behind {
		behind = x.behind
		it := q.db.keys.Find(q.key)
		if !it.Exists() && q.bound == 0 {
			return
		}
		w := x.wait
		switch {
		case w.client.closing:
		case it.Exists() && it.Type() == w.typ:
			w.client.answer(func(c *client) bool { return w.serve(c, q.key, it) })
		case w.lost != "":
			w.client.giveUp(func() { w.client.fail(w.lost) })
		}
	}
}

// answer calls reply to add the reply to a blocked client. If reply returns true, the
// client is blocked no more; otherwise it must have added nothing. The output has memory
// of its own, since the batch of another client may be running.
func (c *client) answer(reply func(*client) bool) {
	s, w := c.server, c.wait
	c.B, c.base, c.charged = s.blocking.buffer[:0], 0, c.errors
	completed, before := false, s.answering
	s.answering = c
	defer func() {
		s.answering = before
		if !completed { // a panic, for which the running batch's client is aborted too
			s.condemn(c, errPanicked)
		}
	}()
	start := time.Now()
	answered := reply(c)
	took := time.Since(start)
	completed = true
	if !answered {
		c.B = nil
		if late := c.late; late != nil {
			c.late = nil
			c.send(late, nil)
		}
		return
	}
	s.countAnswer(c, w, took)
	w.cmd.calls++
	if c.errors != c.charged {
		w.cmd.failed++
	}
	if c.reply != replyOn {
		c.endSilent()
	}
	if c.late != nil {
		c.deliverLate()
	}
	if len(c.B) > 0 {
		c.send(c.B, nil)
	}
	if s.blocking.buffer = c.B; cap(c.B) > 2*spillSize {
		s.blocking.buffer = nil
	}
	c.B, c.base = nil, 0
	c.endWait()
	c.exemptFromIdle()
	c.transport.resume()
}

// countAnswer counts a command whose client was blocked. took is how long its reply took.
func (s *Server) countAnswer(c *client, w *wait, took time.Duration) {
	s.latency.add(eventUnblocking, took, s.space.now)
	took += w.took
	if s.config.latencyTracking {
		w.cmd.observe(took)
	}
	if w.args != nil && s.slowlog.limit >= 0 && took >= s.slowlog.limit {
		s.slowlog.add(c, w.cmd, w.args, took)
	}
}

// giveUp answers a blocked client that did not get what it waited for.
func (c *client) giveUp(reply func()) {
	c.answer(func(*client) bool {
		reply()
		return true
	})
}

// timedOut is called when a wait has taken too long.
func (s *Server) timedOut(w *wait) {
	c := w.client
	if c.wait != w || c.closing {
		return
	}
	s.begin(c)
	defer s.end(c)
	c.giveUp(w.miss)
	s.completed = true
}

// miss adds the reply of a timeout.
func (w *wait) miss() {
	if w.missed != nil {
		w.missed(&w.client.Reply)
		return
	}
	w.client.NullArray()
}

// hold ends a blocked client that sends too much.
func (c *client) hold(input int) {
	c.input = input
	c.checkInput(input)
	c.conclude()
}

// exemptFromIdle tells the transport whether the client may be silent: one that is blocked
// may.
func (c *client) exemptFromIdle() {
	if c.server.config.timeout > 0 {
		c.idleChanged()
	}
}

// timeoutArg parses the timeout of a blocking command, in seconds with a fraction. It
// returns milliseconds, rounded up; 0 means none. It replies with an error if the argument
// is no timeout.
func (c *client) timeoutArg(arg []byte) (ms int64, ok bool) {
	f, ok := parseLongDouble(arg)
	if !ok {
		c.fail("ERR timeout is not a float or out of range")
		return 0, false
	}
	f.Mul(f, big.NewFloat(1000))
	ms, accuracy := f.Int64()
	tooLong := f.Cmp(new(big.Float).SetInt64(math.MaxInt64)) > 0
	if accuracy == big.Below && !tooLong {
		ms++
	}
	if ms < 0 || tooLong { // Redis's conversion to an integer overflows
		c.fail("ERR timeout is negative")
		return 0, false
	}
	return ms, true
}

func clientUnblockCommand(c *client, args [][]byte) {
	if len(args) > 4 {
		c.subcommandSyntax(args)
		return
	}
	failing := false
	if len(args) == 4 {
		switch reason := args[3]; {
		case isWord(reason, "TIMEOUT"):
		case isWord(reason, "ERROR"):
			failing = true
		default:
			c.fail("ERR CLIENT UNBLOCK reason should be TIMEOUT or ERROR")
			return
		}
	}
	id, ok := c.int64Arg(args[2])
	if !ok {
		return
	}
	x := c.server.clients.byID[id]
	if x == nil || x.wait == nil || x.wait.postponed != nil || x.wait.unending || x.closing {
		c.Int(0)
		return
	}
	if failing {
		x.giveUp(func() { x.fail("UNBLOCKED client unblocked via CLIENT UNBLOCK") })
	} else {
		x.giveUp(x.wait.miss)
	}
	c.Int(1)
}
