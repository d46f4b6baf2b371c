// Package gaio is the API of github.com/xtaci/gaio v1.2.34 on rondo's loops, under
// the same names and with the same meaning: a program changes one import.
//
// A Watcher is a proactor.Queue on an engine of one loop. New code does better with
// package proactor itself, which has more: vectored writes, cancelling, bounds,
// several loops, connections without a descriptor.
//
// # What differs
//
// A Watcher has one goroutine, where the original has one that polls and one that
// reads and writes: SetLoopAffinity pins it, and SetPollerAffinity nothing. A
// connection that Free, Close or the garbage collector ends is closed in order: what
// was written is delivered, for at most five seconds.
package gaio

import (
	"context"
	"errors"
	"io"
	"net"
	"os"
	"runtime"
	"syscall"
	"time"

	"github.com/rondo-go/rondo"
	"github.com/rondo-go/rondo/proactor"
)

var (
	// ErrUnsupported is the error of a connection that is nil or has no descriptor.
	ErrUnsupported = errors.New("unsupported connection type")
	// ErrNoRawConn is never returned, as by the original.
	ErrNoRawConn = errors.New("net.Conn does implement net.RawConn")
	// ErrWatcherClosed is the error of using a Watcher after Close.
	ErrWatcherClosed = errors.New("watcher closed")
	// ErrPollerClosed is the error of SetPollerAffinity after Close.
	ErrPollerClosed = errors.New("poller closed")
	// ErrConnClosed is the error of SetLoopAffinity after Close.
	ErrConnClosed = errors.New("connection closed")
	// ErrDeadline is the error of an operation that its deadline ended.
	ErrDeadline = errors.New("operation exceeded deadline")
	// ErrEmptyBuffer is the error of writing nothing, and of reading nothing in full.
	ErrEmptyBuffer = errors.New("empty buffer")
	// ErrCPUID is the error of an affinity to a CPU that there is not.
	ErrCPUID = errors.New("no such core")
)

// OpType is what an operation does.
type OpType int

// The kinds of operations. ReadFull is an OpRead.
const (
	OpRead OpType = iota
	OpWrite
)

// An OpResult is what became of an operation. Buffer[:Size] was read or written.
type OpResult struct {
	Operation    OpType
	Context      any
	Conn         net.Conn
	Buffer       []byte // the submitted one; or, until the next WaitIO, the Watcher's
	IsSwapBuffer bool   // Buffer is the Watcher's
	Size         int
	Error        error
}

// A Watcher does I/O for goroutines. Any of them may call its methods, but WaitIO is
// for one at a time.
type Watcher struct{ *watcher }

// watcher is what is left when the garbage collector has found a Watcher forgotten.
type watcher struct {
	engine  *rondo.Engine
	loop    *rondo.Loop
	queue   *proactor.Queue
	results []OpResult
}

const defaultInternalBufferSize = 64 << 10

// NewWatcher makes a Watcher with swap buffers of 64 KiB.
func NewWatcher() (*Watcher, error) { return NewWatcherSize(defaultInternalBufferSize) }

// NewWatcherSize makes a Watcher with swap buffers of bufsize bytes, three of them.
// While all of these are with the program, reads into them wait.
func NewWatcherSize(bufsize int) (*Watcher, error) {
	w := &watcher{engine: &rondo.Engine{NumLoops: 1}}
	q, err := proactor.New(w.engine, proactor.Options{Limit: -1, Lend: 3 * bufsize, Choose: w.choose})
	if err != nil {
		return nil, err
	}
	w.queue = q
	for l := range w.engine.Loops() {
		w.loop = l
	}
	wrapper := &Watcher{w}
	runtime.AddCleanup(wrapper, (*watcher).end, w)
	return wrapper, nil
}

// choose refuses connections that the original refuses.
func (w *watcher) choose(nc net.Conn) (*rondo.Loop, error) {
	if _, ok := nc.(syscall.Conn); !ok {
		return nil, ErrUnsupported
	}
	return w.loop, nil
}

// Read submits a read into buf, or if that is nil into a swap buffer.
func (w *Watcher) Read(ctx any, conn net.Conn, buf []byte) error {
	return w.ReadTimeout(ctx, conn, buf, time.Time{})
}

// ReadTimeout is Read with a deadline.
func (w *Watcher) ReadTimeout(ctx any, conn net.Conn, buf []byte, deadline time.Time) error {
	return w.submit(proactor.Op{Kind: proactor.Read, Conn: conn, Buf: buf, Value: ctx, Deadline: deadline})
}

