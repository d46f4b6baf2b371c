package std

import (
	"errors"
	"slices"

	"github.com/rondo-go/rondo/internal/backend"
	"github.com/rondo-go/rondo/internal/share"
	"github.com/rondo-go/rondo/internal/sys"
)

// A watcher is the goroutine that waits for descriptors, with poll(2). Go's own poller
// is no alternative: it would make the descriptor non-blocking for every process that
// shares it. A backend has one watcher, from its first Watch on.
type watcher struct {
	b     *Backend
	waker *sys.Waker

	mu     share.Mutex
	polls  []*poll // in flight
	closed bool
}

// poll is a poll Op in flight.
type poll struct {
	file *file
	op   *backend.Op
	fd   int
	mask int // Readable, Writable
}

// errNotWatched is the error of a poll on a File of another kind.
var errNotWatched = errors.New("file was not made by Watch")

// Watch makes a File of a duplicate of fd.
func (b *Backend) Watch(fd int) (backend.File, error) {
	if b.closed {
		return 0, backend.ErrClosed
	}
	own, err := sys.Watchable(fd)
	if err != nil {
		return 0, err
	}
	if b.watcher == nil {
		waker, err := sys.NewWaker()
		if err != nil {
			sys.Close(own)
			return 0, err
		}
		b.watcher = &watcher{b: b, waker: waker}
		b.workers.Add(1)
		go b.watcher.run()
	}
	return b.files.add(&file{b: b, watched: &watched{own}}), nil
}

// watched holds a file's duplicate descriptor.
type watched struct{ fd int }

func (f *file) startPoll(op *backend.Op) {
	if f.watched == nil {
		f.b.done(op, errNotWatched)
		return
	}
	f.setIn(op)
	w := f.b.watcher
	w.mu.Lock()
	w.polls = append(w.polls, &poll{f, op, f.watched.fd, op.Kind.Polls()})
	w.mu.Unlock()
	w.waker.Wake()
}

// cancel ends f's poll in flight, unless it has just completed.
func (w *watcher) cancel(f *file) {
	w.mu.Lock()
	i := slices.IndexFunc(w.polls, func(p *poll) bool { return p.file == f })
	if i >= 0 {
		w.polls = slices.Delete(w.polls, i, i+1)
	}
	w.mu.Unlock()
	if i >= 0 {
		w.b.post(result{op: f.in, file: f, err: backend.ErrCanceled})
		w.waker.Wake() // poll(2) must not use the descriptor any more
	}
}

// close ends the goroutine. No method of w may be called after it.
func (w *watcher) close() {
	w.mu.Lock()
	w.closed = true
	w.mu.Unlock()
	w.waker.Wake()
}

func (w *watcher) run() {
	defer w.b.workers.Done()
	defer w.waker.Close()
	var set sys.PollSet
	for {
		w.mu.Lock()
		polls := slices.Clone(w.polls)
		closed := w.closed
		w.mu.Unlock()
		if closed {
			return
		}
		set.Reset()
		set.Add(w.waker.FD(), true, false)
		for _, p := range polls {
			set.Add(p.fd, p.mask&backend.Readable != 0, p.mask&backend.Writable != 0)
		}
		err := set.Wait()
		if in, _ := set.Ready(0); in {
			w.waker.Drain()
		}
		for i, p := range polls {
			in, out := set.Ready(i + 1)
			w.ready(p, in, out, err)
		}
	}
}

// ready completes p if it is still in flight and one of its conditions holds.
func (w *watcher) ready(p *poll, in, out bool, err error) {
	n := 0
	if in {
		n = backend.Readable
	}
	if out {
		n |= backend.Writable
	}
	if n &= p.mask; n == 0 && err == nil {
		return
	}
	w.mu.Lock()
	i := slices.Index(w.polls, p)
	if i >= 0 {
		w.polls = slices.Delete(w.polls, i, i+1)
	}
	w.mu.Unlock()
	if i >= 0 {
		w.b.post(result{op: p.op, file: p.file, n: n, err: err})
	}
}
