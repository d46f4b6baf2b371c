package load

import (
	"context"
	"runtime"
	"testing"
	"time"

	"github.com/rondo-go/rondo"
	"github.com/rondo-go/rondo/redis"
)

// realRun makes a load over sockets of this host, and returns the number of allocations of
// the whole process meanwhile.
func realRun(t testing.TB, address string, c Config) (allocations uint64) {
	t.Helper()
	c.Address, c.Clock = address, nil
	var before, after runtime.MemStats
	runtime.ReadMemStats(&before)
	r, err := Run(context.Background(), &rondo.Engine{NumLoops: 1}, c)
	runtime.ReadMemStats(&after)
	if err != nil {
		t.Fatal(err)
	}
	if r.Requests != c.Count {
		t.Fatalf("%d requests, want %d", r.Requests, c.Count)
	}
	return after.Mallocs - before.Mallocs
}

func serveEcho(t testing.TB) (address string) {
	t.Helper()
	e := &rondo.Engine{NumLoops: 1}
	ln, err := e.Listen("tcp", "127.0.0.1:0", rondo.SocketOptions{}, echo)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { e.Close() })
	return ln.Addr().String()
}

// A request of any workload costs no allocation, in a closed loop or an open one: a long
// run allocates no more than a short one.
func TestRequestsAllocateNothing(t *testing.T) {
	address := serveEcho(t)
	few := config(t)
	few.Conns, few.Warmup, few.Count = 4, time.Millisecond, 1000
	many := few
	many.Count = 21_000
	for _, c := range []struct {
		name     string
		pipeline int
		rate     float64
		workload Workload
	}{
		{"one at a time", 1, 0, echoOf(t, 64, 1)},
		{"pipelined", 16, 0, echoOf(t, 64, 16)},
		{"in an open loop", 4, 400_000, echoOf(t, 64, 4)},
		{"echoed SETs", 16, 0, selfEcho(t, "set")},
		{"echoed MSETs", 16, 0, selfEcho(t, "mset")},
		{"echoed GETs", 16, 0, selfEcho(t, "get")},
	} {
		few.Pipeline, few.Rate, few.Workload = c.pipeline, c.rate, c.workload
		many.Pipeline, many.Rate, many.Workload = c.pipeline, c.rate, c.workload
		a, b := realRun(t, address, few), realRun(t, address, many)
		if b > a+1000 {
			t.Errorf("%s: %d requests more made %d allocations more", c.name, many.Count-few.Count, b-a)
		}
	}
}

// selfEcho sends the requests of a Redis test and expects them back, so that the
// allocations of a Redis server do not count.
func selfEcho(t *testing.T, test string) Workload {
	t.Helper()
	w, err := Redis(test, RedisOptions{Conns: 4, Pipeline: 16, Size: 64, Keyspace: 100})
	if err != nil {
		t.Fatal(err)
	}
	talk := w.Talk
	w.Prepare = nil
	w.Talk = func(id int) Talk {
		buf := []byte{}
		again := talk(id)
		return Talk{talk(id).Requests, &variedReplies{middle: func() []byte { return again.Requests.Next(&buf, 1) }}}
	}
	return w
}

// Random replies and counters of Redis cost no allocation either.
func TestRepliesAllocateNothing(t *testing.T) {
	for _, test := range RedisTests {
		w, err := Redis(test, RedisOptions{Conns: 1, Pipeline: 8, Size: 64, Keyspace: 100})
		if err != nil {
			t.Fatal(err)
		}
		m := newModel(t)
		var buf []byte
		for _, p := range w.Prepare(0) {
			m.serve(p.Requests.Next(&buf, p.Count))
		}
		asked, talk := w.Talk(0), w.Talk(0)
		const rounds = 200
		var replies [][]byte
		for range rounds + 1 {
			replies = append(replies, m.serve(asked.Requests.Next(&buf, 8)))
		}
		i := 0
		n := testing.AllocsPerRun(rounds, func() {
			talk.Requests.Next(&buf, 8)
			if n, some, wrong := talk.Replies.Check(replies[i], 8); n != len(replies[i]) || some != 8 || wrong != nil {
				t.Fatal(n, some, wrong)
			}
			i++
		})
		if n != 0 {
			t.Errorf("%s: 8 requests make %v allocations", test, n)
		}
	}
}

// BenchmarkRequest measures what a request costs the generator and a server on the same
// host.
func BenchmarkRequest(b *testing.B) {
	run := func(address string, pipeline int, w Workload) func(*testing.B) {
		return func(b *testing.B) {
			c := config(b)
			c.Conns, c.Pipeline, c.Workload, c.Warmup, c.Count = 50, pipeline, w, 0, int64(b.N)
			b.ReportAllocs()
			realRun(b, address, c)
		}
	}
	echo := serveEcho(b)
	b.Run("echo", run(echo, 1, echoOf(b, 64, 1)))
	b.Run("echo/pipeline=32", run(echo, 32, echoOf(b, 64, 32)))

	s := &redis.Server{Engine: &rondo.Engine{NumLoops: 1}}
	ln, err := s.Listen("tcp", "127.0.0.1:0", rondo.SocketOptions{})
	if err != nil {
		b.Fatal(err)
	}
	defer s.Engine.Close()
	for _, keys := range []int{1, 1000} {
		w, err := Redis("get", RedisOptions{Conns: 50, Pipeline: 32, Size: 64, Keyspace: keys})
		if err != nil {
			b.Fatal(err)
		}
		name := "get/pipeline=32"
		if keys > 1 {
			name += "/keyspace"
		}
		b.Run(name, run(ln.Addr().String(), 32, w))
	}
}