// ReadFull submits a read that fills buf. The zero deadline is none.
func (w *Watcher) ReadFull(ctx any, conn net.Conn, buf []byte, deadline time.Time) error {
	if len(buf) == 0 {
		return ErrEmptyBuffer
	}
	return w.submit(proactor.Op{Kind: proactor.ReadFull, Conn: conn, Buf: buf, Value: ctx, Deadline: deadline})
}

// Write submits a write of all of buf.
func (w *Watcher) Write(ctx any, conn net.Conn, buf []byte) error {
	return w.WriteTimeout(ctx, conn, buf, time.Time{})
}

// WriteTimeout is Write with a deadline.
func (w *Watcher) WriteTimeout(ctx any, conn net.Conn, buf []byte, deadline time.Time) error {
	if len(buf) == 0 {
		return ErrEmptyBuffer
	}
	return w.submit(proactor.Op{Kind: proactor.Write, Conn: conn, Buf: buf, Value: ctx, Deadline: deadline})
}

func (w *Watcher) submit(o proactor.Op) error {
	defer runtime.KeepAlive(w)
	_, err := w.queue.Submit(o)
	return translate(err)
}

// translate tells the errors of a submission by the original's names.
func translate(err error) error {
	switch {
	case err == nil:
		return nil
	case errors.Is(err, proactor.ErrClosed):
		return ErrWatcherClosed
	}
	return ErrUnsupported
}

// Free closes the connection. What is under way completes with io.ErrClosedPipe.
func (w *Watcher) Free(conn net.Conn) error {
	defer runtime.KeepAlive(w)
	if conn == nil {
		return ErrUnsupported
	}
	return translate(w.queue.Free(conn))
}

// WaitIO waits for results. They are valid until the next call.
func (w *Watcher) WaitIO() ([]OpResult, error) {
	defer runtime.KeepAlive(w)
	clear(w.results)
	w.results = w.results[:0]
	batch, err := w.queue.Wait(context.Background())
	if err != nil {
		return nil, ErrWatcherClosed
	}
	for i := range batch {
		r := &batch[i]
		one := OpResult{Context: r.Value, Conn: r.Conn, Buffer: r.Buf, IsSwapBuffer: r.Lent, Size: r.N, Error: r.Err}
		if r.Kind == proactor.Write {
			one.Operation = OpWrite
		}
		switch {
		case r.Err == nil:
		case r.Err == os.ErrDeadlineExceeded:
			one.Error = ErrDeadline
		case r.Err == io.ErrUnexpectedEOF:
			one.Error = io.EOF
		}
		w.results = append(w.results, one)
	}
	return w.results, nil
}

// Close ends the Watcher and its connections. It may be called again.
func (w *Watcher) Close() error {
	w.end()
	return nil
}

func (w *watcher) end() {
	w.queue.Close()
	go func() {
		ctx, cancel := context.WithTimeout(context.Background(), rondo.DefaultLinger)
		defer cancel()
		w.engine.Shutdown(ctx)
	}()
}

// SetPollerAffinity checks its argument, and that the Watcher is open. There is
// no goroutine that only polls: SetLoopAffinity pins the one that does everything.
func (w *Watcher) SetPollerAffinity(cpuid int) error {
	defer runtime.KeepAlive(w)
	return w.pinnable(cpuid, ErrPollerClosed)
}

// SetLoopAffinity pins the Watcher's goroutine to a thread, and that to a CPU. A
// goroutine with a thread of its own is slower to hand results over: the system
// switches threads each time, where Go's scheduler switches goroutines.
func (w *Watcher) SetLoopAffinity(cpuid int) error {
	defer runtime.KeepAlive(w)
	if err := w.pinnable(cpuid, ErrConnClosed); err != nil {
		return err
	}
	// Where the system cannot do it the Watcher works all the same.
	if w.loop.Post(func() { w.loop.Pin(cpuid) }) != nil {
		return ErrConnClosed
	}
	return nil
}

// pinnable tells why the Watcher cannot be pinned to a CPU.
func (w *watcher) pinnable(cpuid int, closed error) error {
	switch {
	case cpuid < 0 || cpuid >= runtime.NumCPU():
		return ErrCPUID
	case w.queue.Closed():
		return closed
	}
	return nil
}

// GetGC tells how many forgotten connections the garbage collector has found, and how
// many of them have been closed.
func (w *Watcher) GetGC() (found, closed uint32) {
	defer runtime.KeepAlive(w)
	f, c := w.queue.Forgotten()
	return uint32(f), uint32(c)
}
