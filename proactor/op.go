package proactor

import (
	"net"
	"os"
	"time"

	"github.com/rondo-go/rondo"
)

// Kind is what an operation does.
type Kind uint8

const (
	// Read completes as soon as there are some bytes.
	Read Kind = iota
	// ReadFull completes when Buf is full.
	ReadFull
	// Write completes when the system has taken all of Buf.
	Write
	// Writev is a Write of all of Bufs.
	Writev
)

// An Op is an operation to submit. The queue owns the memory of Buf and Bufs
// from Submit until Wait returns the Result.
type Op struct {
	Kind Kind
	Conn net.Conn
	// Buf is the memory to read into, or the bytes to write. A Read with a nil
	// Buf reads into memory that the queue lends; see Result.Lent.
	Buf  []byte
	Bufs [][]byte // for a Writev
	// Deadline ends the operation with os.ErrDeadlineExceeded. Result.N then
	// counts the bytes read or written so far. An operation that can be done at
	// once is done even if the Deadline has passed. The zero Time means no
	// deadline.
	Deadline time.Time
	Value    any // for the program; the Result returns it
}

// A Result is the outcome of an Op.
type Result struct {
	Kind  Kind
	Lent  bool // the queue owns Buf: it is valid until the next Wait, or Return
	Conn  net.Conn
	Buf   []byte // the Op's Buf; if Lent, the bytes read
	Bufs  [][]byte
	Value any
	N     int // bytes read or written, also with an error
	// Err says why the operation ended early, or is nil. io.EOF is the end of
	// the stream; io.ErrUnexpectedEOF is its end in the middle of a ReadFull;
	// io.ErrClosedPipe comes from Free, os.ErrDeadlineExceeded from the
	// Deadline, ErrCanceled from Cancel.
	Err error

	lane  *lane // nil: the submitter did the operation
	slab  *slab
	place int // in the batch
}

// A Ticket names a submitted operation for Cancel.
type Ticket struct {
	op    *op
	use   uint64
	shard *shard
}

// action is what an op asks of the loop.
type action uint8

const (
	perform action = iota
	cancel
	free
)

// grace is the least time that the first operation in line gets, even after its
// deadline, to find out whether it can be done at once.
const grace = time.Millisecond

// op is an operation on its way. It belongs to the submitter until it is in a
// shard's inbox, then to the loop, which recycles it.
type op struct {
	Result
	action action
	stream *stream
	target Ticket // of cancel
	use    uint64 // number of times it was recycled

	total    int       // bytes to write
	deadline time.Time // zero: none
	timer    *rondo.Timer
	why      error // the error to end with once the system has released the memory
	found    error // the error that lane.try met

	release    *release // created on first use
	prev, next *op      // in the stream's line
}

// line returns the line in which o waits.
func (o *op) line() *line {
	if o.Kind >= Write {
		return &o.stream.writes
	}
	return &o.stream.reads
}

// watch starts the timer if there is a deadline. The first op in line gets
// grace.
func (o *op) watch(first bool) {
	if o.deadline.IsZero() {
		return
	}
	l := o.stream.shard.loop
	d := o.deadline.Sub(l.Now())
	if first {
		d = max(d, grace)
	}
	if o.timer == nil {
		o.timer = l.AfterFunc(d, o.expire)
	} else {
		o.timer.Reset(d)
	}
}

// expire is the timer's function. A ready operation takes precedence over its
// deadline: the loop has handled the completions of this turn.
func (o *op) expire() { o.stream.end(o, os.ErrDeadlineExceeded) }

// recycle clears o, except for the fields that are created once.
func (o *op) recycle() {
	*o = op{use: o.use + 1, timer: o.timer, release: o.release}
}

// line is a queue of ops.
type line struct{ first, last *op }

func (l *line) push(o *op) {
	if o.prev = l.last; o.prev == nil {
		l.first = o
	} else {
		o.prev.next = o
	}
	l.last = o
}

func (l *line) remove(o *op) {
	if o.prev == nil {
		l.first = o.next
	} else {
		o.prev.next = o.next
	}
	if o.next == nil {
		l.last = o.prev
	} else {
		o.next.prev = o.prev
	}
	o.prev, o.next = nil, nil
}
