package load

import (
	"context"
	"sync"
	"sync/atomic"
	"time"

	"github.com/rondo-go/rondo"
)

// Run makes the load that c describes on e's loops, among which it divides the
// connections, and returns the measurements. e must be new and belongs to Run,
// which sets its limits, starts it and closes it.
//
// Run ends early with an error if a connection fails, or if a reply is wrong or
// missing. It ends early without an error, but with Report.Interrupted, when
// ctx ends. The Report holds what was measured until then.
func Run(ctx context.Context, e *rondo.Engine, c Config) (*Report, error) {
	if err := c.check(); err != nil {
		return nil, err
	}
	c.engine(e)
	if err := e.Start(); err != nil {
		return nil, err
	}
	r := newRun(e, c)
	r.workers[0].loop.Post(r.workers[0].first)
	collect := newCollector(r)
	interrupted := r.wait(ctx, collect)
	if r.err == nil && !interrupted {
		e.Shutdown(context.Background()) // bounded by Linger
	} else {
		e.Close()
	}
	return collect.report(interrupted), r.err
}

// run is a load in progress.
type run struct {
	Config
	workers []*worker

	unready    atomic.Int32 // workers that are not ready to begin
	unfinished atomic.Int32 // workers that are not finished

	once sync.Once
	over chan struct{} // closed at the end
	err  error         // the reason for an early end
}

func newRun(e *rondo.Engine, c Config) *run {
	r := &run{Config: c, over: make(chan struct{})}
	if r.Clock == nil {
		base := time.Now()
		r.Clock = func(*rondo.Loop) time.Duration { return time.Since(base) }
	}
	for l := range e.Loops() {
		if len(r.workers) < c.Conns {
			r.workers = append(r.workers, newWorker(r, l))
		}
	}
	for id := range c.Conns {
		w := r.workers[id%len(r.workers)]
		w.conns = append(w.conns, &conn{worker: w, id: id})
	}
	for i, w := range r.workers {
		w.left = share(c.Count, i, len(r.workers))
	}
	r.unready.Store(int32(len(r.workers)))
	r.unfinished.Store(int32(len(r.workers)))
	return r
}

// share returns the i-th of n parts of total. The parts differ by at most 1.
func share(total int64, i, n int) int64 {
	part := total / int64(n)
	if int64(i) < total%int64(n) {
		part++
	}
	return part
}

// wait waits for the end, and reports progress meanwhile. It returns true if
// ctx ended first.
func (r *run) wait(ctx context.Context, collect *collector) (interrupted bool) {
	var tick <-chan time.Time
	if r.Progress != nil {
		t := time.NewTicker(time.Second)
		defer t.Stop()
		tick = t.C
	}
	for {
		select {
		case <-r.over:
			return false
		case <-ctx.Done():
			r.end(nil)
			return true
		case <-tick:
			if p, ok := collect.progress(); ok {
				r.Progress(p)
			}
		}
	}
}

// end ends the run; only its first call counts. Any goroutine may call it.
func (r *run) end(err error) {
	r.once.Do(func() {
		r.err = err
		close(r.over)
	})
}

// connected is called once, on the loop of the first connection, with the
// resolved address of the server.
func (r *run) connected(address string) {
	for _, w := range r.workers {
		w.loop.Post(func() { w.connect(address) })
	}
}

// ready is called on a worker's loop when the worker's connections are ready
// for the load. After the last call all workers begin.
func (r *run) ready(now time.Duration) {
	if r.unready.Add(-1) == 0 {
		for _, w := range r.workers {
			w.loop.Post(func() { w.begin(now) })
		}
	}
}

// finished is called on a worker's loop when its load has ended.
func (r *run) finished() {
	if r.unfinished.Add(-1) == 0 {
		r.end(nil)
	}
}
