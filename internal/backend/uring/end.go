//go:build linux

package uring

import (
	"runtime"

	"github.com/rondo-go/rondo/internal/backend"
	"github.com/rondo-go/rondo/internal/sys"
)

// startClose ends the Ops in flight on f. The descriptor is closed later, when the
// kernel has ended its requests: a close before that would not take effect.
func (b *Backend) startClose(f *file, op *backend.Op) {
	f.flags |= closing
	if f.in != nil {
		b.done(f.in, 0, backend.ErrClosed)
		f.in = nil
	}
	if f.last != nil {
		b.done(f.last, 0, backend.ErrClosed)
	}
	f.last = op
	b.cancelIn(f)
	if f.out != nil {
		b.cancelOut(f)
	}
	if f.flags&packets != 0 {
		b.endPackets(f)
	}
	b.dropInput(f)
	b.closeIdle(f)
}

// dropInput discards the undelivered input of f.
func (b *Backend) dropInput(f *file) {
	for f.head != none {
		number := f.head
		b.bufs.pop(f)
		b.bufs.put(number)
	}
	if f.more != nil {
		for _, fd := range f.more.conns[f.more.first:] {
			f.closeAccepted(fd)
		}
		f.more = nil
	}
	f.flags &^= ended | readable
}

// closeIdle completes f's Close in the next turn, if the kernel has no request left.
func (b *Backend) closeIdle(f *file) {
	if f.flags&closing != 0 && f.last != nil && !f.busy() {
		b.done(f.last, 0, nil)
		f.last = nil
	}
}

// finish performs a Shutdown, Close or Reset whose turn has come.
func (b *Backend) finish(c *backend.Completion) {
	f := b.files.get(c.Op.File)
	if f == nil || c.Err != nil {
		return
	}
	switch c.Op.Kind {
	case backend.Shutdown:
		c.Err = sys.ShutdownWrite(f.fd())
	case backend.Close, backend.Reset:
		if path, ok := b.paths[c.Op.File]; ok {
			sys.Unlink(path)
			delete(b.paths, c.Op.File)
		}
		if c.Op.Kind == backend.Reset {
			c.Err = sys.CloseReset(f.fd())
		} else {
			c.Err = f.closeNow()
		}
		delete(b.packets.sockets, c.Op.File)
		b.files.remove(f)
	}
}

// Close ends every request before it frees the memory that requests refer to. It closes
// every descriptor.
func (b *Backend) Close() error {
	defer sys.RemoveSleeper()
	b.waking.Lock()
	b.closed = true
	b.waking.Unlock()
	if b.enabled {
		defer runtime.UnlockOSThread()
		if err := b.endRequests(); err != nil {
			return err // the kernel may still write to the memory: keep it
		}
	}
	for _, path := range b.paths {
		sys.Unlink(path)
	}
	for f := range b.files.all() {
		b.dropInput(f)
		f.closeNow()
	}
	b.files = table{}
	b.waker.Close()
	err := b.ring.close()
	b.bufs.close()
	b.packets.close()
	return err
}

// endRequests cancels all requests and returns when they have ended.
func (b *Backend) endRequests() error {
	for b.flights > 0 {
		s := b.ring.next()
		s.opcode = opAsyncCancel
		s.opFlags = cancelAny | cancelAll
		s.userData = uint64(tagNothing) // always completes, so wait returns
		if err := b.ring.look(); err != nil {
			return err
		}
		if !b.ring.completed() && !b.ring.unsubmitted() {
			if err := b.ring.wait(forever); err != nil {
				return err
			}
		}
		for b.ring.completed() {
			b.forget(b.ring.completion())
		}
	}
	return nil
}

// forget handles a completion that nobody waits for.
func (b *Backend) forget(e *cqe) {
	id, tag := parseUserData(e.userData)
	if tag != tagNothing && tag != tagCancel && e.flags&cqeMore == 0 {
		b.flights--
	}
	if tag != tagIn {
		return
	}
	if f := b.files.get(id); f.at == accepts && e.res >= 0 {
		f.closeAccepted(e.res)
	}
}
