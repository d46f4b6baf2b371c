package load

import (
	"context"
	"testing"
	"time"

	"github.com/rondo-go/rondo"
	"github.com/rondo-go/rondo/redis"
	"github.com/rondo-go/rondo/rondotest"
)

// On a network with a known delay every latency is that delay, and the number
// of requests follows.
func TestClosedLoopMeasuresTheDelay(t *testing.T) {
	for _, pipeline := range []int{1, 16} {
		n := exact(t)
		n.Serve(":7", echo)
		c := config(t)
		c.Pipeline = pipeline
		r := mustRun(t, n, c)
		for _, percent := range []float64{0.1, 50, 99.9, 100} {
			if got := r.Percentile(percent); !about(got, 2*tick) {
				t.Errorf("pipeline %d: p%v is %v, want %v", pipeline, percent, got, 2*tick)
			}
		}
		if !about(r.Mean(), 2*tick) {
			t.Errorf("pipeline %d: the mean is %v", pipeline, r.Mean())
		}
		// Each connection makes 500 trips in a second; a trip that begins exactly at the end
		// of the warm-up or of the second may or may not count.
		want := int64(500 * c.Conns * pipeline)
		slack := int64(c.Conns * pipeline)
		if r.Requests < want-slack || r.Requests > want+slack {
			t.Errorf("pipeline %d: %d requests, want %d", pipeline, r.Requests, want)
		}
		if rate := r.Rate(); rate < float64(want-slack) || rate > float64(want+slack) {
			t.Errorf("pipeline %d: %v requests/s, want %d", pipeline, rate, want)
		}
		if sent, received := r.SentRate(), r.ReceivedRate(); sent < float64(64*(want-slack)) || received < float64(64*(want-slack)) ||
			sent > float64(64*(want+slack)) || received > float64(64*(want+slack)) {
			t.Errorf("pipeline %d: %v bytes/s sent, %v received, want %d", pipeline, sent, received, 64*want)
		}
		if r.Interrupted || r.Behind != (Behind{}) {
			t.Errorf("pipeline %d: %+v", pipeline, r)
		}
	}
}

// The requests of a pipeline go out in one write; the replies arrive one by one.
func TestPipelineGoesOutAtOnce(t *testing.T) {
	n := exact(t)
	receives, most := 0, 0
	n.Serve(":7", func(*rondo.Conn) rondo.Handler {
		return rondo.HandlerFunc(func(c *rondo.Conn, in []byte) (int, error) {
			receives++
			most = max(most, len(in))
			return c.Write(in)
		})
	})
	c := config(t)
	c.Conns, c.Pipeline, c.Warmup, c.Duration, c.Count = 1, 16, 0, 0, 1600
	mustRun(t, n, c)
	if receives != 100 || most != 16*64 {
		t.Errorf("1600 requests arrived in %d pieces, the largest of %d bytes", receives, most)
	}
}

// A count is exact, whatever the number of loops and connections.
func TestCountIsExact(t *testing.T) {
	for _, rate := range []float64{0, 5000} {
		for _, loops := range []int{1, 3} {
			for _, conns := range []int{1, 10} {
				for _, count := range []int64{1, 7, 300} {
					n := rondotest.New(t, rondotest.Options{Faults: rondotest.Harmless(0.05)})
					n.Serve(":7", echo)
					c := config(t)
					c.Conns, c.Pipeline, c.Warmup, c.Count, c.Rate = conns, 4, 10*time.Millisecond, count, rate
					r, err := runOn(context.Background(), n, loops, c)
					if err != nil || r.Requests != count || r.Sent < 64*count {
						t.Errorf("seed %d: rate %v, %d loops, %d connections, count %d: %+v, %v", n.Seed(), rate, loops, conns, count, r, err)
					}
					n.Close()
				}
			}
		}
	}
}

// Every workload gets the replies it expects from its server, on networks that split and
// delay.
func TestRedisWorkloads(t *testing.T) {
	for _, test := range RedisTests {
		for _, keys := range []int{1, 100} {
			for seed := range uint64(3) {
				n := rondotest.New(t, rondotest.Options{Seed: seed + 1, Faults: rondotest.Harmless(0.05)})
				s := &redis.Server{Engine: n.Engine(&rondo.Engine{NumLoops: 1 + int(seed)%2}), Password: "secret"}
				var err error
				n.Await(func() { _, err = s.Listen("tcp", ":6379", rondo.SocketOptions{}) })
				if err != nil {
					t.Fatal(err)
				}
				c := config(t)
				c.Address, c.Conns, c.Pipeline, c.Warmup, c.Count = "127.0.0.1:6379", 7, 1+int(seed), time.Millisecond, 200
				o := RedisOptions{Conns: c.Conns, Pipeline: c.Pipeline, Size: 1 + int(seed)*700, Keyspace: keys, Password: "secret"}
				if c.Workload, err = Redis(test, o); err != nil {
					t.Fatal(err)
				}
				r, err := runOn(context.Background(), n, 2, c)
				if err != nil || r.Requests != c.Count {
					t.Errorf("seed %d: %s of %d keys: %+v, %v", n.Seed(), test, keys, r, err)
				}
				n.Close()
			}
		}
	}
}

