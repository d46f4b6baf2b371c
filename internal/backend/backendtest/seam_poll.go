package backendtest

import (
	"errors"
	"net"
	"os"
	"path/filepath"
	"syscall"
	"time"

	"github.com/rondo-go/rondo/internal/backend"
)

// A watched is a File that Watch made.
type watched struct {
	l    *loop
	file backend.File
}

func (w watched) poll(kind backend.Kind) *call { return w.l.submit(w.file, kind, nil) }
func (w watched) close() *call                 { return w.l.submit(w.file, backend.Close, nil) }

// descriptor returns c's descriptor. c still owns it.
func descriptor(d *driver, c syscall.Conn) (fd int) {
	d.Helper()
	rc, err := c.SyscallConn()
	if err == nil {
		err = rc.Control(func(number uintptr) { fd = int(number) })
	}
	if err != nil {
		d.Fatal(err)
	}
	return fd
}

func (l *loop) watch(c syscall.Conn) watched {
	l.Helper()
	f, err := l.b.Watch(descriptor(l.driver, c))
	if err != nil {
		l.Fatalf("Watch: %v", err)
	}
	return watched{l, f}
}

// polling runs test on a loop if its backend can watch descriptors. If it cannot, Watch
// must return errors.ErrUnsupported.
func polling(test func(l *loop)) func(d *driver) {
	return func(d *driver) {
		l := d.loop()
		r, _ := pipe(d)
		f, err := l.b.Watch(descriptor(d, r))
		if errors.Is(err, errors.ErrUnsupported) {
			return
		}
		if err != nil || f == 0 {
			d.Fatalf("Watch: File %x, %v", f, err)
		}
		l.ok(watched{l, f}.close())
		test(l)
	}
}

func pipe(d *driver) (r, w *os.File) {
	d.Helper()
	r, w, err := os.Pipe()
	if err != nil {
		d.Fatal(err)
	}
	d.Cleanup(func() { r.Close(); w.Close() })
	return r, w
}

// found is ok for a poll that must find want.
func (l *loop) found(c *call, want int) {
	l.Helper()
	if l.ok(c); c.n != want {
		l.Fatalf("%v found %b, want %b", c, c.n, want)
	}
}

// none checks that a poll still waits after some turns.
func (l *loop) none(c *call) {
	l.Helper()
	l.turnFor(3)
	if !c.flying {
		l.Fatalf("%v completed although no condition holds: %b, %v", c, c.n, c.err)
	}
}

// seamPollPipe: a poll reports a pipe's state, not its events.
func seamPollPipe(l *loop) {
	r, w := pipe(l.driver)
	in, out := l.watch(r), l.watch(w)
	l.found(out.poll(backend.PollOut), backend.Writable)
	waiting := in.poll(backend.PollIn)
	l.none(waiting)
	write(l, w, 10)
	l.found(waiting, backend.Readable)
	for range 3 { // as long as it holds
		l.found(in.poll(backend.PollIn), backend.Readable)
	}
	read(l, r, 10)
	waiting = in.poll(backend.PollIn)
	l.none(waiting)

	// A full pipe, and one that is read from.
	much, n := make([]byte, 4<<20), 0
	var err error
	for n == 0 && (err == nil || errors.Is(err, os.ErrDeadlineExceeded)) { // the deadline may pass before the first byte
		w.SetWriteDeadline(time.Now().Add(10 * time.Millisecond))
		n, err = w.Write(much)
	}
	if !errors.Is(err, os.ErrDeadlineExceeded) {
		l.Fatalf("filling a pipe: %d bytes, %v", n, err)
	}
	l.found(waiting, backend.Readable)
	full := out.poll(backend.PollOut)
	l.none(full)
	read(l, r, n)
	l.found(full, backend.Writable)

	// The other end closes.
	waiting = in.poll(backend.PollIn)
	l.none(waiting)
	l.ok(out.close()) // it has a duplicate
	w.Close()
	l.found(waiting, backend.Readable)
	l.found(in.poll(backend.PollIn), backend.Readable)
	l.ok(in.close())

	r, w = pipe(l.driver)
	out = l.watch(w)
	r.Close()
	l.found(out.poll(backend.PollOut), backend.Writable)
}

func write(l *loop, w *os.File, n int) {
	l.Helper()
	if _, err := w.Write(make([]byte, n)); err != nil {
		l.Fatal(err)
	}
}

func read(l *loop, r *os.File, n int) {
	l.Helper()
	for n > 0 {
		k, err := r.Read(make([]byte, n))
		if err != nil {
			l.Fatal(err)
		}
		n -= k
	}
}

