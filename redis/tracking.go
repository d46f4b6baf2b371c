package redis

import "github.com/rondo-go/rondo/resp"

// tracking is client side caching: clients keep what they have read, and the server tells
// them which keys have changed.
//
// By default the server notes each key that a tracking client reads. A change of the key ends
// the notes, and each client that has one gets a message. With BCAST a client gets the
// changed keys that begin with its prefixes, and nothing is noted; see prefixTable.
//
//	                CLIENT TRACKING ON               a read-only command
//	not tracking ----------------------> tracking -----------------------> key noted
//	             <----------------------         <-----------------------
//	                OFF, RESET, leave               change, expiry, eviction: a message
//
// What does not track pays for two tests: of client.tracks behind a command, and of
// keyspace.tracking behind a change, which is nil unless a client has tracked keys.
type tracking struct {
	server   *Server
	clients  int // that track now
	table    trackingTable
	prefixes prefixTable
	byToken  map[uint32]*client
	token    uint32 // the last that a client got
	inner    int    // commands that run within another command
	evicting bool   // the key that changes makes room

	message [2][]byte // with the keys that have changed: of RESP2, RESP3
	scratch []byte
	tokens  []uint32
}

// clientTracking is what a client that has called CLIENT TRACKING has.
type clientTracking struct {
	on, bcast, optin, optout, noloop bool
	caching                          bool  // CLIENT CACHING was called, for the next command or transaction
	broken                           bool  // the client that messages should go to has gone
	redirect                         int64 // the client that gets the messages; 0: this one
	token                            uint32
	prefixes                         prefixTree // of BCAST
	outer                            *outerCall
}

// outerCall is a command that runs others. What these read concerns its client, which is
// told of changes of all keys that the outer command names, as Redis does for scripts.
type outerCall struct {
	client *client
	cmd    *command
	args   [][]byte
}

func (t *tracking) init(s *Server) {
	t.server, t.table.seed = s, s.Seed
	t.byToken = make(map[uint32]*client)
	t.prefixes.init(s)
}

// start makes a client track keys.
func (t *tracking) start(c *client, o *trackingOptions) {
	if c.tracks == nil {
		c.tracks = new(clientTracking)
	}
	x := c.tracks
	if !x.on {
		t.clients++
	}
	t.server.space.tracking = t
	x.on, x.broken = true, false
	x.bcast, x.optin, x.optout, x.noloop, x.redirect = o.bcast, o.optin, o.optout, o.noloop, o.redirect
	if o.bcast {
		if len(o.prefixes) == 0 && x.prefixes.find(nil) == nil {
			t.prefixes.add(c, nil)
		}
		for _, p := range o.prefixes {
			t.prefixes.add(c, p)
		}
	}
}

// stop ends that. The table keeps the notes of the client, as in Redis: they count again if
// it tracks again.
func (t *tracking) stop(c *client) {
	x := c.tracks
	if x == nil || !x.on {
		return
	}
	t.clients--
	t.prefixes.remove(c)
	*x = clientTracking{token: x.token}
}

// leave forgets a client. Its notes stay until their keys change, or are evicted; with the
// last client all go.
func (t *tracking) leave(c *client) {
	if c.tracks == nil || c.local {
		return
	}
	t.stop(c)
	if c.tracks.token != 0 {
		delete(t.byToken, c.tracks.token)
	}
	if t.clients == 0 && len(t.byToken) == 0 {
		t.server.space.tracking = nil
		t.flushTable()
	}
}

// flushTable ends all notes.
func (t *tracking) flushTable() {
	if t.table.len() > 0 {
		t.table.flush()
		t.server.tidying.start() // gives the memory back
	}
}

// remember notes the keys that a command has read. It is called after each command of a
// client that has tracked keys, and forgets CLIENT CACHING behind the command, or the
// transaction, that it is for.
func (c *client) remember(cmd *command, args [][]byte) {
	x := c.tracks
	const but = flagPubsub | flagSkipMonitor // what EVAL_RO and the like have: their scripts' commands count
	if cmd.flags&(flagReadonly|but) == flagReadonly {
		switch o := x.outer; {
		case o != nil:
			if o.client.tracks != nil {
				o.client.rememberKeys(o.cmd, o.args)
			}
		default:
			c.rememberKeys(cmd, args)
		}
	}
	if x.caching && c.tx == nil && !c.executing && !cmd.ofClient() {
		x.caching = false
	}
}

// tracksWithin returns what a client has that runs commands within a command of this one: what
// they read counts for this client.
func (c *client) tracksWithin(cmd *command, args [][]byte) *clientTracking {
	switch x := c.tracks; {
	case x == nil:
		return nil
	case x.outer != nil:
		return x
	}
	return &clientTracking{outer: &outerCall{c, cmd, args}}
}

// ofClient reports whether a command is a subcommand of CLIENT.
func (cmd *command) ofClient() bool {
	const name = "client|"
	return len(cmd.name) > len(name) && cmd.name[:len(name)] == name
}

// uncache forgets CLIENT CACHING behind a request that was no command.
func (c *client) uncache() {
	if c.tracks != nil && c.tx == nil {
		c.tracks.caching = false
	}
}

// rememberKeys notes the keys of a command.
func (c *client) rememberKeys(cmd *command, args [][]byte) {
	x := c.tracks
	if !x.on || x.bcast || x.optin && !x.caching || x.optout && x.caching {
		return
	}
	t := &c.server.tracking
	if x.token == 0 {
		t.newToken(c)
	}
	for i := range cmd.keys {
		k := &cmd.keys[i]
		first, last, ok := k.find(args)
		if !ok || k.flags&keyNot != 0 || k.half && 2*(last-first+1) != len(args)-first {
			continue // XREAD with a wrong number of arguments has no keys, as in Redis
		}
		for at := first; at <= last; at += k.step {
			if key := args[at]; len(key) > maxTracked {
				t.forget(c, key)
			} else {
				t.table.add(key, x.token, t.alive)
			}
		}
	}
	if t.full() {
		t.limit()
	}
}

