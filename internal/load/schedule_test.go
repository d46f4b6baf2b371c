package load

import (
	"slices"
	"testing"
	"time"
)

// All connections' requests together are due at even intervals.
func TestScheduleIsEven(t *testing.T) {
	const conns, rounds = 7, 1000
	s := schedule{start: time.Hour, interval: float64(time.Second) / 30_000, conns: conns}
	var due []time.Duration
	for id := range conns {
		for k := range int64(rounds) {
			due = append(due, s.due(id, k))
		}
	}
	slices.Sort(due)
	if due[0] != time.Hour {
		t.Errorf("the first request is due at %v", due[0])
	}
	for i := range due {
		want := time.Hour + time.Duration(i)*time.Second/30_000
		if d := due[i] - want; d < -2 || d > 2 {
			t.Fatalf("request %d is due at %v, want %v", i, due[i], want)
		}
	}
}

// After a day at the highest rate the schedule is still exact to a microsecond.
func TestScheduleDoesNotDrift(t *testing.T) {
	s := schedule{interval: float64(time.Second) / MaxRate, conns: 1}
	got := s.due(0, MaxRate*24*3600)
	if d := got - 24*time.Hour; d < -time.Microsecond || d > time.Microsecond {
		t.Errorf("a day's last request is due at %v", got)
	}
}

func TestShare(t *testing.T) {
	for _, total := range []int64{0, 1, 2, 3, 10, 11, 1000} {
		sum, least, most := int64(0), total, int64(0)
		for i := range 4 {
			part := share(total, i, 4)
			sum += part
			least, most = min(least, part), max(most, part)
		}
		if sum != total || most-least > 1 {
			t.Errorf("the shares of %d are %d in all, from %d to %d", total, sum, least, most)
		}
	}
}

func TestStarts(t *testing.T) {
	w := &worker{tally: newTally()}
	var s starts
	now := time.Duration(0)
	for range 100 {
		s.add(3, now+1)
		s.add(2, now+1)
		s.add(1, now+4)
		s.take(4, now+10, w) // latency 9
		s.take(2, now+20, w) // latencies 19, 16
		now += 100
	}
	for percent, want := range map[float64]time.Duration{40: 9, 80: 16, 100: 19} {
		if got := w.tally.report(false).Percentile(percent); got != want {
			t.Errorf("p%v is %d, want %d", percent, got, want)
		}
	}
	// With some always in flight the memory does not grow.
	for i := range 10_000 {
		s.add(1, time.Duration(2*i))
		if i >= 10 {
			s.take(1, time.Duration(2*i+1), w)
		}
	}
	if cap(s.queue) > 32 {
		t.Errorf("10 requests in flight take %d entries", cap(s.queue))
	}
}
