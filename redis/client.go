package redis

import (
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
// While it is serving its requests run in the order they came. When it leaves
// it is forgotten by the server, though its connection may still be sending.
type client struct {
	resp.Reply // of the batch that runs; empty between batches

	server    *Server
	transport transport
	db        *database
	id        int64
	index     int // in clients.list
	request   requestReader
	authed    bool
	closing   bool // runs nothing any more
	gone      bool // is in no list of those that are served
	refused   bool // was not let in
	killed    bool // by CLIENT KILL
	noEvict   bool
	owned     bool // the arguments of the command that runs may be kept
	reply     replyMode
	flushed   bool // output was handed over before the end of the batch
	base      int  // where in B the output begins that the mode may take back
	input     int  // bytes received of requests that have not been run, or run now
	errors    int  // error replies ever
	charged   int  // of errors: counted as a command's failure

	name       string
	libName    string
	libVersion string
	lastCmd    *command
	created    int64 // milliseconds since 1970
	active     int64 // likewise: when the last requests came

	tx        *transaction // nil outside MULTI
	dirtyCAS  bool         // a watched key has changed
	watching  map[watchID]*watch
	pubsub    *subscriptions // nil if none
	late      []byte         // messages that wait for the end of EXEC
	executing bool           // EXEC runs

	condemned error // why the end of the batch ends the client
	softSince int64 // since when output is above the soft limit; 0: it is not
}

// replyMode is what CLIENT REPLY set.
type replyMode uint8

const (
	replyOn replyMode = iota
	replyOff
	replySkipNext // CLIENT REPLY SKIP has run, or runs
	replySkip     // the command to skip runs
)

// silent reports whether the replies of the command that runs are dropped.
func (c *client) silent() bool { return c.reply == replyOff || c.reply == replySkip }

// spillSize is how many bytes of replies are gathered before they are handed
// to the transport: replies to a whole pipeline go out in one piece, without
// a large one growing the buffer any further.
const spillSize = 64 << 10

// spill hands over what a reply of many parts has gathered, if it is much.
func (c *client) spill() {
	if len(c.B) < spillSize {
		return
	}
	if c.silent() {
		c.B = c.B[:c.base]
	} else {
		c.flush()
	}
}

// flush hands all gathered output to the transport.
func (c *client) flush() { c.flushWith(nil) }

// flushWith is flush of the gathered output and of what follows it.
func (c *client) flushWith(more []byte) {
	c.transport.write(c.B)
	if len(more) > 0 {
		c.transport.write(more) // before buffer: what that returns dies with a write
	}
	c.server.checkOutput(c)
	c.B = c.transport.buffer()
	c.base = 0
	c.flushed = true
}

func (c *client) ok() { c.B = append(c.B, "+OK\r\n"...) }

// fail adds an error reply; text begins with its code.
func (c *client) fail(text string) {
	c.errors++
	c.server.stats.countError(text)
	c.Error(text)
}

// value adds a bulk string of any length. A long one does not go through the
// reply buffer.
func (c *client) value(v []byte) {
	if len(v) < spillSize || c.silent() {
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

// array adds an array of as many elements as elements adds.
func (c *client) array(elements func() int) { c.counted(elements, (*resp.Reply).Array) }

// counted adds an aggregate whose length is known after its elements, which
// are then moved to make room for the header.
func (c *client) counted(elements func() int, header func(*resp.Reply, int)) {
	start := len(c.B)
	n := elements()
	end := len(c.B)
	header(&c.Reply, n)
	rotate(c.B[start:], end-start)
}

// rotate moves b[n:] to the front of b; it is short.
func rotate(b []byte, n int) {
	var tail [32]byte
	k := copy(tail[:], b[n:])
	copy(b[k:], b[:n])
	copy(b, tail[:k])
}

// pair adds two elements of a map.
func (c *client) pair(key, value string) {
	c.BulkString(key)
	c.BulkString(value)
}

// int64Arg parses an argument, and replies with an error if it is no integer.
func (c *client) int64Arg(arg []byte) (int64, bool) {
	n, ok := resp.ParseInt(arg)
	if !ok {
		c.fail(errNotInteger)
	}
	return n, ok
}

// authRequired reports whether the client has yet to give the password.
func (c *client) authRequired() bool {
	return !c.authed && c.server.config.password != ""
}

// subscribed reports whether the client is in the mode that receives
// published messages.
func (c *client) subscribed() bool { return c.pubsub != nil }
