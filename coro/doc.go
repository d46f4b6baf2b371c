// Package coro serves connections on an event loop with straight-line code: a
// coroutine reads and writes a net.Conn as if it blocked, and still runs on the
// connection's loop.
//
//	rondo.Serve("tcp://:5000", coro.Handler(func(co *coro.Co, c net.Conn) error {
//		_, err := io.Copy(c, c)
//		return err
//	}))
//
// While a coroutine waits, the loop serves the others; it resumes the coroutine when
// there is something for it. The coroutines of a loop never run at the same time, so they
// share data without a mutex.
//
// # What blocks
//
// A coroutine waits only in the methods of Co and of its connections. Everything else
// that blocks stops the whole loop: a channel, time.Sleep, a query, an ordinary
// connection. Run such calls with Await, or with AwaitOn on a pool of goroutines. A
// coroutine must not hold a mutex while it waits if another coroutine of its loop locks
// that mutex. A coroutine must not call runtime.LockOSThread.
//
// # What it costs
//
// A wait and the resume after it take about 100 ns and allocate nothing. To Go's runtime
// a coroutine is a goroutine, so it has a stack, of 2 KiB at first; docs/design.md has
// the figures.
//
// # The files
//
//	co.go         Handler, NetConn, Co and its methods
//	await.go      Await, AwaitOn
//	cond.go       Cond
//	conn.go       the net.Conn that coroutines use
//	read.go       its Read, WriteTo and ReadFrom
//	write.go      its Write
//	deadline.go   its deadlines
//	dial.go       Co.Dial
//	switch.go     how a coroutine is resumed, waits and ends
//	queue.go      the queue of coroutines ready to run
//	misuse.go     calls from the wrong goroutine
//	stuck.go      the watcher that frees a loop whose coroutines wait for each other
//	traces.go     finds coroutines and mutexes in stack traces
package coro
