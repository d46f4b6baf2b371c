// Package coro serves connections on an event loop with straight-line code: a
// coroutine reads and writes a net.Conn as if it blocked, and runs on the connection's
// loop all the same.
//
//	rondo.Serve("tcp://:5000", coro.Handler(func(co *coro.Co, c net.Conn) error {
//		_, err := io.Copy(c, c)
//		return err
//	}))
//
// Where a coroutine has to wait the loop goes on with the others, and comes back to it
// when there is something for it. So the coroutines of a loop never run at the same
// time, and share what they like without a mutex.
//
// # What blocks
//
// A coroutine waits by the methods of Co and of its connections, and by those alone.
// What blocks otherwise stops the whole loop: a channel, time.Sleep, a query, an
// ordinary connection. Await is for that, and AwaitOn with a pool of goroutines. A mutex must not be held while a coroutine
// waits if another coroutine of its loop locks it. runtime.LockOSThread must not be
// called in a coroutine.
//
// # What it costs
//
// To wait and be resumed takes some 100 ns, and no allocation. A coroutine is a
// goroutine to the runtime, and so has a stack, of 2 KiB at first; docs/design.md has
// the figures.
//
// # The files
//
//	co.go         Handler, NetConn, Co and its methods
//	await.go      Await, AwaitOn
//	cond.go       Cond
//	conn.go       the connection as coroutines see it
//	read.go       its Read, WriteTo and ReadFrom
//	write.go      its Write
//	deadline.go   its deadlines
//	dial.go       Co.Dial
//	switch.go     how a coroutine is resumed, waits and ends
//	queue.go      the queue of coroutines ready to run
//	misuse.go     calls from elsewhere
//	stuck.go      a loop that stands still: who looks, and goes on with it
//	traces.go     what stack traces tell of coroutines and mutexes
package coro
