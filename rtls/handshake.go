package rtls

import (
	"context"
	"errors"
	"net"
	"sync"

	"github.com/rondo-go/rondo"
	"github.com/rondo-go/rondo/internal/bridge"
)

// A handshake is a handshake under way: blocking code of crypto/tls in a coroutine. It
// runs when there is a record for it: on the loop's goroutine, or step by step on
// workers. All switches to the coroutine, those to unwind it included, happen on one of
// the two: a goroutine that is locked to its thread must not switch to a coroutine made
// by one that is not.
type handshake struct {
	work  func() error // runs in the coroutine
	co    *routine     // nil: not started, or over
	spare *spare       // source of co, which returns there; nil: a new co is made, and ended afterwards
	host  bridge.Loop  // the loop that steps run on; nil: they run on workers
	timer *rondo.Timer
	ctx   context.Context

	done     bool
	err      error             // returned by work
	panicked *rondo.PanicError // a panic in a callback of the configuration

	renegotiated bool
	seen         records
	plain        []byte // renegotiated: content that followed the handshake
	read         int    // bytes of plain

	off     bool // steps run on workers
	running bool // a step runs on a worker; the loop must not touch it until the worker posts back
	ref     rondo.Ref
	cancel  context.CancelFunc
	local   net.Addr
	remote  net.Addr
	input   []byte // a copy of the filter's wire, for a step
	output  []byte // output of a step

	mu        sync.Mutex
	inFlight  bool // a step is queued or runs
	abandoned bool // the connection is closed: the worker unwinds
}

// begin prepares a handshake. Its coroutine is made when the first record comes, so a
// silent client costs none.
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

// step runs the coroutine until it needs a record that has not come, or is done.
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

// run is the coroutine's work for h.
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

// wait parks the coroutine until there is a record. It returns false if none will come.
// It is called in the coroutine.
func (h *handshake) wait() bool { return h.co.yield(struct{}{}) }

// unwind ends the coroutine if there is one.
func (h *handshake) unwind() {
	if h.co != nil {
		h.co.stop()
		h.co = nil
	}
}

// stepOff runs a step on a worker. The filter gets no input meanwhile. Afterwards its
// input is offered again, and the bytes that the step has read are skipped.
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
		// If the connection has closed by then, Closed has started the unwinding.
		h.ref.Do(func(*rondo.Conn) { f.steppedOff() })
	})
}

// steppedOff takes the results of a step. It runs on the loop.
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

// abandon ends a handshake whose connection has closed.
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

// workers are goroutines that run steps; they exist only while there is work.
type workers struct {
	mu    sync.Mutex
	busy  int
	queue []func()
}

// do runs job on a worker, at once if fewer than limit are busy.
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

// take returns the next job; nil if there is none: then the worker ends.
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

// records tracks a renegotiation by the types of the records sent and received.
// crypto/tls keeps reading after the renegotiation, and does not say that it is over.
type records struct {
	sent     bool // a handshake record: the request was granted
	sentKeys bool // change_cipher_spec, both ways
	gotKeys  bool
	finished bool // a handshake record, after the peer's change_cipher_spec
}

// over reports whether a renegotiation needs no more records.
func (h *handshake) over() bool {
	r := &h.seen
	return h.renegotiated && (!r.sent || r.sentKeys && r.finished)
}

// received records the type of a record that crypto/tls reads.
func (h *handshake) received(kind byte) {
	switch kind {
	case typeChangeCipherSpec:
		h.seen.gotKeys = true
	case typeHandshake:
		h.seen.finished = h.seen.gotKeys
	}
}

// wrote records the types of the records that crypto/tls sends.
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
