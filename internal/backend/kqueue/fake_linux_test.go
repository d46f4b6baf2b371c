package kqueue

import (
	"net"
	"sync"
	"syscall"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"github.com/rondo-go/rondo/internal/backend"
	"github.com/rondo-go/rondo/internal/backend/readiness"
	"github.com/rondo-go/rondo/internal/sys"
)

// fake is a kqueue made of epoll. It uses real descriptors and follows kqueue(2)'s
// rules for filters. Each kind of filter has its own epoll instance, so that a
// descriptor's filters come and go separately. Like a knote, an epoll registration ends
// with its descriptor, and removing an absent one gives ENOENT.
type fake struct {
	read, write int // epoll instances
	user        int // eventfd of the user event
}

// open are the fakes of all loops.
var open = struct {
	sync.Mutex
	fakes map[*fake]bool
}{fakes: make(map[*fake]bool)}

// closing does what close(2) does with a kqueue: it removes the descriptor's filters. An epoll
// keeps them until the last duplicate is closed, and a loop that polls the file at that moment
// delays the end of its stream until it wakes.
func closing(fd int) {
	open.Lock()
	defer open.Unlock()
	for f := range open.fakes {
		unix.EpollCtl(f.read, unix.EPOLL_CTL_DEL, fd, nil)
		unix.EpollCtl(f.write, unix.EPOLL_CTL_DEL, fd, nil)
	}
}

// closingPoller tells the fakes of the descriptors that the backend closes.
type closingPoller struct{ *poller }

func (p closingPoller) Forget(fd int, f backend.File, alone bool) {
	p.poller.Forget(fd, f, alone)
	closing(fd)
}

// closingBackend tells the fakes of the descriptors that package net gets: it closes them, and
// keeps a duplicate.
type closingBackend struct{ *readiness.Backend }

func (b closingBackend) Export(h backend.Handle) (net.Conn, error) {
	closing(h.FD)
	return b.Backend.Export(h)
}

// openFake returns a backend on a fake that is woken by a user event or by a pipe.
func openFake(t testing.TB, pipe bool) backend.Backend {
	var fds [3]int
	var err error
	for i := range fds {
		if i < 2 {
			fds[i], err = unix.EpollCreate1(unix.EPOLL_CLOEXEC)
		} else {
			fds[i], err = unix.Eventfd(0, unix.EFD_NONBLOCK|unix.EFD_CLOEXEC)
		}
		if err != nil {
			t.Fatal(err)
		}
	}
	f := &fake{fds[0], fds[1], fds[2]}
	p := newPoller(f, f)
	if pipe {
		w, err := sys.NewWaker()
		if err != nil {
			t.Fatal(err)
		}
		p.waker = w
		if err := p.Watch(w.FD(), 0, 0, readiness.In); err != nil {
			t.Fatal(err)
		}
	}
	open.Lock()
	open.fakes[f] = true
	open.Unlock()
	return closingBackend{readiness.New(closingPoller{p})}
}

func (f *fake) kevent(changes []change, events []event, timeout time.Duration) (int, error) {
	failed := 0
	for _, c := range changes {
		if errno := f.change(c); errno != 0 {
			if failed == len(events) {
				return -1, errno
			}
			events[failed] = event{fd: c.fd, filter: c.filter, err: errno}
			failed++
		}
	}
	if failed > 0 || len(events) == 0 {
		return failed, nil
	}
	fds := []unix.PollFd{{Fd: int32(f.read), Events: unix.POLLIN}, {Fd: int32(f.write), Events: unix.POLLIN}, {Fd: int32(f.user), Events: unix.POLLIN}}
	var limit *unix.Timespec
	if timeout >= 0 {
		ts := unix.NsecToTimespec(timeout.Nanoseconds())
		limit = &ts
	}
	if _, err := unix.Ppoll(fds, limit, nil); err != nil {
		return -1, err
	}
	n := 0
	if fds[2].Revents != 0 {
		// EV_CLEAR: reporting the event resets it.
		unix.Read(f.user, make([]byte, 8))
		events[0] = event{}
		n++
	}
	n += take(f.read, readiness.In, events[n:])
	n += take(f.write, readiness.Out, events[n:])
	return n, nil
}

// take stores the events of one kind of filter, as many as fit.
func take(epoll int, filter readiness.Interest, events []event) int {
	if len(events) == 0 {
		return 0
	}
	raw := make([]unix.EpollEvent, len(events))
	n, _ := unix.EpollWait(epoll, raw, 0)
	for i := range max(n, 0) {
		events[i] = event{fd: int(raw[i].Fd), filter: filter}
	}
	return max(n, 0)
}

func (f *fake) change(c change) syscall.Errno {
	epoll, mask := f.read, uint32(unix.EPOLLIN|unix.EPOLLRDHUP)
	if c.filter == readiness.Out {
		epoll, mask = f.write, unix.EPOLLOUT
	}
	op := unix.EPOLL_CTL_ADD
	if c.remove {
		op = unix.EPOLL_CTL_DEL
	}
	err := unix.EpollCtl(epoll, op, c.fd, &unix.EpollEvent{Events: mask, Fd: int32(c.fd)})
	if err == unix.EEXIST {
		return 0 // EV_ADD of a present filter changes nothing
	}
	errno, _ := err.(syscall.Errno)
	return errno
}

func (f *fake) close() error {
	open.Lock()
	defer open.Unlock()
	delete(open.fakes, f)
	unix.Close(f.write)
	unix.Close(f.user)
	return unix.Close(f.read)
}

func (f *fake) Wake() {
	one := [8]byte{1}
	unix.Write(f.user, one[:])
}

func (f *fake) Drain() {}
func (f *fake) Close() {}
