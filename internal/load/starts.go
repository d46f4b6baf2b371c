package load

import "time"

// starts is the queue of the start times of a connection's requests in flight.
// Requests with the same start time share an entry.
type starts struct {
	queue []start
	first int // index of the first entry in queue
}

type start struct {
	at time.Duration
	n  int
}

func (s *starts) add(n int, at time.Duration) {
	if last := len(s.queue) - 1; last >= s.first && s.queue[last].at == at {
		s.queue[last].n += n
		return
	}
	if len(s.queue) == cap(s.queue) && s.first > 0 {
		s.queue = s.queue[:copy(s.queue, s.queue[s.first:])]
		s.first = 0
	}
	s.queue = append(s.queue, start{at, n})
}

// take measures the oldest n requests, whose replies arrived now.
func (s *starts) take(n int, now time.Duration, w *worker) {
	for n > 0 {
		oldest := &s.queue[s.first]
		k := min(n, oldest.n)
		w.replied(k, oldest.at, now)
		n -= k
		if oldest.n -= k; oldest.n == 0 {
			s.first++
		}
	}
	if s.first == len(s.queue) {
		s.queue, s.first = s.queue[:0], 0
	}
}
