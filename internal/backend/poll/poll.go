//go:build unix

// Package poll implements the Poller for poll(2), which every Unix has. Each wait costs
// time in proportion to the number of watched descriptors, so poll is the fallback.
package poll

import (
	"os"
	"time"

	"golang.org/x/sys/unix"

	"github.com/rondo-go/rondo/internal/backend"
	"github.com/rondo-go/rondo/internal/backend/readiness"
	"github.com/rondo-go/rondo/internal/share"
	"github.com/rondo-go/rondo/internal/sys"
)

// poller keeps the list of descriptors for poll(2). fds[0] is the waker's; files[i]
// belongs to fds[i]; index maps a file's slot to its i.
type poller struct {
	waker *sys.Waker // which any goroutine may use
	_     share.Pad

	fds   []unix.PollFd
	files []backend.File
	index map[uint32]int
	ready []event // from the last Wait
	_     share.Pad
}

type event struct {
	file     backend.File
	interest readiness.Interest
}

// New returns a backend on poll.
func New() (backend.Backend, error) {
	w, err := sys.NewWaker()
	if err != nil {
		return nil, err
	}
	return readiness.New(&poller{
		waker: w,
		fds:   append(share.Queue[unix.PollFd](nil), unix.PollFd{Fd: int32(w.FD()), Events: unix.POLLIN}),
		files: append(share.Queue[backend.File](nil), 0),
		index: make(map[uint32]int),
	}), nil
}

func (p *poller) Watch(fd int, f backend.File, old, now readiness.Interest) error {
	if now == 0 {
		p.remove(f)
		return nil
	}
	i, ok := p.index[f.Slot()]
	if !ok {
		i = len(p.fds)
		p.fds = append(p.fds, unix.PollFd{})
		p.files = append(p.files, f)
		p.index[f.Slot()] = i
	}
	p.fds[i] = unix.PollFd{Fd: int32(fd)}
	if now&readiness.In != 0 {
		p.fds[i].Events |= unix.POLLIN
	}
	if now&readiness.Out != 0 {
		p.fds[i].Events |= unix.POLLOUT
	}
	return nil
}

func (p *poller) Forget(_ int, f backend.File, _ bool) { p.remove(f) }

func (p *poller) remove(f backend.File) {
	i, ok := p.index[f.Slot()]
	if !ok {
		return
	}
	last := len(p.fds) - 1
	p.fds[i], p.files[i] = p.fds[last], p.files[last]
	p.index[p.files[i].Slot()] = i
	p.fds, p.files = p.fds[:last], p.files[:last]
	delete(p.index, f.Slot())
}

func (p *poller) Wait(timeout time.Duration) (int, error) {
	p.ready = p.ready[:0]
	ms := -1
	if timeout >= 0 {
		ms = int((min(timeout, time.Hour) + time.Millisecond - 1) / time.Millisecond)
	}
	n, err := unix.Poll(p.fds, ms)
	if err == unix.EINTR {
		return 0, nil
	}
	if err != nil {
		return 0, os.NewSyscallError("poll", err)
	}
	for i := 0; i < len(p.fds) && len(p.ready) < n; i++ {
		if r := p.fds[i].Revents; r != 0 {
			p.ready = append(share.Queue(p.ready), event{p.files[i], interest(r)})
		}
	}
	if p.fds[0].Revents != 0 {
		p.waker.Drain()
	}
	return n, nil
}

func interest(revents int16) (i readiness.Interest) {
	in, out := sys.Revents(revents)
	if in {
		i |= readiness.In
	}
	if out {
		i |= readiness.Out
	}
	return i
}

func (p *poller) Event(i int) (backend.File, readiness.Interest) {
	return p.ready[i].file, p.ready[i].interest
}

func (p *poller) Wake() { p.waker.Wake() }

func (p *poller) Close() error {
	p.waker.Close()
	return nil
}
