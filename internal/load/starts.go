package load

import "time"

// starts remembers when the latencies of a connection's requests in flight
// began. Those of one time are one entry.
type starts struct {
	queue []start
	first int // of queue
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

// take measures the oldest n, whose replies came now.
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
