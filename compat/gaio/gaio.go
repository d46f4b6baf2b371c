// Package gaio has the API of github.com/xtaci/gaio v1.2.34, with the same
// names and the same meaning, on rondo's loops. A program changes one import.
//
// A Watcher is a proactor.Queue on an engine with one loop. For new code use
// package proactor, which also has vectored writes, cancellation, bounds,
// several loops, and connections without a descriptor.
//
// # What differs
//
// A Watcher has one goroutine. The original has one that polls and one that
// reads and writes. SetLoopAffinity pins the one goroutine; SetPollerAffinity
// has no effect. A connection ended by Free, Close or the garbage collector is
// closed in order: written bytes are delivered, for at most five seconds.
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
	// ErrNoRawConn is never returned. The original does not return it either.
	ErrNoRawConn = errors.New("net.Conn does implement net.RawConn")
	// ErrWatcherClosed is the error of using a Watcher after Close.
	ErrWatcherClosed = errors.New("watcher closed")
	// ErrPollerClosed is the error of SetPollerAffinity after Close.
	ErrPollerClosed = errors.New("poller closed")
	// ErrConnClosed is the error of SetLoopAffinity after Close.
	ErrConnClosed = errors.New("connection closed")
	// ErrDeadline is the error of an operation that its deadline ended.
	ErrDeadline = errors.New("operation exceeded deadline")
	// ErrEmptyBuffer is the error of a Write or ReadFull with an empty buffer.
	ErrEmptyBuffer = errors.New("empty buffer")
	// ErrCPUID is the error of an affinity to a CPU that does not exist.
	ErrCPUID = errors.New("no such core")
)

// OpType is the kind of an operation.
type OpType int

// The kinds of operations. ReadFull is an OpRead.
const (
	OpRead OpType = iota
	OpWrite
)

// An OpResult is the outcome of an operation. Buffer[:Size] was read or
// written.
type OpResult struct {
	Operation    OpType
	Context      any
	Conn         net.Conn
	Buffer       []byte // the submitted one, or one of the Watcher's, valid until the next WaitIO
	IsSwapBuffer bool   // Buffer belongs to the Watcher
	Size         int
	Error        error
}

// A Watcher does I/O for goroutines. Any goroutine may call its methods, but
// only one at a time may call WaitIO.
type Watcher struct{ *watcher }

// watcher is the part of a Watcher that remains when the garbage collector has
// found the Watcher unreachable.
type watcher struct {
	engine  *rondo.Engine
	loop    *rondo.Loop
	queue   *proactor.Queue
	results []OpResult
	dropped runtime.Cleanup // ends the watcher when the program drops the Watcher
}

const defaultInternalBufferSize = 64 << 10

// NewWatcher makes a Watcher with swap buffers of 64 KiB.
func NewWatcher() (*Watcher, error) { return NewWatcherSize(defaultInternalBufferSize) }

// NewWatcherSize makes a Watcher with three swap buffers of bufsize bytes.
// While the program holds all of them, reads into swap buffers wait.
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
	w.dropped = runtime.AddCleanup(wrapper, (*watcher).end, w)
	return wrapper, nil
}

// choose refuses the connections that the original refuses.
func (w *watcher) choose(nc net.Conn) (*rondo.Loop, error) {
	if _, ok := nc.(syscall.Conn); !ok {
		return nil, ErrUnsupported
	}
	return w.loop, nil
}

// Read submits a read into buf, or into a swap buffer if buf is nil.
func (w *Watcher) Read(ctx any, conn net.Conn, buf []byte) error {
	return w.ReadTimeout(ctx, conn, buf, time.Time{})
}

// ReadTimeout is Read with a deadline.
func (w *Watcher) ReadTimeout(ctx any, conn net.Conn, buf []byte, deadline time.Time) error {
	return w.submit(proactor.Op{Kind: proactor.Read, Conn: conn, Buf: buf, Value: ctx, Deadline: deadline})
}

// ReadFull submits a read that fills buf. The zero deadline means none.
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

// translate returns the original's error for an error of a submission.
func translate(err error) error {
	switch {
	case err == nil:
		return nil
	case errors.Is(err, proactor.ErrClosed):
		return ErrWatcherClosed
	}
	return ErrUnsupported
}

// Free closes the connection. Operations under way complete with
// io.ErrClosedPipe.
func (w *Watcher) Free(conn net.Conn) error {
	defer runtime.KeepAlive(w)
	if conn == nil {
		return ErrUnsupported
	}
	return translate(w.queue.Free(conn))
}

// WaitIO waits for results and returns them. They are valid until the next
// call.
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
	w.dropped.Stop() // the runtime keeps what a cleanup refers to
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

// SetPollerAffinity checks its argument, and that the Watcher is open, and does
// nothing else: no goroutine only polls. SetLoopAffinity pins the goroutine
// that does everything.
func (w *Watcher) SetPollerAffinity(cpuid int) error {
	defer runtime.KeepAlive(w)
	return w.pinnable(cpuid, ErrPollerClosed)
}

// SetLoopAffinity binds the Watcher's goroutine to a thread, and the thread to
// a CPU. A goroutine bound to a thread passes on results more slowly: the
// system switches threads each time, instead of Go's scheduler switching
// goroutines.
func (w *Watcher) SetLoopAffinity(cpuid int) error {
	defer runtime.KeepAlive(w)
	if err := w.pinnable(cpuid, ErrConnClosed); err != nil {
		return err
	}
	// Ignore the error of a system that cannot pin: the Watcher works anyway.
	if w.loop.Post(func() { w.loop.Pin(cpuid) }) != nil {
		return ErrConnClosed
	}
	return nil
}

// pinnable returns the reason why the Watcher cannot be pinned to a CPU, or
// nil.
func (w *watcher) pinnable(cpuid int, closed error) error {
	switch {
	case cpuid < 0 || cpuid >= runtime.NumCPU():
		return ErrCPUID
	case w.queue.Closed():
		return closed
	}
	return nil
}

// GetGC returns the number of connections that the garbage collector found
// unreachable, and how many of them have been closed.
func (w *Watcher) GetGC() (found, closed uint32) {
	defer runtime.KeepAlive(w)
	f, c := w.queue.Forgotten()
	return uint32(f), uint32(c)
}
