package proxy

import (
	"container/list"
	"errors"
	"fmt"
	"os"
	"sync"
	"sync/atomic"
	"time"

	"github.com/rondo-go/rondo"
)

// DefaultQueueTime is the default of Pool.QueueTime.
const DefaultQueueTime = 5 * time.Second

var (
	errQueueFull = errors.New("proxy: no target can serve the client, and as many clients wait as may")
	errQueueTime = fmt.Errorf("proxy: no target could serve the client in time: %w", os.ErrDeadlineExceeded)
)

// A queue has the clients of a pool that wait for a target. Any loop may use it.
type queue struct {
	waiting atomic.Int64 // the length of all; a loop that finds 0 needs no lock

	mu  sync.Mutex
	all list.List // of *session, first come first
}

// enqueue makes the client wait until a target can serve it. The times that it has waited before
// count.
func (s *session) enqueue(r *roster) {
	q := &s.pool.queue
	left := orDefault(r.settings.QueueTime, DefaultQueueTime) - time.Duration(s.queued)
	if left <= 0 {
		s.pool.waitedInVain.Add(1)
		s.refuse(errQueueTime)
		return
	}
	q.mu.Lock()
	if q.all.Len() >= r.settings.Queue {
		q.mu.Unlock()
		s.refuse(errQueueFull)
		return
	}
	if s.queued == 0 { // otherwise it has been there, or in the queue of the process before
		s.pool.waited.Add(1)
	}
	s.phase = waiting
	s.queued = s.now() - s.queued
	s.place = q.all.PushBack(s)
	q.waiting.Add(1)
	q.mu.Unlock()
	s.timer = s.loop.AfterFunc(left, func() {
		if s.dequeue() {
			s.pool.waitedInVain.Add(1)
			s.refuse(errQueueTime)
		}
	})
	// A place may have become free before this client was seen to wait.
	s.pool.serveQueue(s.loop)
}

// dequeue takes the client out of the queue. It returns false if it is not there: then granted
// will be called.
func (s *session) dequeue() bool {
	q := &s.pool.queue
	q.mu.Lock()
	defer q.mu.Unlock()
	if s.place == nil {
		return false
	}
	q.remove(s)
	s.queued = s.now() - s.queued
	return true
}

// remove is dequeue for a client that is there. q.mu is locked.
func (q *queue) remove(s *session) {
	q.all.Remove(s.place)
	s.place = nil
	q.waiting.Add(-1)
}

// serveQueues gives targets to clients that wait in any queue.
func (s *Server) serveQueues() {
	l := s.loops[0]
	for _, p := range s.now.Load().pools {
		l.Post(func() { p.serveQueue(l) })
	}
}

// serveQueue gives targets to clients that wait, as far as targets can serve them. It is
// called, on any loop, whenever one may.
func (p *pool) serveQueue(l *rondo.Loop) {
	q := &p.queue
	if q.waiting.Load() == 0 {
		return
	}
	now := p.server.time(l)
	q.mu.Lock()
	defer q.mu.Unlock()
	r := p.now.Load()
	for e := q.all.Front(); e != nil; {
		s := e.Value.(*session)
		e = e.Next()
		m, err := r.choose(len(r.turns)-1, s.key, s.tried, now)
		switch {
		case err == nil:
			q.remove(s)
			if s.loop.Post(func() { s.granted(m) }) != nil { // the loop has ended
				m.open.Add(-1)
			}
		case len(s.tried) == 0:
			return // those behind it have no better chances
		}
	}
}

// granted is called on the client's loop when it has a place in a target.
func (s *session) granted(m *member) {
	if s.phase != waiting {
		m.leave(s.loop)
		return
	}
	s.timer.Stop()
	s.queued = s.now() - s.queued
	s.phase = connecting
	s.dial(m, m.group)
}