// seamPollBoth: a socket is polled for reading, writing or both. A poll reports only
// what it asked for.
func seamPollBoth(l *loop) {
	ln, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		l.Fatal(err)
	}
	defer ln.Close()
	near, err := net.Dial("tcp", ln.Addr().String())
	if err != nil {
		l.Fatal(err)
	}
	defer near.Close()
	far, err := ln.Accept()
	if err != nil {
		l.Fatal(err)
	}
	defer far.Close()
	s := l.watch(near.(*net.TCPConn))
	waiting := s.poll(backend.PollIn)
	l.none(waiting)
	waiting.cancel()
	l.wait(waiting)
	if waiting.err != backend.ErrCanceled {
		l.Fatalf("%v after Cancel: %v", waiting, waiting.err)
	}
	l.found(s.poll(backend.PollBoth), backend.Writable)
	far.Write([]byte("x"))
	l.found(s.poll(backend.PollIn), backend.Readable)
	l.found(s.poll(backend.PollBoth), backend.Readable|backend.Writable)
	l.found(s.poll(backend.PollOut), backend.Writable)
	near.Read(make([]byte, 1))
	waiting = s.poll(backend.PollIn)
	l.none(waiting)
	closed := s.close()
	l.ok(closed)
	l.closedBy(waiting)
	// The owner's socket still works.
	near.Write([]byte("y"))
	if n, err := far.Read(make([]byte, 1)); n != 1 || err != nil {
		l.Fatalf("after its File was closed: %d bytes, %v", n, err)
	}
	late := s.poll(backend.PollIn)
	l.wait(late)
	if !errors.Is(late.err, backend.ErrClosed) {
		l.Fatalf("Poll on a stale File: %v", late.err)
	}
}

// seamPollKeepsItsOwn: a File keeps its descriptor when the original is closed and its
// number is reused.
func seamPollKeepsItsOwn(l *loop) {
	r, w := pipe(l.driver)
	in := l.watch(r)
	waiting := in.poll(backend.PollIn)
	l.turnFor(2)
	r.Close()
	for range 5 { // one of them gets r's number
		_, w := pipe(l.driver)
		write(l, w, 1)
	}
	l.none(waiting)
	write(l, w, 1)
	l.found(waiting, backend.Readable)
	again := in.poll(backend.PollIn)
	l.found(again, backend.Readable)
	// Two Files of one descriptor.
	r, w = pipe(l.driver)
	one, two := l.watch(r), l.watch(r)
	first, second := one.poll(backend.PollIn), two.poll(backend.PollIn)
	l.none(first)
	write(l, w, 1)
	l.found(first, backend.Readable)
	l.found(second, backend.Readable)
}

// seamPollMany: polls of ready descriptors complete, the others do not.
func seamPollMany(l *loop) {
	const pipes = 40
	var ws []*os.File
	var polls []*call
	for range pipes {
		r, w := pipe(l.driver)
		ws = append(ws, w)
		polls = append(polls, l.watch(r).poll(backend.PollIn))
	}
	l.turnFor(2)
	for i := 0; i < pipes; i += 3 {
		write(l, ws[i], 1)
	}
	for i := 0; i < pipes; i += 3 {
		l.found(polls[i], backend.Readable)
	}
	l.turnFor(2)
	for i, p := range polls {
		if p.flying != (i%3 != 0) {
			l.Fatalf("poll %d: in flight %v", i, p.flying)
		}
	}
	// Closing the backend ends the rest.
}

// seamPollRefused: a descriptor that cannot be watched is refused at once.
func seamPollRefused(l *loop) {
	name := filepath.Join(l.TempDir(), "file")
	if err := os.WriteFile(name, []byte("data"), 0o600); err != nil {
		l.Fatal(err)
	}
	for _, path := range []string{name, filepath.Dir(name)} {
		file, err := os.Open(path)
		if err != nil {
			l.Fatal(err)
		}
		defer file.Close()
		if f, err := l.b.Watch(descriptor(l.driver, file)); !errors.Is(err, syscall.EPERM) {
			l.Fatalf("Watch of %s: File %x, %v; want EPERM", path, f, err)
		}
	}
	for _, fd := range []int{-1, 1 << 20} {
		if f, err := l.b.Watch(fd); !errors.Is(err, syscall.EBADF) {
			l.Fatalf("Watch of descriptor %d: File %x, %v; want EBADF", fd, f, err)
		}
	}
}
