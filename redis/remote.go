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

// remote is the transport of a connection that is not of the keyspace's loop,
// and its rondo.Handler. It finds the complete requests in the input, posts a
// copy of them to the keyspace's loop as one batch, and reads nothing more
// until that has been run: requests stay in order, and no more than a batch is
// on its way.
//
//	connection's loop                        keyspace's loop
//
//	Data: batch, Pause  ------ Post -------> run: client.run
//	deliver: Write, Resume  <-- Ref.Do ----  handOver: replies and messages,
//	                                         whether the batch is done
//
// What goes back is put in mail, under a lock, so that any number of messages
// that come before the connection's loop looks cost one call of Do.
type remote struct {
	server    *Server
	ref       rondo.Ref
	laddr     net.Addr
	raddr     net.Addr
	highWater int // the connection's

	// The connection's loop's until run is posted, then the keyspace's until
	// mail says done.
	batch  *batchBuffer
	taken  int         // of batch, by the keyspace
	args   [][]byte    // in the place of batch: a long request
	limits inputLimits // what batch was made with
	fault  error       // the input is not RESP, by gate
	want   int         // the next request takes at least so many bytes

	// The connection's loop's.
	request   requestReader
	stalled   bool       // the rest of the batch waits for Drained
	departure *departure // nil: it is not closing
	measured  func()     // measure, for Defer

	// The keyspace's loop's.
	client *client
	out    *batchBuffer // output of the batch that runs
	next   batchReply   // the rest of what is to be handed over at its end
	queued bool         // in Server.outgoing

	transit  atomic.Int64 // bytes from the keyspace's loop to the connection's
	buffered atomic.Int64 // bytes that wait to be sent there

	mu    sync.Mutex
	reply batchReply

	runFunc   func()
	replyFunc func(*rondo.Conn)
}

// gate is how the connection's loop tells complete requests. It may be out of
// date by a batch.
type inputLimits struct {
	limits resp.Limits
	input  int64 // what an incomplete request may take
}

// mail is what the keyspace's loop has for the connection's.
type batchReply struct {
	posted bool // the connection's loop has been told
	out    *batchBuffer
	idle   time.Duration
	idled  bool        // idle has been set
	done   bool        // run has returned
	limits inputLimits // with done
	ended  bool        // the connection is to end: with err now, without when all is sent
	err    error

	patience patience // with ended
}

// block is the memory of a batch or of its replies. It is returned when they
// are through: a connection at rest holds none.
type batchBuffer struct{ b []byte }

// blockSize is how much input makes a batch though more requests follow.
const batchSize = 64 << 10

var batchBuffers = sync.Pool{New: func() any { return &batchBuffer{make([]byte, 0, 4<<10)} }}

func newBatchBuffer() *batchBuffer { return batchBuffers.Get().(*batchBuffer) }

func (b *batchBuffer) free() {
	if cap(b.b) <= 4*batchSize {
		b.b = b.b[:0]
		batchBuffers.Put(b)
	}
}

// newRemote begins with asking for admission: nothing is read before.
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

// The following runs on the connection's loop.

// scratch is each loop's memory for the arguments of requests, which do not
// matter here.
var scratch = rondo.LoopLocal[*[][]byte]{New: func(*rondo.Loop) *[][]byte { return new([][]byte) }}

// Data makes a batch of the complete requests.
func (r *remote) Data(conn *rondo.Conn, in []byte) (int, error) {
	if r.departure != nil {
		return len(in), nil
	}
	n, want := r.scan(scratch.Get(conn.Loop()), in)
	if r.batch == nil && r.args == nil && r.fault == nil && int64(r.want) <= r.limits.input {
		conn.Want(want)
		r.request.awaitMore(conn)
		return n, nil
	}
	// If there is neither a batch nor a long request the client is to be ended.
	// The keyspace's loop says so, or else that the gate is out of date, and the
	// input is looked at again.
	conn.Pause()
	r.server.loop.Post(r.runFunc) // an error: the engine, and so all, ends
	return n, nil
}

// scan takes n bytes of in. It sets batch to the complete requests that in begins
// with, to some of them if they are many; or args to a long request; or fault. If
// there is nothing to run it sets r.want, and returns how many more bytes it
// wants.
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

// deliver takes the mail.
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
			conn.Loop().Defer(r.measured) // most of it goes at the turn's end
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
		r.limits = m.limits
		r.proceed(conn)
	}
}

// proceed goes on after run: with what it left of the batch, when its replies
// can be taken, or with reading.
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

// Drained goes on when the peer has read what made the batch wait.
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

// The following runs on the keyspace's loop.

// run runs the batch, as far as the replies are taken.
func (r *remote) run() {
	c := r.client
	if c.closing {
		return // and the connection is being ended
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
	r.finish()
	r.server.completed = true
}

// finish gives the turn back to the connection's loop.
func (r *remote) finish() {
	r.next.done = true
	r.next.limits = r.client.inputLimits()
	r.list()
}

func (c *client) inputLimits() inputLimits { return inputLimits{c.limits(), c.inputLimit()} }

// list has the server call handOver at the end of the batch.
func (r *remote) list() {
	if !r.queued {
		r.queued = true
		r.server.outgoing = append(r.server.outgoing, r)
	}
}

// handOver puts everything since the last call into the mail.
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
	if r.next.done {
		m.done, m.limits = true, r.next.limits
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
		r.out.b = out[:end] // p was collected in buffer
	} else {
		r.out.b = append(out, p...)
	}
	r.transit.Add(int64(len(p)))
	r.list()
}

func (r *remote) pending() int { return int(r.transit.Load() + r.buffered.Load()) }

// refresh asks the connection's loop. What was sent since it has measured last is not
// told otherwise, unless it was much.
func (r *remote) refresh() {
	if r.buffered.Load() > 0 {
		r.ref.Do(r.measure) // an error: the connection has ended
	}
}

// full is as Conn.Full will find it, as far as is known here: proceed asks that.
func (r *remote) full() bool { return r.pending() > r.highWater }

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