// maxTracked is the longest key that is noted. The client of a longer one is told at once that
// it has changed.
const maxTracked = 16 << 10

func (t *tracking) forget(c *client, key []byte) {
	t.changed(func(r *resp.Reply) {
		r.Array(1)
		r.Bulk(key)
	})
	t.tell(c)
	t.shrink()
}

// newToken gives a client the number that stands for it in the table: a short one, which no
// other client has while it is connected.
func (t *tracking) newToken(c *client) {
	for t.token++; t.token == 0 || t.byToken[t.token] != nil; t.token++ {
	}
	c.tracks.token = t.token
	t.byToken[t.token] = c
}

func (t *tracking) alive(token uint32) bool { return t.byToken[token] != nil }

// self returns the client whose command runs, or gets its reply after it was blocked.
func (s *Server) self() *client {
	if s.answering != nil {
		return s.answering
	}
	return s.current
}

// invalidate tells the clients that have read a key, or want to know of such keys, that it has
// changed, or is about to expire.
func (t *tracking) invalidate(key []byte, expires bool) {
	self := t.server.self()
	if t.evicting || expires {
		self = nil
	}
	if t.prefixes.any() {
		by := self
		if expires || t.inner > 0 {
			by = nil // as in Redis, which takes a script for another client
		}
		t.prefixes.note(key, by)
	}
	if t.table.len() > 0 {
		t.drop(key, self)
	}
}

// drop ends the notes of a key and tells their clients, but one that has changed the key by
// itself and wants no messages of that.
func (t *tracking) drop(key []byte, self *client) {
	t.tokens = t.table.take(key, t.tokens[:0])
	if len(t.tokens) == 0 {
		return
	}
	t.changed(func(r *resp.Reply) {
		r.Array(1)
		r.Bulk(key)
	})
	for _, token := range t.tokens {
		c := t.byToken[token]
		if c == nil || !c.tracks.on || c.tracks.bcast || c.tracks.noloop && c == self {
			continue
		}
		t.tell(c)
	}
	t.shrink()
}

// flushed tells all tracking clients that all keys have gone, or have been exchanged.
func (t *tracking) flushed() {
	if t.server.space.tracking == nil {
		return
	}
	t.flushTable()
	t.changed(nil)
	for _, c := range t.server.clients.list {
		if c.tracks != nil && c.tracks.on {
			t.tell(c)
		}
	}
}

// The parts of messages before the keys, by the version of RESP.
var trackingHeads = [2]string{
	"*3\r\n$7\r\nmessage\r\n$20\r\n__redis__:invalidate\r\n",
	">2\r\n$10\r\ninvalidate\r\n",
}

// changed makes the message for tell. keys adds an array of keys; nil means all keys.
func (t *tracking) changed(keys func(*resp.Reply)) {
	for i, head := range trackingHeads {
		r := resp.Reply{B: append(t.message[i][:0], head...), Proto: 2 + i}
		if keys != nil {
			keys(&r)
		} else {
			r.Null()
		}
		t.message[i] = r.B
	}
}

// shrink drops the memory of a long message, and of a long list of clients.
func (t *tracking) shrink() {
	for i := range t.message {
		if cap(t.message[i]) > spillSize {
			t.message[i] = nil
		}
	}
	if cap(t.tokens) > spillSize {
		t.tokens = nil
	}
}

// tell sends the message to a client, or to the one that gets its messages. RESP2 has messages
// only for clients that subscribe to channels, and so only for another connection.
func (t *tracking) tell(c *client) {
	to := c
	if id := c.tracks.redirect; id != 0 {
		if to = t.server.clients.byID[id]; to == nil {
			c.tracks.broken = true
			if c.Proto == 3 {
				r := resp.Reply{Proto: 3}
				r.Push(2)
				r.BulkString("tracking-redir-broken")
				r.Int(id)
				c.inform(r.B)
			}
			return
		}
	}
	switch {
	case to.Proto == 3:
		to.inform(t.message[1])
	case c.tracks.redirect != 0 && to.subscribed():
		to.inform(t.message[0])
	}
}

// inform sends the client a message: behind the reply of its command, if one runs.
func (c *client) inform(message []byte) {
	switch {
	case c.closing:
	case c.executing, c.server.self() == c, c.server.current == c:
		c.delay(message)
	default:
		c.send(message, nil)
	}
}

// limitEffort is how many keys limit drops at once. If that is not enough, more go soon.
const limitEffort = 256

// full reports whether more keys are noted than tracking-table-max-keys allows, or more memory
// is in use than suits so many.
func (t *tracking) full() bool {
	most := t.server.config.trackedKeys
	return most > 0 && t.table.len() > 0 && (int64(t.table.len()) > most || t.table.used() > max(leastTracked, min(most, 1<<40)*bytesTracked))
}

// The table may take bytesTracked for each key that it may have, and leastTracked in any case:
// keys may be long, and each may have been read by many clients.
const (
	bytesTracked = 512
	leastTracked = 64 << 20
)

// limit drops random keys while the table is full. Their clients get messages as if the keys had
// changed, also those that want none of their own changes.
func (t *tracking) limit() {
	for range limitEffort {
		if !t.full() {
			return
		}
		t.scratch = t.table.random(t.scratch[:0])
		t.drop(t.scratch, nil)
	}
	if t.full() {
		t.server.tidying.start()
	}
}

func applyTracking(s *Server) { s.tracking.limit() }
