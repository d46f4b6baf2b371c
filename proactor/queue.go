package proactor

import (
	"context"
	"errors"
	"fmt"
	"net"
	"runtime"
	"slices"
	"sync"

	"github.com/rondo-go/rondo"
)

// DefaultLimit and DefaultLend are what the zero Options stand for.
const (
	DefaultLimit = 64 << 10
	DefaultLend  = 256 << 10
)

// Options of a Queue. The zero Options are right for most uses.
type Options struct {
	// Limit is how many operations may be under way: submitted, and their results
	// not returned by Wait. 0: DefaultLimit. Negative: no limit.
	Limit int
	// Block has a submission beyond the Limit wait for room, instead of failing with
	// ErrFull. It is for programs where another goroutine calls Wait.
	Block bool
	// Lend is how many bytes of memory each loop may lend to reads without a buffer.
	// If all of it is with the program, such reads wait. 0: DefaultLend.
	Lend int
	// Choose tells the loop that a connection is to be served on, at its first
	// operation; it must be one of the Queue's engine. An error refuses the
	// connection: the operation completes with it. It must not use the Queue. nil:
	// the loops take turns.
	Choose func(net.Conn) (*rondo.Loop, error)
}

var (
	// ErrClosed is the error of using a Queue that is closed, or whose engine is, and
	// of operations on a connection after Free. It is net.ErrClosed.
	ErrClosed = rondo.ErrClosed
	// ErrCanceled is the error of an operation that Cancel ended.
	ErrCanceled = errors.New("proactor: operation was canceled")
	// ErrFull is the error of a submission beyond Options.Limit.
	ErrFull = errors.New("proactor: too many operations are under way: take results by Wait, or raise Options.Limit")
	// ErrWaiting is the error of Wait while another goroutine is in it.
	ErrWaiting = errors.New("proactor: another goroutine waits for this queue's results")

	errNilContext = errors.New("proactor: Wait: ctx is nil: want a context, such as context.Background()")
)

// A Queue takes operations and gives their results. Any goroutines may submit,
// cancel and free; one at a time may Wait. Several queues may share an engine.
type Queue struct {
	// What the user holds is not what the loops hold, so that the garbage collector
	// finds out when the user holds nothing any more.
	*queue
}

type queue struct {
	options Options
	shards  []*shard
	settled chan struct{} // closed when Close has ended

	mu      sync.Mutex
	room    sync.Cond // for pending to be less
	streams registry
	pending int
	blocked int // submitters
	turn    int // of the loops
	closed  bool

	results results
}

// New makes a Queue on an engine, which it starts if need be.
func New(e *rondo.Engine, o Options) (*Queue, error) {
	switch {
	case e == nil:
		return nil, errors.New("proactor: New: the engine is nil: want a *rondo.Engine")
	case o.Lend < 0:
		return nil, fmt.Errorf("proactor: Options.Lend is %d: want 0, for %d, or more", o.Lend, DefaultLend)
	}
	if err := e.Start(); err != nil {
		return nil, fmt.Errorf("proactor: %w", err)
	}
	if o.Limit == 0 {
		o.Limit = DefaultLimit
	}
	if o.Lend == 0 {
		o.Lend = DefaultLend
	}
	c := &queue{options: o, settled: make(chan struct{})}
	c.room.L = &c.mu
	c.streams.init()
	c.results.bell = make(chan struct{}, 1)
	c.results.fewer = make(chan struct{}, 1)
	for l := range e.Loops() {
		c.shards = append(c.shards, newShard(c, l))
	}
	q := &Queue{c}
	runtime.AddCleanup(q, func(c *queue) { c.close() }, c)
	return q, nil
}

// lending is how many slabs a loop may have, and their size.
func (c *queue) lending() (most, size int) {
	size = min(slabSize, max(1, c.options.Lend/2))
	return max(2, c.options.Lend/size), size
}

// Read submits a Read into p, or if that is nil into lent memory.
func (q *Queue) Read(c net.Conn, p []byte, value any) error {
	_, err := q.Submit(Op{Kind: Read, Conn: c, Buf: p, Value: value})
	return err
}

// ReadFull submits a ReadFull of p.
func (q *Queue) ReadFull(c net.Conn, p []byte, value any) error {
	_, err := q.Submit(Op{Kind: ReadFull, Conn: c, Buf: p, Value: value})
	return err
}

// Write submits a Write of p.
func (q *Queue) Write(c net.Conn, p []byte, value any) error {
	_, err := q.Submit(Op{Kind: Write, Conn: c, Buf: p, Value: value})
	return err
}

// Writev submits a Writev of bufs.
func (q *Queue) Writev(c net.Conn, bufs [][]byte, value any) error {
	_, err := q.Submit(Op{Kind: Writev, Conn: c, Bufs: bufs, Value: value})
	return err
}

// Submit submits any Op, to be done after those of the same direction that the
// caller submitted before. If the error is nil there will be one Result; otherwise
// there will be none, and the memory is still the caller's. The Ticket can be
// ignored.
func (q *Queue) Submit(o Op) (Ticket, error) {
	defer runtime.KeepAlive(q)
	return q.submit(o)
}

