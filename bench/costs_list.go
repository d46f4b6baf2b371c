package main

import (
	"errors"
	"runtime"
	"sync"
	"sync/atomic"
	"syscall"
	"time"
	"unsafe"

	"golang.org/x/sys/unix"

	"github.com/rondo-go/rondo"
)

// costs are all costs, in the order of docs/scale.md.
var costs = []cost{
	{name: "add-own", prepare: adds(16)},
	{name: "add-neighbours", prepare: adds(1)},
	{name: "add-shared", prepare: adds(0)},
	{name: "mutex-own", prepare: mutexes(16)},
	{name: "mutex-shared", prepare: mutexes(0)},
	{name: "syscall-raw", prepare: reads(func(fd uintptr) {
		var b [8]byte
		syscall.RawSyscall(syscall.SYS_READ, fd, uintptr(unsafe.Pointer(&b)), 8)
	})},
	{name: "syscall", prepare: reads(func(fd uintptr) {
		var b [8]byte
		syscall.Syscall(syscall.SYS_READ, fd, uintptr(unsafe.Pointer(&b)), 8)
	})},
	{name: "descriptor", prepare: simple(func() error {
		fd, err := unix.Eventfd(0, unix.EFD_CLOEXEC|unix.EFD_NONBLOCK)
		return errors.Join(err, unix.Close(fd))
	})},
	{name: "epoll-own", prepare: epolls(true)},
	{name: "epoll-shared", prepare: epolls(false)},
	{name: "epoll-ctl", prepare: registrations},
	{name: "accept-own", prepare: accepts(true)},
	{name: "accept-shared", prepare: accepts(false)},
	{name: "post", prepare: posts, free: true},
	{name: "wake-eventfd", prepare: eventfds},
	{name: "goroutine-switch", prepare: switches, free: true},
	{name: "timer", prepare: timers, free: true},
	{name: "alloc-64", prepare: simple(allocates(64)), free: true},
	{name: "alloc-64k", prepare: simple(allocates(64 << 10)), free: true},
	{name: "clock", prepare: simple(func() error { runtime.KeepAlive(time.Now()); return nil })},
	{name: "stop-the-world", prepare: simple(func() error { var m runtime.MemStats; runtime.ReadMemStats(&m); return nil }), free: true, alone: true},
	{name: "collect-100000", prepare: collections, free: true, alone: true},
}

// simple is a cost that needs nothing.
func simple(f func() error) func(int) (func(int, int) error, func(), error) {
	return func(int) (func(int, int) error, func(), error) {
		return func(_, times int) error {
			for range times {
				if err := f(); err != nil {
					return err
				}
			}
			return nil
		}, func() {}, nil
	}
}

// adds adds to numbers that lie so many words apart.
func adds(apart int) func(int) (func(int, int) error, func(), error) {
	return func(threads int) (func(int, int) error, func(), error) {
		words := make([]atomic.Int64, threads*apart+16)
		return func(thread, times int) error {
			for range times {
				words[thread*apart].Add(1)
			}
			return nil
		}, func() {}, nil
	}
}

func mutexes(apart int) func(int) (func(int, int) error, func(), error) {
	return func(threads int) (func(int, int) error, func(), error) {
		locks := make([]sync.Mutex, threads*apart+16)
		return func(thread, times int) error {
			mu := &locks[thread*apart]
			n := 0
			for range times {
				mu.Lock()
				n++
				mu.Unlock()
			}
			return nil
		}, func() {}, nil
	}
}

// files makes a descriptor for each thread.
func files(threads int, open func() (int, error)) (fds []int, end func(), err error) {
	end = func() {
		for _, fd := range fds {
			unix.Close(fd)
		}
	}
	for range threads {
		fd, err := open()
		if err != nil {
			end()
			return nil, nil, err
		}
		fds = append(fds, fd)
	}
	return fds, end, nil
}

func eventfd() (int, error) { return unix.Eventfd(0, unix.EFD_CLOEXEC|unix.EFD_NONBLOCK) }

// reads reads from an empty eventfd of each thread: a system call that looks a descriptor up.
func reads(read func(fd uintptr)) func(int) (func(int, int) error, func(), error) {
	return func(threads int) (func(int, int) error, func(), error) {
		fds, end, err := files(threads, eventfd)
		return func(thread, times int) error {
			for range times {
				read(uintptr(fds[thread]))
			}
			return nil
		}, end, err
	}
}

func eventfds(threads int) (func(int, int) error, func(), error) {
	fds, end, err := files(threads, eventfd)
	return func(thread, times int) error {
		one := [8]byte{1}
		for range times {
			if _, err := unix.Write(fds[thread], one[:]); err != nil && err != unix.EAGAIN {
				return err
			}
		}
		return nil
	}, end, err
}

// epolls takes an event that is always there, from an instance of each thread or a common one.
func epolls(own bool) func(int) (func(int, int) error, func(), error) {
	return func(threads int) (func(int, int) error, func(), error) {
		polls, end, err := files(threads, func() (int, error) { return unix.EpollCreate1(unix.EPOLL_CLOEXEC) })
		if err != nil {
			return nil, nil, err
		}
		events, close, err := files(threads, func() (int, error) { return unix.Eventfd(1, unix.EFD_CLOEXEC) })
		for i, fd := range events {
			at := polls[0]
			if own {
				at = polls[i]
			}
			err = errors.Join(err, unix.EpollCtl(at, unix.EPOLL_CTL_ADD, fd, &unix.EpollEvent{Events: unix.EPOLLIN, Fd: int32(fd)}))
		}
		return func(thread, times int) error {
			at := polls[0]
			if own {
				at = polls[thread]
			}
			var got [1]unix.EpollEvent
			for range times {
				if _, err := unix.EpollWait(at, got[:], 0); err != nil {
					return err
				}
			}
			return nil
		}, func() { close(); end() }, err
	}
}

