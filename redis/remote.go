package redis

import (
	"cmp"
	"net"
	"sync"
	"sync/atomic"
	"time"

	"github.com/rondo-go/rondo"
	"github.com/rondo-go/rondo/resp"
)

// remote is the transport of a connection of another loop than the keyspace's,
// and its rondo.Handler. It finds the complete requests in the input, posts a
// copy of them to the keyspace's loop as one batch, and reads nothing more
// until the batch has run. So requests stay in order, and at most one batch is
// on its way.
//
//	connection's loop                        keyspace's loop
//
//	Data: batch, Pause  ------ Post -------> run: client.run
//	deliver: Write, Resume  <-- Ref.Do ----  handOver: replies and messages,
//	                                         whether the batch is done
//
// What goes back is added to reply, under a lock. All messages added before the
// connection's loop takes them cost one call of Do.
type remote struct {
	server *Server
	ref    rondo.Ref
	laddr  net.Addr
	raddr  net.Addr

	// The connection's loop owns these until it posts run, then the keyspace's
	// loop until reply says done.
	batch  *batchBuffer
	taken  int         // bytes of batch that the keyspace's loop has taken
	args   [][]byte    // instead of batch: a long request
	limits inputLimits // the limits that batch was made with
	fault  error       // the input is not RESP, according to limits
	want   int         // the minimum length of the next request

	// The connection's loop owns these.
	request   requestReader
	parked    bool       // the client is blocked: input stays with the connection
	stalled   bool       // the rest of the batch waits for Drained
	departure *departure // nil while the connection is not closing
	measured  func()     // measure, as an argument for Defer

	// The keyspace's loop owns these.
	client *client
	out    *batchBuffer // output of the running batch
	next   batchReply   // what else to hand over at the end of the batch
	queued bool         // in Server.outgoing

	highWater int // the connection's, or soon

	transit  atomic.Int64 // bytes from the keyspace's loop to the connection's
	buffered atomic.Int64 // unsent bytes in the connection's loop

	mu    sync.Mutex
	reply batchReply

	runFunc   func()
	replyFunc func(*rondo.Conn)
}

// inputLimits are the limits by which the connection's loop recognizes complete
// requests. They may be out of date by one batch.
type inputLimits struct {
	limits resp.Limits
	input  int64 // maximum size of an incomplete request
}

// batchReply is what the keyspace's loop hands to the connection's loop.
type batchReply struct {
	posted bool // the connection's loop has been told
	out    *batchBuffer
	idle   time.Duration
	idled  bool        // idle was set
	parked bool        // run has returned, with the client blocked
	done   bool        // run has returned
	limits inputLimits // with parked or done
	ended  bool        // end the connection: at once if err is set, else when all is sent
	err    error

	patience patience // with ended
}

// batchBuffer is the memory of a batch or of its replies. It goes back to the
// pool after use, so an idle connection holds none.
type batchBuffer struct{ b []byte }

// batchSize is the input length at which a batch ends even if more requests
// follow.
const batchSize = 64 << 10

var batchBuffers = sync.Pool{New: func() any { return &batchBuffer{make([]byte, 0, 4<<10)} }}

func newBatchBuffer() *batchBuffer { return batchBuffers.Get().(*batchBuffer) }

func (b *batchBuffer) free() {
	if cap(b.b) <= 4*batchSize {
		b.b = b.b[:0]
		batchBuffers.Put(b)
	}
}

// newRemote asks the keyspace's loop to admit the connection. Nothing is read
// before the answer.
func newRemote(s *Server, conn *rondo.Conn) rondo.Handler {
	setLimits(conn)
	conn.Pause()
	r := &remote{server: s, ref: conn.Ref(), laddr: conn.LocalAddr(), raddr: conn.RemoteAddr(), highWater: conn.Limits().HighWater}
	r.runFunc, r.replyFunc = r.run, r.deliver
	r.measured = func() { r.measure(conn) }
	err := s.loop.Post(func() {
		r.client = s.clients.admit(r)
		r.finish()
		s.handOver()
	})
	if err != nil {
		return nil
	}
	return r
}

// The functions from here to Closed run on the connection's loop.

// scratch is each loop's memory for the list of a request's arguments, which
// scan does not use.
var scratch = rondo.LoopLocal[*[][]byte]{New: func(*rondo.Loop) *[][]byte { return new([][]byte) }}

