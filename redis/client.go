package redis

import (
	"github.com/rondo-go/rondo/redis/acl"
	"github.com/rondo-go/rondo/resp"
)

// client is the state of one connection. It lives on the keyspace's loop,
// whichever loop moves its bytes.
//
//	       admit            QUIT, protocol error, kill
//	(new) ------> serving ------------------------------> leave --> (gone)
//	                 |  output limit, lost connection      ^
//	                 +-------------------------------------+
//
// A serving client's requests run in the order they arrive. After leave the
// server no longer lists the client, though its connection may still be
// sending.
type client struct {
	resp.Reply // of the batch that runs; empty between batches

	server    *Server
	transport transport
	db        *database
	id        int64
	index     int // in clients.list
	request   requestReader
	user      *acl.User
	authed    bool // by a password, or when it needed none
	closing   bool // no further request runs
	gone      bool // has left; see leave
	refused   bool // admit refused it
	killed    bool // by CLIENT KILL
	noEvict   bool
	noTouch   bool
	owned     bool // the running command may keep its arguments
	reply     replyMode
	flushed   bool // output was handed over before the end of the batch
	base      int  // where in B the output begins that the reply mode may drop
	input     int  // bytes received of requests that have not run, or run now
	errors    int  // error replies so far
	charged   int  // of errors: those that a command's failed count includes

	name       string
	libName    string
	libVersion string
	lastCmd    *command
	created    int64 // milliseconds since 1970
	active     int64 // milliseconds since 1970: when the latest requests arrived

	tx        *transaction // nil outside MULTI
	dirtyCAS  bool         // a watched key has changed
	watching  map[watchID]*watch
	pubsub    *subscriptions  // nil without subscriptions
	tracks    *clientTracking // nil: has never tracked keys
	late      []byte          // messages held back until the end of EXEC, or of the command
	executing bool            // EXEC, or an added command, is running
	limited   bool            // local or monitor: may not use every command
	local     bool            // of a Client or a Call
	monitor   bool            // has called MONITOR
	nowait    bool            // a Client's command, which must not block
	depth     int             // of added commands that run within each other
	wait      *wait           // nil unless the client is blocked

	condemned error // not nil: the end of the batch aborts the client with it
	noted     int64 // of clientMemory.held
	listed    int64 // of noted: subscriptions and watches
	stall     stall
	softSince int64 // since when the output exceeds the soft limit; 0: it does not
}

// replyMode is the mode that CLIENT REPLY sets.
type replyMode uint8

const (
	replyOn replyMode = iota
	replyOff
	replySkipNext // CLIENT REPLY SKIP is running, or was the last command
	replySkip     // the command to skip is running
)

// silent reports whether the replies of the running command are dropped.
func (c *client) silent() bool { return c.reply == replyOff || c.reply == replySkip }

// spillSize is the number of reply bytes to collect before they go to the
// transport. The replies to a usual pipeline go out in one piece, and a large
// pipeline does not grow the buffer further.
const spillSize = 64 << 10

// From spillLeast bytes on a buffer that has no more than spillRoom left goes to the
// transport too, since it would have to be copied to a larger one.
const (
	spillLeast = 8 << 10
	spillRoom  = 1 << 10
)

// isMuch reports whether the collected output should go to the transport. That of a client
// with a strict limit waits until the limit is reached.
func (c *client) isMuch() bool {
	n := len(c.B)
	if n < spillSize && (n < spillLeast || cap(c.B)-n > spillRoom) {
		return false
	}
	strict := c.strict()
	return strict == 0 || n >= max(spillSize, strict)
}

// spill hands collected output over if it is much. Replies with many parts call
// it.
func (c *client) spill() {
	if !c.isMuch() {
		return
	}
	if c.silent() {
		c.B = c.B[:c.base]
	} else {
		c.flush()
	}
}

// flush hands all collected output to the transport.
func (c *client) flush() { c.flushWith(nil) }

// flushWith is flush, followed by more.
func (c *client) flushWith(more []byte) {
	c.send(c.B, more) // more before buffer: a write invalidates its result
	if c.wait != nil {
		c.B = c.B[:0] // see answer
	} else {
		c.B = c.transport.buffer()
	}
	c.base = 0
	c.flushed = true
}

func (c *client) ok() { c.B = append(c.B, "+OK\r\n"...) }

// fail adds an error reply; text begins with its code.
func (c *client) fail(text string) {
	c.countError(text)
	c.Error(text)
}

func (c *client) countError(text string) {
	c.errors++
	c.server.stats.countError(text)
}

// value adds a bulk string of any length. A long one bypasses the reply buffer.
func (c *client) value(v []byte) {
	if len(v) < spillSize || len(v) < c.strict() || c.silent() {
		c.Bulk(v)
		c.spill()
		return
	}
	c.B = append(c.B, '$')
	c.B = appendInt(c.B, int64(len(v)))
	c.B = append(c.B, '\r', '\n')
	c.flushWith(v)
	c.B = append(c.B, '\r', '\n')
}

// array adds an array with the elements that elements adds and counts.
func (c *client) array(elements func() int) { c.counted(elements, (*resp.Reply).Array) }

// counted adds an aggregate whose length is known only after its elements. It
// then moves the elements to make room for the header.
func (c *client) counted(elements func() int, header func(*resp.Reply, int)) {
	start := len(c.B)
	n := elements()
	end := len(c.B)
	header(&c.Reply, n)
	rotate(c.B[start:], end-start)
}

// rotate moves b[n:], which is short, to the front of b.
func rotate(b []byte, n int) {
	var tail [64]byte
	k := copy(tail[:], b[n:])
	copy(b[k:], b[:n])
	copy(b, tail[:k])
}

// pair adds two elements of a map.
func (c *client) pair(key, value string) {
	c.BulkString(key)
	c.BulkString(value)
}

// int64Arg parses an argument. It replies with an error if that is not an
// integer.
func (c *client) int64Arg(arg []byte) (int64, bool) {
	n, ok := resp.ParseInt(arg)
	if !ok {
		c.fail(errNotInteger)
	}
	return n, ok
}

// authRequired reports whether the client must still authenticate.
func (c *client) authRequired() bool { return !c.authed && !c.server.users.Default.Open() }

// beDefault makes the client the default user, as it is when it connects.
func (c *client) beDefault() {
	c.user, c.authed = c.server.users.Default, c.server.users.Default.Open()
	if c.local {
		c.user, c.authed = program, true
	}
}

// subscribed reports whether the client receives published messages.
func (c *client) subscribed() bool { return c.pubsub != nil }