// Large messages, more than a server's buffers hold, do not cause a deadlock.
func TestLargeMessages(t *testing.T) {
	n := rondotest.New(t, rondotest.Options{})
	n.Serve(":7", echo)
	c := config(t)
	c.Workload, c.Conns, c.Pipeline, c.Warmup, c.Count = echoOf(t, 1<<20, 8), 2, 8, 0, 40
	if r := mustRun(t, n, c); r.Requests != 40 || r.Received != 40<<20 {
		t.Errorf("%+v", r)
	}
}

// The end of the context ends the run, which reports what it measured.
func TestInterrupt(t *testing.T) {
	n := exact(t)
	ctx, cancel := context.WithCancel(context.Background())
	requests := 0
	n.Serve(":7", func(*rondo.Conn) rondo.Handler {
		return rondo.HandlerFunc(func(c *rondo.Conn, in []byte) (int, error) {
			if requests++; requests == 3000 {
				cancel()
			}
			return c.Write(in)
		})
	})
	c := config(t)
	c.Warmup, c.Duration = 0, time.Hour
	r, err := runOn(ctx, n, 2, c)
	if err != nil || !r.Interrupted || r.Requests < 2000 || !about(r.Percentile(50), 2*tick) {
		t.Errorf("%+v, %v", r, err)
	}

	// Before the measurement there is nothing to report.
	r, err = runOn(ctx, n, 2, c)
	if err != nil || !r.Interrupted || r.Requests != 0 || r.Rate() != 0 || r.Percentile(99) != 0 {
		t.Errorf("with a context that is over: %+v, %v", r, err)
	}
}

func TestConfigMistakes(t *testing.T) {
	for name, change := range map[string]func(*Config){
		"no connections":  func(c *Config) { c.Conns = 0 },
		"no pipeline":     func(c *Config) { c.Pipeline = 0 },
		"a negative rate": func(c *Config) { c.Rate = -1 },
		"too high a rate": func(c *Config) { c.Rate = 2 * MaxRate },
		"no end":          func(c *Config) { c.Duration = 0 },
		"no timeout":      func(c *Config) { c.Timeout = 0 },
	} {
		c := config(t)
		change(&c)
		if _, err := Run(context.Background(), &rondo.Engine{}, c); err == nil {
			t.Errorf("%s is no error", name)
		}
	}
	if _, err := Redis("nope", RedisOptions{Conns: 1, Pipeline: 1, Size: 1, Keyspace: 1}); err == nil {
		t.Error("a test that is none is no error")
	}
}

// Collecting progress while the load runs loses no measurement.
func TestProgress(t *testing.T) {
	n := exact(t)
	n.Serve(":7", echo)
	c := config(t)
	e := n.Engine(&rondo.Engine{NumLoops: 2})
	n.Await(func() { e.Start() })
	r := newRun(e, c)
	collect := newCollector(r)
	progress := func() (p Progress) {
		var ok bool
		n.Await(func() { p, ok = collect.progress() })
		if !ok {
			t.Fatal("the run is over")
		}
		return p
	}
	if p := progress(); p.Phase != Connecting || p.Ready != 0 {
		t.Errorf("in the beginning: %+v", p)
	}
	n.Await(func() { r.workers[0].loop.Post(r.workers[0].first) })
	n.Advance(50 * time.Millisecond)
	if p := progress(); p.Phase != WarmingUp || p.Ready != c.Conns || p.Rate <= 0 || p.P99 != 0 || p.Elapsed != 0 {
		t.Errorf("in the warm-up: %+v", p)
	}
	for elapsed := 40 * time.Millisecond; elapsed < c.Duration; elapsed += 90 * time.Millisecond {
		n.Advance(90 * time.Millisecond)
		d := 10 * time.Millisecond // longer than connecting takes
		if p := progress(); p.Phase != Measuring || p.Rate <= 0 || !about(p.P99, 2*tick) || p.Elapsed > elapsed || p.Elapsed < elapsed-d {
			t.Errorf("after %v: %+v", elapsed, p)
		}
	}
	n.Until(func() bool {
		select {
		case <-r.over:
			return true
		default:
			return false
		}
	})
	n.Await(func() { e.Close() })
	got := collect.report(false)
	if trips := got.Requests / int64(c.Conns); trips < 499 || trips > 501 || !about(got.Percentile(50), 2*tick) {
		t.Errorf("%+v", got)
	}
}