// Data makes a batch of the complete requests.
func (r *remote) Data(conn *rondo.Conn, in []byte) (int, error) {
	if r.departure != nil {
		return len(in), nil
	}
	if r.parked {
		r.hold(conn, len(in))
		return 0, nil
	}
	n, want := r.scan(scratch.Get(conn.Loop()), in)
	if r.batch == nil && r.args == nil && r.fault == nil && int64(r.want) <= r.limits.input {
		conn.Want(want)
		r.request.awaitMore(conn)
		return n, nil
	}
	// With neither a batch nor a long request, the input breaks a limit or is not
	// RESP. The keyspace's loop ends the client, or sends newer limits, with which
	// Data looks at the input again.
	conn.Pause()
	r.server.loop.Post(r.runFunc) // fails only while the engine closes
	return n, nil
}

// scan takes n bytes of in. It sets r.batch to the complete requests at the
// start of in, or to some of them if they are many; or r.args to a long
// request; or r.fault. If nothing can run, it sets r.want and returns how many
// more bytes it wants.
func (r *remote) scan(args *[][]byte, in []byte) (n, want int) {
	r.want, r.fault = 0, nil
	for r.request.long == nil && n < min(len(in), batchSize) {
		out, used, _, _ := r.request.partial.Read(in[n:], *args, r.limits.limits)
		if cap(out) <= maxArgs {
			*args = out[:0]
		}
		if used == 0 {
			break
		}
		n += used
	}
	if n > 0 {
		r.batch = newBatchBuffer()
		r.batch.b = append(r.batch.b, in[:n]...)
		return n, 0
	}
	out, n, want, err := r.request.read(in, nil, r.limits.limits)
	if r.request.copied {
		r.args = out
	}
	r.want, r.fault = r.request.size(want), err
	return n, want
}

// deliver takes the reply of the keyspace's loop and acts on it.
func (r *remote) deliver(conn *rondo.Conn) {
	r.mu.Lock()
	m := r.reply
	r.reply = batchReply{}
	r.mu.Unlock()
	if m.out != nil {
		r.transit.Add(-int64(len(m.out.b)))
		_, err := conn.Write(m.out.b)
		m.out.free()
		r.measure(conn)
		if r.buffered.Load() > 0 {
			conn.Loop().Defer(r.measured) // the end of the turn sends most of it
		}
		if err == rondo.ErrOutputFull {
			conn.Abort(err)
		}
	}
	if m.idled {
		conn.SetIdle(m.idle)
	}
	switch {
	case m.ended && m.err != nil:
		conn.Abort(m.err)
	case m.ended && r.departure == nil:
		r.departure = depart(conn, m.patience, func() { r.measure(conn) })
	case m.ended:
		r.departure.hasten(m.patience)
	case m.done && r.departure == nil:
		r.limits, r.parked = m.limits, false
		conn.Pause()
		r.proceed(conn)
	case m.parked && r.departure == nil:
		r.limits, r.parked = m.limits, true
		conn.Resume() // the peer's end must be noticed
	}
}

// hold checks the input that arrives while the client is blocked.
func (r *remote) hold(conn *rondo.Conn, input int) {
	if int64(input) > r.limits.input {
		conn.Pause()
		r.server.loop.Post(func() {
			if r.client.wait != nil {
				r.client.hold(input)
				r.server.handOver()
			}
		})
	}
}

// proceed continues after run. If run has left a part of the batch, proceed
// posts it again once the connection can take its replies. Otherwise it resumes
// reading.
func (r *remote) proceed(conn *rondo.Conn) {
	if r.batch != nil && r.taken < len(r.batch.b) {
		if r.stalled = conn.Full(); !r.stalled {
			r.server.loop.Post(r.runFunc)
		}
		return
	}
	if r.batch != nil {
		r.batch.free()
		r.batch, r.taken = nil, 0
	}
	conn.Resume()
}

// Drained continues a stalled batch once the peer has read enough.
func (r *remote) Drained(conn *rondo.Conn) {
	r.measure(conn)
	if r.stalled {
		r.proceed(conn)
	}
}

func (r *remote) measure(conn *rondo.Conn) { r.buffered.Store(int64(conn.Buffered())) }

// EOF ends the client, which has got the replies to all its requests.
func (r *remote) EOF(*rondo.Conn) {
	r.server.loop.Post(func() {
		r.client.close()
		r.server.handOver()
	})
}

func (r *remote) Closed(_ *rondo.Conn, err error) {
	r.departure.stop()
	r.server.loop.Post(func() { r.server.clients.closed(r.client, err) })
}

