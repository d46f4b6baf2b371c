package proactor

import (
	"sync"

	"github.com/rondo-go/rondo"
	"github.com/rondo-go/rondo/internal/bridge"
)

// A shard is a queue's part on one loop. Submissions collect in its inbox; one
// post makes the loop take all of them. The completions of a turn go to the
// queue at the end of the turn.
type shard struct {
	queue *queue
	loop  *rondo.Loop
	wire  bridge.Loop
	run   func() // method values, created once
	hand  func()

	mu           sync.Mutex
	inbox        []*op
	posted       bool // run is posted
	ended        bool // the loop has ended
	free         []*op
	slabs        []*slab // free slabs
	made         int     // slabs that exist
	waitsForData bool    // a stream waits for a slab

	// The loop owns the rest.
	spare    []*op
	finished []Result
	used     []*op // ops to free at the end of the turn
	current  *slab // the slab being filled
	waiting  []*stream
}

// keepOps bounds the number of free ops that a shard keeps, and the capacity of
// its other lists when they are empty.
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

// put passes o to the loop. It fails if the loop has ended; then nobody owns o.
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

// post makes the loop take the inbox. If the loop has ended, post itself
// completes all operations in the inbox but mine.
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

// ask puts a request other than an operation.
func (s *shard) ask(what op) error {
	o := s.blank()
	o.action, o.stream, o.target, o.Conn = what.action, what.stream, what.target, what.Conn
	return s.put(o)
}

// runInbox carries out the submitted requests.
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

// recycle takes back an op that is finished.
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

// deliver passes on the results at the end of the turn.
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