// registrations adds a descriptor to an epoll instance of each thread, and removes it.
func registrations(threads int) (func(int, int) error, func(), error) {
	polls, end, err := files(threads, func() (int, error) { return unix.EpollCreate1(unix.EPOLL_CLOEXEC) })
	if err != nil {
		return nil, nil, err
	}
	fds, close, err := files(threads, eventfd)
	return func(thread, times int) error {
		at, fd := polls[thread], fds[thread]
		for range times {
			if err := errors.Join(unix.EpollCtl(at, unix.EPOLL_CTL_ADD, fd, &unix.EpollEvent{Events: unix.EPOLLIN}),
				unix.EpollCtl(at, unix.EPOLL_CTL_DEL, fd, nil)); err != nil {
				return err
			}
		}
		return nil
	}, func() { close(); end() }, err
}

// accepts connects to a listening socket and accepts from it, one of each thread or a common one.
func accepts(own bool) func(int) (func(int, int) error, func(), error) {
	return func(threads int) (func(int, int) error, func(), error) {
		var addresses []unix.SockaddrInet4
		fds, end, err := files(threads, func() (int, error) {
			fd, err := unix.Socket(unix.AF_INET, unix.SOCK_STREAM|unix.SOCK_CLOEXEC, 0)
			at := unix.SockaddrInet4{Addr: [4]byte{127, 0, 0, 1}}
			err = errors.Join(err, unix.Bind(fd, &at), unix.Listen(fd, 1024))
			name, nameErr := unix.Getsockname(fd)
			if err = errors.Join(err, nameErr); err == nil {
				addresses = append(addresses, *name.(*unix.SockaddrInet4))
			}
			return fd, err
		})
		return func(thread, times int) error {
			if !own {
				thread = 0
			}
			for range times {
				if err := acceptOne(fds[thread], &addresses[thread]); err != nil {
					return err
				}
			}
			return nil
		}, end, err
	}
}

// acceptOne connects, accepts and closes. The client resets the connection: a port that waits for
// late packets could not be used again.
func acceptOne(listener int, at *unix.SockaddrInet4) error {
	client, err := unix.Socket(unix.AF_INET, unix.SOCK_STREAM|unix.SOCK_CLOEXEC, 0)
	if err != nil {
		return err
	}
	defer unix.Close(client)
	if err := errors.Join(unix.SetsockoptLinger(client, unix.SOL_SOCKET, unix.SO_LINGER, &unix.Linger{Onoff: 1}), unix.Connect(client, at)); err != nil {
		return err
	}
	fd, _, err := unix.Accept4(listener, unix.SOCK_CLOEXEC|unix.SOCK_NONBLOCK)
	return errors.Join(err, unix.Close(fd))
}

// posts posts to one loop, and waits for the last post.
func posts(int) (func(int, int) error, func(), error) {
	e := &rondo.Engine{NumLoops: 1}
	err := e.Start()
	var to *rondo.Loop
	for l := range e.Loops() {
		to = l
	}
	nothing := func() {}
	return func(_, times int) error {
		for range times {
			if err := to.Post(nothing); err != nil {
				return err
			}
		}
		done := make(chan struct{})
		err := to.Post(func() { close(done) })
		<-done
		return err
	}, func() { e.Close() }, err
}

// switches lets two goroutines of each thread wake each other.
func switches(int) (func(int, int) error, func(), error) {
	return func(_, times int) error {
		ping, pong := make(chan struct{}), make(chan struct{})
		go func() {
			for range ping {
				pong <- struct{}{}
			}
		}()
		for range times {
			ping <- struct{}{}
			<-pong
		}
		close(ping)
		return nil
	}, func() {}, nil
}

// timers moves a timer of Go's runtime, as a deadline of a net.Conn does with each message.
func timers(int) (func(int, int) error, func(), error) {
	return func(_, times int) error {
		t := time.AfterFunc(time.Hour, func() {})
		for i := range times {
			t.Reset(time.Hour + time.Duration(i))
		}
		t.Stop()
		return nil
	}, func() {}, nil
}

func allocates(size int) func() error {
	return func() error {
		b := make([]byte, size)
		b[0] = 1
		runtime.KeepAlive(&b)
		return nil
	}
}

// collections collects a heap of 100,000 idle connections.
func collections(int) (func(int, int) error, func(), error) {
	type conn struct { // as large as a rondo.Conn, with as many pointers
		pointers [10]*int
		_        [14]uintptr
	}
	all, loop := make([]*conn, 100_000), new(int)
	for i := range all {
		all[i] = new(conn)
		all[i].pointers[0], all[i].pointers[1] = loop, loop
	}
	return func(_, times int) error {
		for range times {
			runtime.GC()
		}
		runtime.KeepAlive(all)
		return nil
	}, func() {}, nil
}