// The functions from here on run on the keyspace's loop.

// run runs the batch until its end, or until too much output waits.
func (r *remote) run() {
	c := r.client
	if c.closing {
		return // the connection is already ending
	}
	r.server.begin(c)
	defer r.server.end(c)
	switch {
	case r.batch != nil:
		n, _ := c.run(r.batch.b[r.taken:])
		r.taken += n
	case r.args != nil:
		args := r.args
		r.args = nil
		c.B = r.buffer()
		c.runRequest(args, true)
		c.conclude()
	case r.limits != c.inputLimits():
	case r.fault != nil:
		c.B = r.buffer()
		c.protocolError(r.fault)
		c.conclude()
	default:
		c.checkInput(r.want)
		c.conclude()
	}
	if c.wait != nil {
		r.park()
	} else {
		r.finish()
	}
	r.server.completed = true
}

// park lets the connection notice the peer's end while the client is blocked.
func (r *remote) park() {
	r.next.parked = true
	r.next.limits = r.client.inputLimits()
	r.list()
}

// resume returns the batch of a client that was blocked.
func (r *remote) resume() { r.finish() }

// finish returns the batch to the connection's loop.
func (r *remote) finish() {
	r.next.done = true
	r.next.limits = r.client.inputLimits()
	r.list()
}

func (c *client) inputLimits() inputLimits { return inputLimits{c.limits(), c.inputLimit()} }

// list makes the server call handOver at the end of the batch.
func (r *remote) list() {
	if !r.queued {
		r.queued = true
		r.server.outgoing = append(r.server.outgoing, r)
	}
}

// handOver adds everything since its last call to reply.
func (r *remote) handOver() {
	r.queued = false
	r.mu.Lock()
	m := &r.reply
	if m.out == nil {
		m.out = r.out
	} else if r.out != nil {
		m.out.b = append(m.out.b, r.out.b...)
		r.out.free()
	}
	if r.next.idled {
		m.idle, m.idled = r.next.idle, true
	}
	if r.next.done || r.next.parked {
		m.done, m.parked, m.limits = m.done || r.next.done, m.parked || r.next.parked, r.next.limits
	}
	if r.next.ended {
		m.ended, m.err, m.patience = true, cmp.Or(m.err, r.next.err), r.next.patience
	}
	post := !m.posted
	m.posted = true
	r.mu.Unlock()
	r.out, r.next = nil, batchReply{}
	if post {
		r.ref.Do(r.replyFunc) // an error: the connection has ended
	}
}

func (r *remote) buffer() []byte {
	if r.out == nil {
		r.out = newBatchBuffer()
	}
	return r.out.b[len(r.out.b):]
}

func (r *remote) write(p []byte) {
	if r.pending()+len(p) > maxOutput {
		r.server.condemn(r.client, rondo.ErrOutputFull)
		return
	}
	if r.out == nil {
		r.out = newBatchBuffer()
	}
	out := r.out.b
	end := len(out) + len(p)
	if len(p) > 0 && end <= cap(out) && &out[len(out):end][0] == &p[0] {
		r.out.b = out[:end] // p is already there: buffer returned its memory
	} else {
		r.out.b = append(out, p...)
	}
	r.transit.Add(int64(len(p)))
	r.list()
}

func (r *remote) pending() int { return int(r.transit.Load() + r.buffered.Load()) }

// refresh asks the connection's loop to measure. That loop measures by itself
// only after writes and once much has been sent, not after every send.
func (r *remote) refresh() {
	if r.buffered.Load() > 0 {
		r.ref.Do(r.measure) // an error: the connection has ended
	}
}

// full estimates Conn.Full, which proceed asks later.
func (r *remote) full() bool { return r.pending() > r.highWater }

func (r *remote) allow(n int) {
	r.highWater = n
	if n == 0 {
		r.highWater = r.server.highWater()
	}
	r.ref.Do(func(conn *rondo.Conn) { allow(conn, r.server, n) }) // an error: the connection has ended
}

func (r *remote) close(p patience) {
	r.next.ended, r.next.patience = true, p
	r.list()
}

func (r *remote) abort(err error) {
	r.next.ended, r.next.err = true, err
	r.list()
}

func (r *remote) setIdle(d time.Duration) {
	r.next.idle, r.next.idled = d, true
	r.list()
}

func (r *remote) local() net.Addr { return r.laddr }
func (r *remote) peer() net.Addr  { return r.raddr }
