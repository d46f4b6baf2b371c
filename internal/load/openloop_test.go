package load

import (
	"testing"
	"time"

	"github.com/rondo-go/rondo"
)

// Requests arrive when they are due, one after the other on each connection.
func TestOpenLoopKeepsItsSchedule(t *testing.T) {
	n := exact(t)
	var arrived []time.Duration
	n.Serve(":7", func(*rondo.Conn) rondo.Handler {
		return rondo.HandlerFunc(func(c *rondo.Conn, in []byte) (int, error) {
			for range len(in) / 64 {
				arrived = append(arrived, simulated(c.Loop()))
			}
			return c.Write(in)
		})
	})
	c := config(t)
	c.Rate, c.Warmup = 1000, 0
	r := mustRun(t, n, c)
	if r.Requests != 1000 || r.Behind != (Behind{}) {
		t.Fatalf("%+v", r)
	}
	for i, at := range arrived {
		if d := at - arrived[0] - time.Duration(i)*time.Millisecond; d < -2 || d > 2 {
			t.Fatalf("request %d arrived %v off its time", i, d)
		}
	}
	for _, percent := range []float64{0.1, 50, 100} {
		if got := r.Percentile(percent); !about(got, 2*tick) {
			t.Errorf("p%v is %v, want %v", percent, got, 2*tick)
		}
	}
}

// stall is an echo server that does not answer between two times, counted from its first
// request.
type stall struct {
	from, to time.Duration
	first    time.Duration
	held     []byte
}

func (s *stall) open(*rondo.Conn) rondo.Handler {
	h := &stall{from: s.from, to: s.to, first: -1}
	return rondo.HandlerFunc(func(c *rondo.Conn, in []byte) (int, error) {
		now := simulated(c.Loop())
		if s.first == 0 {
			s.first = now
		}
		since := now - s.first
		if since < h.from || since >= h.to {
			return c.Write(in)
		}
		if h.held == nil {
			c.Loop().AfterFunc(h.to-since, func() { c.Write(h.held) })
		}
		h.held = append(h.held, in...)
		return len(in), nil
	})
}

// If a server stalls for half a second, all requests of that time wait: the latencies of
// an open loop show it, those of a closed loop do not.
func TestOpenLoopOmitsNothing(t *testing.T) {
	for _, rate := range []float64{0, 500} {
		n := exact(t)
		n.Serve(":7", (&stall{from: 500 * time.Millisecond, to: time.Second}).open)
		c := config(t)
		c.Conns, c.Rate, c.Warmup, c.Duration = 10, rate, 0, 2*time.Second
		r := mustRun(t, n, c)
		if !about(r.Percentile(50), 2*tick) {
			t.Errorf("rate %v: p50 is %v", rate, r.Percentile(50))
		}
		if rate == 0 {
			if got := r.Percentile(99); !about(got, 2*tick) {
				t.Errorf("closed loop: p99 is %v", got)
			}
			continue
		}
		// A quarter of the requests was due in the stall. Each waited for the rest of the
		// half second, and a little for its turn.
		if r.Requests != 1000 {
			t.Errorf("%d requests were answered", r.Requests)
		}
		for percent, want := range map[float64]time.Duration{
			80: 100 * time.Millisecond,
			90: 300 * time.Millisecond,
			99: 480 * time.Millisecond,
		} {
			got := r.Percentile(percent)
			if got < want || got > want+60*time.Millisecond {
				t.Errorf("p%v is %v, want %v or a little more", percent, got, want)
			}
		}
		b := r.Behind
		if b.Waited < 240 || b.Waited > 290 || b.Unsent != 0 || b.Longest < 470*time.Millisecond || b.Longest > 500*time.Millisecond {
			t.Errorf("behind is %+v", b)
		}
	}
}

// slow answers one request each millisecond, over all connections.
type slow struct {
	queue  []func()
	ticker *rondo.Timer
}

func (s *slow) open(c *rondo.Conn) rondo.Handler {
	if s.ticker == nil {
		s.ticker = c.Loop().Every(time.Millisecond, func() {
			if len(s.queue) > 0 {
				s.queue[0]()
				s.queue = s.queue[1:]
			}
		})
	}
	return rondo.HandlerFunc(func(c *rondo.Conn, in []byte) (int, error) {
		for p := in; len(p) >= 64; p = p[64:] {
			msg := append([]byte(nil), p[:64]...)
			s.queue = append(s.queue, func() { c.Write(msg) })
		}
		return len(in) / 64 * 64, nil
	})
}

// A server that is too slow for the rate falls behind more and more. The report counts the
// unsent requests, and waiting requests cost no memory.
func TestOpenLoopFallsBehind(t *testing.T) {
	n := exact(t)
	s := &slow{}
	n.Serve(":7", s.open)
	c := config(t)
	c.Rate, c.Pipeline, c.Warmup, c.Duration = 2000, 4, 500*time.Millisecond, 2*time.Second
	r := mustRun(t, n, c)
	b := r.Behind
	// 4000 are due, 1000 a second are answered.
	if r.Requests+b.Unsent != 4000 {
		t.Errorf("%d answered and %d unsent are not 4000", r.Requests, b.Unsent)
	}
	if b.Unsent < 1900 || b.Unsent > 2100 {
		t.Errorf("%d were not sent, want 2000", b.Unsent)
	}
	if b.Longest < 900*time.Millisecond || b.Longest > 1100*time.Millisecond {
		t.Errorf("one waited for %v, want a second", b.Longest)
	}
	// At the end, a request is answered a second after it was due.
	if p := r.Percentile(100); p < 900*time.Millisecond || p > 1200*time.Millisecond {
		t.Errorf("the longest latency is %v, want a second", p)
	}
	if p := r.Percentile(50); p < 400*time.Millisecond || p > 700*time.Millisecond {
		t.Errorf("p50 is %v, want half a second", p)
	}
}

// Requests of the warm-up that an overloaded server did not take are not measured.
func TestWarmupLeavesNothingBehind(t *testing.T) {
	n := exact(t)
	s := &slow{}
	n.Serve(":7", s.open)
	c := config(t)
	c.Rate, c.Conns, c.Warmup, c.Duration = 4000, 5, time.Second, 500*time.Millisecond
	r := mustRun(t, n, c)
	if r.Requests < 450 || r.Requests > 510 || r.Percentile(100) > 550*time.Millisecond {
		t.Errorf("%d requests, the longest latency is %v", r.Requests, r.Percentile(100))
	}
	if r.Requests+r.Behind.Unsent != 2000 {
		t.Errorf("%d answered and %d unsent are not 2000", r.Requests, r.Behind.Unsent)
	}
}
