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
	// Read completes when there are some bytes.
	Read Kind = iota
	// ReadFull completes when Buf is full.
	ReadFull
	// Write completes when all of Buf has been given to the system.
	Write
	// Writev is Write of Bufs, in one go.
	Writev
)

// An Op is an operation to submit. From then on until its Result has come the
// memory of Buf and Bufs is the queue's.
type Op struct {
	Kind Kind
	Conn net.Conn
	// Buf is what to read into or to write. nil in a Read: into memory of the
	// queue's, which Result.Buf is then.
	Buf  []byte
	Bufs [][]byte // of a Writev
	// Deadline ends the operation with os.ErrDeadlineExceeded, unless it can be
	// done at once. What was read or written by then counts: Result.N. Zero: none.
	Deadline time.Time
	Value    any // for the program's own use: comes back in the Result
}

// A Result is what became of an Op.
type Result struct {
	Kind  Kind
	Lent  bool // Buf is the queue's: valid until the next Wait, or Return
	Conn  net.Conn
	Buf   []byte // the Op's; if Lent, the bytes read
	Bufs  [][]byte
	Value any
	N     int // bytes read or written, also with an error
	// Err is nil, or why the operation ended early. io.EOF is the end of the
	// stream; io.ErrUnexpectedEOF that in the middle of a ReadFull;
	// io.ErrClosedPipe comes from Free, os.ErrDeadlineExceeded from the
	// Deadline, ErrCanceled from Cancel.
	Err error

	lane  *lane // nil: it was done at once
	slab  *slab
	place int // in the batch
}

// A Ticket names a submitted operation, for Cancel.
type Ticket struct {
	op    *op
	use   uint64
	shard *shard
}

// action is what an op asks the loop for.
type action uint8

const (
	perform action = iota
	cancel
	free
)

// grace is how long an operation is given when its turn comes, however early its
// deadline: time to find out whether it can be done at once.
const grace = time.Millisecond

// op is an operation on its way. It belongs to the submitter until it is in a
// shard's inbox, and then to the loop, which recycles it.
type op struct {
	Result
	action action
	stream *stream
	target Ticket // of cancel
	use    uint64 // how often it was recycled

	total    int       // bytes to write
	deadline time.Time // zero: none
	timer    *rondo.Timer
	due      bool  // the timer fired, and the turn's completions had their chance
	why      error // it is to end with this, once the system lets go of the memory

	release    *release // made when it is needed first
	prev, next *op      // among the stream's
}

// direction is what an op waits for in line.
func (o *op) line() *line {
	if o.Kind >= Write {
		return &o.stream.writes
	}
	return &o.stream.reads
}

// watch starts the timer, if there is a deadline. The first in line is given grace.
func (o *op) watch(first bool) {
	if o.deadline.IsZero() {
		return
	}
	l := o.stream.shard.loop
	d := o.deadline.Sub(l.Now())
	if first {
		d = max(d, grace)
	}
	o.due = false
	if o.timer == nil {
		o.timer = l.AfterFunc(d, o.expire)
	} else {
		o.timer.Reset(d)
	}
}

// expire is the timer's function. What is ready goes before a deadline: the
// completions of this turn, which are still to come, have their chance.
func (o *op) expire() {
	if !o.due {
		o.due = true
		o.timer.Reset(1)
		return
	}
	o.stream.end(o, os.ErrDeadlineExceeded)
}

// recycle forgets everything but what is made once.
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
