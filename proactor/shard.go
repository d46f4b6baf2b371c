package proactor

import (
	"sync"

	"github.com/rondo-go/rondo"
	"github.com/rondo-go/rondo/internal/bridge"
)

// A shard is a queue's part on one loop. What is submitted gathers in its inbox
// until the loop comes, once for all of it, and what completes in a turn goes to the
// queue at the turn's end.
type shard struct {
	queue *queue
	loop  *rondo.Loop
	wire  bridge.Loop
	run   func() // the methods runInbox and deliver: made once
	hand  func()

	mu           sync.Mutex
	inbox        []*op
	posted       bool // run is
	ended        bool // the loop has
	free         []*op
	slabs        []*slab // free ones
	made         int     // slabs that exist
	waitsForData bool    // somebody waits for one

	// The rest is the loop's.
	spare    []*op
	finished []Result
	used     []*op // to be free when the turn ends
	current  *slab // being filled
	waiting  []*stream
}

// keepOps bounds the free ops that a shard keeps, and the length of its other lists
// when they are empty.
const keepOps = 16 << 10

func newShard(q *queue, l *rondo.Loop) *shard {
	s := &shard{queue: q, loop: l, wire: bridge.LoopOf(l)}
	s.run = s.runInbox
	s.hand = s.deliver
	return s
}

// blank returns an op to fill in and put.
func (s *shard) blank() *op {
	s.mu.Lock()
	defer s.mu.Unlock()
	if n := len(s.free); n > 0 {
		o := s.free[n-1]
		s.free[n-1] = nil
		s.free = s.free[:n-1]
		return o
	}
	return new(op)
}

// put hands o to the loop. On an error, that the loop has ended, o is nobody's.
func (s *shard) put(o *op) error {
	s.mu.Lock()
	if s.ended {
		s.mu.Unlock()
		return ErrClosed
	}
	s.inbox = append(s.inbox, o)
	post := !s.posted
	s.posted = true
	s.mu.Unlock()
	if !post {
		return nil
	}
	return s.post(o)
}

// post has the loop come. If it has ended, nobody comes: what was put beside mine is
// completed here.
func (s *shard) post(mine *op) error {
	err := s.loop.Post(s.run)
	if err == nil {
		return nil
	}
	s.mu.Lock()
	s.ended = true
	ops := s.inbox
	s.inbox = nil
	s.mu.Unlock()
	var lost []Result
	for _, o := range ops {
		if o != mine && o.action == perform {
			o.Err = ErrClosed
			lost = append(lost, o.Result)
		}
	}
	s.queue.results.deliver(lost)
	return err
}

// ask puts something other than an operation.
func (s *shard) ask(what op) error {
	o := s.blank()
	o.action, o.stream, o.target, o.Conn = what.action, what.stream, what.target, what.Conn
	return s.put(o)
}

// runInbox does what was submitted.
func (s *shard) runInbox() {
	s.mu.Lock()
	ops := s.inbox
	s.inbox, s.posted = s.spare, false
	s.mu.Unlock()
	for _, o := range ops {
		switch o.action {
		case perform:
			o.stream.start(o)
			continue
		case cancel:
			if t := o.target; t.op.use == t.use && t.op.stream != nil {
				t.op.stream.end(t.op, ErrCanceled)
			}
		case free:
			o.stream.free(o.Conn)
		}
		s.recycle(o)
	}
	clear(ops)
	s.spare = trim(ops)
	s.feed()
}

func trim[T any](s []T) []T {
	if cap(s) > keepOps {
		return nil
	}
	return s[:0]
}

// recycle takes an op back that has done its part.
func (s *shard) recycle(o *op) {
	o.recycle()
	s.used = append(s.used, o)
	if len(s.used) == 1 {
		s.wire.Deliver(s.hand)
	}
}

// finish completes o, which is in no line.
func (s *shard) finish(o *op, err error) {
	if o.timer != nil {
		o.timer.Stop()
	}
	o.Err = err
	s.finished = append(s.finished, o.Result)
	s.recycle(o)
}

// deliver ends the turn.
func (s *shard) deliver() {
	if len(s.finished) > 0 {
		s.queue.results.deliver(s.finished)
		clear(s.finished)
		s.finished = trim(s.finished)
	}
	s.mu.Lock()
	if len(s.free) < keepOps {
		s.free = append(s.free, s.used...)
	}
	s.mu.Unlock()
	clear(s.used)
	s.used = trim(s.used)
}
