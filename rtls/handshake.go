package rtls

import (
	"context"
	"errors"
	"net"
	"sync"

	"github.com/rondo-go/rondo"
	"github.com/rondo-go/rondo/internal/bridge"
)

// handshake is a handshake under way: code of crypto/tls that blocks on its
// transport, in a coroutine. It runs when there is a record for it, on the loop's
// goroutine, or one step after the other on workers'. Every switch to the
// coroutine, its unwinding included, happens on the same side: goroutines that are
// locked to threads must not switch to coroutines of others that are not.
type handshake struct {
	work  func() error // what runs in the coroutine
	co    *routine     // nil: nothing has run yet, or it is over
	spare *spare       // where co comes from, and goes; nil: it is made, and ended
	host  bridge.Loop  // the loop that steps run on; nil: workers
	timer *rondo.Timer
	ctx   context.Context

	done     bool
	err      error             // work's
	panicked *rondo.PanicError // what a callback of the configuration panicked with

	renegotiated bool
	seen         records
	plain        []byte // renegotiated: what came behind the handshake
	read         int    // bytes of plain

	off     bool // steps run on workers
	running bool // one does; the loop keeps its hands off until it is posted back
	ref     rondo.Ref
	cancel  context.CancelFunc
	local   net.Addr
	remote  net.Addr
	input   []byte // a copy of the filter's wire, for a step
	output  []byte // what a step has written

	mu        sync.Mutex
	inFlight  bool // a worker has a step, or will have
	abandoned bool // the connection is closed: the worker unwinds
}

// begin prepares a handshake. Its coroutine is made when there is something for it
// to do, so that a client that says nothing costs none.
func (f *filter) begin(work func() error) {
	h := &handshake{work: work, ctx: context.Background()}
	f.hand = h
	c := f.stage.Conn()
	if d := f.options.timeout(); d > 0 {
		h.timer = c.Loop().AfterFunc(d, f.expired)
	}
	if h.off = f.options.OffLoop > 0; !h.off {
		h.spare, h.host = &f.shared.spare, f.shared.host
	} else {
		h.ref, h.local, h.remote = c.Ref(), c.LocalAddr(), c.RemoteAddr()
		h.ctx, h.cancel = context.WithCancel(h.ctx)
	}
}

// step runs the coroutine until it wants a record that has not come, or is done.
func (h *handshake) step() {
	if h.co == nil {
		h.co = h.spare.take()
		h.co.serves = h
	}
	h.co.resume()
	if h.done {
		h.spare.put(h.co)
		h.co = nil
	}
}

// run is what the coroutine does for h.
func (h *handshake) run() {
	returned := false
	defer func() {
		h.done = true
		if returned {
			return
		}
		h.panicked = panicError(recover())
	}()
	h.err = h.work()
	errors.As(h.err, &h.panicked) // a KeyLogWriter's
	returned = true
}

// wait lets the loop go on until there is a record. false: there will be none.
// It is called in the coroutine.
func (h *handshake) wait() bool { return h.co.yield(struct{}{}) }

// unwind ends the coroutine, if there is one.
func (h *handshake) unwind() {
	if h.co != nil {
		h.co.stop()
		h.co = nil
	}
}

// stepOff has a worker make a step. Meanwhile the filter is given no input; what it
// has is offered again afterwards, and then what the step has read is skipped.
func (h *handshake) stepOff(f *filter) {
	f.stage.Pause()
	h.input = append(h.input[:0], f.wire...)
	f.wire = h.input
	h.running = true
	h.inFlight = true
	f.options.workers.do(f.options.OffLoop, func() {
		h.mu.Lock()
		abandoned := h.abandoned
		h.mu.Unlock()
		if !abandoned {
			h.step()
		}
		h.mu.Lock()
		abandoned = h.abandoned
		h.inFlight = false
		h.mu.Unlock()
		if abandoned {
			h.unwind()
			return
		}
		// If the connection is closed by then, Closed has seen to the unwinding.
		h.ref.Do(func(*rondo.Conn) { f.steppedOff() })
	})
}

// steppedOff takes a step's results, on the loop.
func (f *filter) steppedOff() {
	h := f.hand
	h.running = false
	f.skip = int32(len(h.input) - len(f.wire))
	f.wire = nil
	f.answered = len(h.output) > 0
	f.stage.Send(h.output)
	h.output = h.output[:0]
	if err := f.stepped(); err != nil {
		f.stage.Fail(err)
	}
	f.sendNow()
	f.stage.Resume()
}

// abandon ends a handshake whose connection is closed.
func (h *handshake) abandon(o *Options) {
	if h.timer != nil {
		h.timer.Stop()
	}
	if !h.off {
		h.unwind()
		return
	}
	h.cancel()
	h.mu.Lock()
	h.abandoned = true
	inFlight := h.inFlight
	h.mu.Unlock()
	if !inFlight && h.co != nil {
		o.workers.do(o.OffLoop, h.unwind)
	}
}

// workers are goroutines that make steps, no more than there is work for.
type workers struct {
	mu    sync.Mutex
	busy  int
	queue []func()
}

// do has job done, when fewer than limit others are at work.
func (w *workers) do(limit int, job func()) {
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.busy == limit {
		w.queue = append(w.queue, job)
		return
	}
	w.busy++
	go w.work(job)
}

func (w *workers) work(job func()) {
	for job != nil {
		job()
		job = w.take()
	}
}

// take returns the next job, or nil: then the worker ends.
func (w *workers) take() (job func()) {
	w.mu.Lock()
	defer w.mu.Unlock()
	if len(w.queue) == 0 {
		w.queue = nil
		w.busy--
		return nil
	}
	job, w.queue[0] = w.queue[0], nil
	w.queue = w.queue[1:]
	return job
}

// records tells by the types of the records that went to and fro how far a
// renegotiation is. crypto/tls goes on reading when it is over, and does not say
// that it is.
type records struct {
	sent     bool // a handshake's record: the wish was granted
	sentKeys bool // change_cipher_spec, both ways
	gotKeys  bool
	finished bool // a handshake's record, after the peer's change_cipher_spec
}

// over reports whether a handshake has no use for more records.
func (h *handshake) over() bool {
	r := &h.seen
	return h.renegotiated && (!r.sent || r.sentKeys && r.finished)
}

// received notes a record that crypto/tls is given.
func (h *handshake) received(kind byte) {
	switch kind {
	case typeChangeCipherSpec:
		h.seen.gotKeys = true
	case typeHandshake:
		h.seen.finished = h.seen.gotKeys
	}
}

// wrote notes the records that crypto/tls sends.
func (h *handshake) wrote(p []byte) {
	for len(p) >= recordHeader {
		switch p[0] {
		case typeChangeCipherSpec:
			h.seen.sentKeys = true
		case typeHandshake:
			h.seen.sent = true
		}
		p = p[min(len(p), recordHeader+int(p[3])<<8+int(p[4])):]
	}
}
