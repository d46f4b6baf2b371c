package load

import (
	"context"
	"testing"
	"time"

	"github.com/rondo-go/rondo"
	"github.com/rondo-go/rondo/rondotest"
)

// tick is the exact latency of the deterministic network.
const tick = time.Millisecond

func exact(t testing.TB) *rondotest.Network {
	return rondotest.New(t, rondotest.Options{Seed: 1, MinLatency: tick, MaxLatency: tick, Fragment: -1})
}

// simulated is the clock of the simulated network.
func simulated(l *rondo.Loop) time.Duration { return l.Now().Sub(time.Unix(0, 0)) }

// config is a load of 64 B echoes to 127.0.0.1:7.
func config(t testing.TB) Config {
	t.Helper()
	return Config{
		Network:  "tcp",
		Address:  "127.0.0.1:7",
		Workload: echoOf(t, 64, 16),
		Conns:    10,
		Pipeline: 1,
		Warmup:   100 * time.Millisecond,
		Duration: time.Second,
		Timeout:  10 * time.Second,
		Clock:    simulated,
	}
}

func echoOf(t testing.TB, size, pipeline int) Workload {
	t.Helper()
	w, err := Echo(size, pipeline)
	if err != nil {
		t.Fatal(err)
	}
	return w
}

// runOn makes a load on a simulated network.
func runOn(ctx context.Context, n *rondotest.Network, loops int, c Config) (r *Report, err error) {
	e := n.Engine(&rondo.Engine{NumLoops: loops})
	n.Await(func() { r, err = Run(ctx, e, c) })
	return r, err
}

// mustRun is runOn without an error.
func mustRun(t *testing.T, n *rondotest.Network, c Config) *Report {
	t.Helper()
	r, err := runOn(context.Background(), n, 1, c)
	if err != nil {
		t.Fatal(err)
	}
	return r
}

func echo(*rondo.Conn) rondo.Handler { return rondo.HandlerFunc((*rondo.Conn).Write) }

// about reports whether a duration is want, as exactly as the histogram tells.
func about(got, want time.Duration) bool {
	return got >= want-want/500 && got <= want+want/500
}
