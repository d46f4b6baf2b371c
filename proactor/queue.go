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

// DefaultLimit and DefaultLend are the defaults of Options.
const (
	DefaultLimit = 64 << 10
	DefaultLend  = 256 << 10
)

// Options configure a Queue. The zero Options suit most uses.
type Options struct {
	// Limit is the maximum number of operations under way: submitted, while
	// Wait has not returned their results. 0 means DefaultLimit; a negative
	// Limit means no limit.
	Limit int
	// Block makes a submission beyond the Limit wait for room instead of
	// failing with ErrFull. Use it if another goroutine calls Wait.
	Block bool
	// Lend is the number of bytes that each loop may lend to reads without a
	// buffer. If the program holds all of them, such reads wait. 0 means
	// DefaultLend.
	Lend int
	// Choose returns the loop to serve a connection on; it must be a loop of
	// the Queue's engine. The first operation on the connection calls it. An
	// error refuses the connection, and the operation completes with the error.
	// Choose must not use the Queue. nil means that the loops take turns.
	Choose func(net.Conn) (*rondo.Loop, error)
}

var (
	// ErrClosed is the error of using a Queue after Close, or after its engine
	// has closed, and of operations on a connection after Free. It is
	// net.ErrClosed.
	ErrClosed = rondo.ErrClosed
	// ErrCanceled is the error of an operation that Cancel ended.
	ErrCanceled = errors.New("proactor: operation was canceled")
	// ErrFull is the error of a submission beyond Options.Limit.
	ErrFull = errors.New("proactor: too many operations are under way: call Wait to take results, or raise Options.Limit")
	// ErrWaiting is the error of Wait while another goroutine is in Wait.
	ErrWaiting = errors.New("proactor: another goroutine is in this queue's Wait: only one at a time may wait")

	errNilContext = errors.New("proactor: Wait: ctx is nil: want a context, such as context.Background()")
)

// A Queue takes operations and returns their results. Any goroutine may submit,
// cancel and free; one goroutine at a time may Wait. Several queues may share
// an engine.
type Queue struct {
	// The loops refer to the inner queue only, so that the garbage collector notices
	// when the program drops the Queue.
	*queue
}

type queue struct {
	options Options
	shards  []*shard
	settled chan struct{} // closed once all memory of operations is released

	mu      sync.Mutex
	room    sync.Cond // for pending to fall
	streams registry
	pending int
	blocked int // submitters that wait for room
	turn    int // the loop whose turn is next
	closed  bool
	dropped runtime.Cleanup // closes the queue when the program drops the Queue

	results results
}

// New makes a Queue on an engine. It starts the engine if necessary.
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
	c.dropped = runtime.AddCleanup(q, func(c *queue) { c.close() }, c)
	return q, nil
}

// lending returns the maximum number of slabs of a loop, and their size.
func (c *queue) lending() (most, size int) {
	size = min(slabSize, max(1, c.options.Lend/2))
	return max(2, c.options.Lend/size), size
}

// Read submits a Read into p, or into lent memory if p is nil.
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

// Submit submits any Op. The operation is done after the earlier ones that the
// caller submitted for the same connection and direction. If the error is nil,
// Wait returns one Result. Otherwise there is no Result, and the caller still
// owns the memory. The Ticket may be ignored.
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
	n, done, err := l.try(&o)
	if done {
		c.results.add(Result{Kind: o.Kind, Conn: o.Conn, Buf: o.Buf, Value: o.Value, N: n})
		return Ticket{}, nil
	}
	p := st.shard.blank()
	p.Kind, p.Conn, p.Buf, p.Bufs, p.Value, p.N, p.lane = o.Kind, o.Conn, o.Buf, o.Bufs, o.Value, n, l
	p.stream, p.deadline, p.total, p.found = st, o.Deadline, total, err
	t := Ticket{p, p.use, st.shard}
	l.under.Add(1)
	if err := st.shard.put(p); err != nil {
		l.under.Add(-1)
		c.release(1)
		return Ticket{}, err
	}
	return t, nil
}

// admit counts an operation, and returns its connection's stream.
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

// release counts n operations as finished.
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

// Cancel ends an operation that has not completed. Its Result has ErrCanceled,
// and counts the bytes done so far. If the operation completes first, its
// Result is the usual one.
func (q *Queue) Cancel(t Ticket) {
	if t.op != nil {
		t.shard.ask(op{action: cancel, target: t})
	}
}

// Free closes a connection. Operations under way complete with
// io.ErrClosedPipe, later ones with ErrClosed. The bytes of completed writes
// are still sent.
func (q *Queue) Free(nc net.Conn) error {
	defer runtime.KeepAlive(q)
	if nc == nil {
		return errNil
	}
	q.mu.Lock()
	st := q.streams.free(nc)
	q.mu.Unlock()
	if st == nil {
		return nc.Close() // the queue never had it
	}
	st.setDirect(nil)
	err := st.shard.ask(op{action: free, stream: st, Result: Result{Conn: nc}})
	if err != nil && nc.Close() == nil {
		return nil // the loop ended before it attached the connection
	}
	return err
}

// Close frees every connection. Operations under way have no results. Once
// Close has returned, or Wait has returned ErrClosed, no loop touches the
// memory of an operation.
//
// On a loop of the queue's engine Close cannot wait for the loop. It then
// starts to close and returns an error; Wait reports the end.
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

var errOnLoop = errors.New("proactor: Close on a loop of the queue's engine cannot wait for that loop: memory of operations is still in use; call Close from another goroutine, or Wait until it returns ErrClosed")

// close starts to close. It returns false if that was done before.
func (c *queue) close() bool {
	c.mu.Lock()
	closed := c.closed
	c.closed = true
	c.results.closing.Store(true) // first, so that Wait returns no result of the closing
	all := slices.Collect(c.streams.all())
	c.mu.Unlock()
	if closed {
		return false
	}
	c.room.Broadcast()
	// The runtime keeps what a cleanup refers to. Through the engine that may be the whole
	// program's state, with the Queue itself: then nothing of it would ever be freed.
	c.dropped.Stop()
	for _, st := range all {
		st.shard.ask(op{action: free, stream: st}) // fails if the loop has ended
		st.dropped.Stop()
	}
	return true
}

// settle waits until the loops have released all operations. By then each
// admitted operation has a result or was released.
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

// Pending returns the number of operations under way.
func (q *Queue) Pending() int {
	q.mu.Lock()
	defer q.mu.Unlock()
	return q.pending
}

// Forgotten returns the number of connections that the garbage collector found
// unreachable, and how many of these have been freed.
func (q *Queue) Forgotten() (found, freed int) {
	q.mu.Lock()
	defer q.mu.Unlock()
	return q.streams.found, int(q.streams.freed.Load())
}

// Wait waits until there are results or ctx is done, and returns all results.
// The slice, and the memory lent with it, are valid until the next Wait. If
// there are results, Wait returns them even if ctx is done. Otherwise it fails
// with ctx's error, with ErrClosed, or with ErrWaiting: only one goroutine at a
// time may call Wait.
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
	r.returnBatch()
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

// Return returns a Result's lent memory before the next Wait. Call it from the
// goroutine that calls Wait.
func (q *Queue) Return(r Result) { q.results.returnOne(r) }