func (c *queue) submit(o Op) (Ticket, error) {
	total := 0
	switch o.Kind {
	case Write:
		total = len(o.Buf)
	case Writev:
		for _, b := range o.Bufs {
			total += len(b)
		}
	case ReadFull:
		if o.Buf == nil {
			o.Buf = []byte{}
		}
	}
	st, err := c.admit(o.Conn)
	if err != nil {
		return Ticket{}, err
	}
	l := st.lane(o.Kind)
	l.mu.Lock()
	defer l.mu.Unlock()
	n, done := l.try(&o)
	if done {
		c.results.add(Result{Kind: o.Kind, Conn: o.Conn, Buf: o.Buf, Value: o.Value, N: n})
		return Ticket{}, nil
	}
	p := st.shard.blank()
	p.Kind, p.Conn, p.Buf, p.Bufs, p.Value, p.N, p.lane = o.Kind, o.Conn, o.Buf, o.Bufs, o.Value, n, l
	p.stream, p.deadline, p.total = st, o.Deadline, total
	t := Ticket{p, p.use, st.shard}
	l.under.Add(1)
	if err := st.shard.put(p); err != nil {
		l.under.Add(-1)
		c.release(1)
		return Ticket{}, err
	}
	return t, nil
}

// admit counts an operation, and finds its connection.
func (c *queue) admit(nc net.Conn) (*stream, error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	for !c.closed && c.options.Limit > 0 && c.pending >= c.options.Limit {
		if !c.options.Block {
			return nil, ErrFull
		}
		c.blocked++
		c.room.Wait()
		c.blocked--
	}
	if c.closed {
		return nil, ErrClosed
	}
	st, err := c.find(nc)
	if err == nil {
		c.pending++
	}
	return st, err
}

// release counts operations that are over.
func (c *queue) release(n int) {
	c.mu.Lock()
	c.pending -= n
	wake := c.blocked > 0
	c.mu.Unlock()
	c.results.changed()
	if wake {
		c.room.Broadcast()
	}
}

// Cancel ends an operation that has not completed yet: with ErrCanceled, and what it
// had done by then. If it just completes, that is the result.
func (q *Queue) Cancel(t Ticket) {
	if t.op != nil {
		t.shard.ask(op{action: cancel, target: t})
	}
}

// Free closes a connection. What is under way completes with io.ErrClosedPipe, what
// is submitted afterwards with ErrClosed. Bytes of writes that have completed are
// still delivered.
func (q *Queue) Free(nc net.Conn) error {
	defer runtime.KeepAlive(q)
	if nc == nil {
		return errNil
	}
	q.mu.Lock()
	st := q.streams.free(nc)
	q.mu.Unlock()
	if st == nil {
		return nc.Close() // it was never the queue's
	}
	st.give(nil)
	err := st.shard.ask(op{action: free, stream: st, Result: Result{Conn: nc}})
	if err != nil && nc.Close() == nil {
		return nil // the loop has ended, and had not taken it
	}
	return err
}

// Close frees every connection. Nothing comes of what is under way. When it returns,
// and when Wait says ErrClosed, no loop touches the memory of an operation any more.
//
// A loop of the queue's engine cannot wait for itself: there Close begins to close, and
// returns an error, and Wait tells of the end.
func (q *Queue) Close() error {
	if q.close() {
		go q.settle()
	}
	for _, s := range q.shards {
		if s.loop.Calling() {
			return errOnLoop
		}
	}
	<-q.settled
	return nil
}

var errOnLoop = errors.New("proactor: Close was called on a loop of the queue's engine, and cannot wait for it: memory of operations is still in use; call Close from another goroutine, or Wait until that returns ErrClosed")

// close begins to close. It reports false if that was done before.
func (c *queue) close() bool {
	c.mu.Lock()
	closed := c.closed
	c.closed = true
	c.results.closing.Store(true) // before anything ends: Wait does not tell of that
	all := slices.Collect(c.streams.all())
	c.mu.Unlock()
	if closed {
		return false
	}
	c.room.Broadcast()
	for _, st := range all {
		st.shard.ask(op{action: free, stream: st}) // fails if the loop has ended
	}
	return true
}

// settle waits until the loops have let go of all operations. Those that were admitted
// have results by then, or were released.
func (c *queue) settle() {
	r := &c.results
	for {
		c.mu.Lock()
		r.mu.Lock()
		done := c.pending == len(r.ready)
		r.mu.Unlock()
		c.mu.Unlock()
		if done {
			close(c.settled)
			return
		}
		<-r.fewer
	}
}

// Closed reports whether Close was called.
func (q *Queue) Closed() bool {
	q.mu.Lock()
	defer q.mu.Unlock()
	return q.closed
}

// Pending is how many operations are under way.
func (q *Queue) Pending() int {
	q.mu.Lock()
	defer q.mu.Unlock()
	return q.pending
}

// Forgotten is how many connections the garbage collector has found to be
// forgotten, and how many of these have been freed.
func (q *Queue) Forgotten() (found, freed int) {
	q.mu.Lock()
	defer q.mu.Unlock()
	return q.streams.found, int(q.streams.freed.Load())
}

// Wait waits until there are results, or ctx is done, and returns them all. They and
// the memory lent with them are valid until the next Wait. If there are results it
// returns them though ctx be done. One goroutine at a time may wait.
func (q *Queue) Wait(ctx context.Context) ([]Result, error) {
	defer runtime.KeepAlive(q)
	if ctx == nil {
		return nil, errNilContext
	}
	r := &q.results
	if !r.waiting.CompareAndSwap(false, true) {
		return nil, ErrWaiting
	}
	defer r.waiting.Store(false)
	r.shrink()
	for {
		if r.closing.Load() {
			<-q.settled
			return nil, ErrClosed
		}
		if batch := r.take(); len(batch) > 0 {
			q.release(len(batch))
			return batch, nil
		}
		select {
		case <-r.bell:
		case <-q.settled:
		case <-ctx.Done():
			if batch := r.take(); len(batch) > 0 {
				q.release(len(batch))
				return batch, nil
			}
			return nil, ctx.Err()
		}
	}
}

// Return gives lent memory back before the next Wait, by the goroutine that waits.
func (q *Queue) Return(r Result) { q.results.giveOne(r) }
