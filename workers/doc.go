// Package workers runs slow work of connections on a bounded number of goroutines, so
// that no loop waits for a query, a file or a long computation.
//
//	var pool workers.Pool
//
//	rondo.Serve("tcp://:5000", pool.Open(func(_ *rondo.Conn, q *workers.Queue) rondo.Handler {
//		return rondo.HandlerFunc(func(_ *rondo.Conn, in []byte) (n int, err error) {
//			for {
//				end := bytes.IndexByte(in[n:], '\n')
//				if end < 0 {
//					return n, nil
//				}
//				key := string(in[n : n+end]) // in is the loop's again when Data returns
//				if !q.Submit(func(ctx context.Context) ([]byte, error) { return lookup(ctx, key) }) {
//					return n, nil // full: Data is called again with the rest
//				}
//				n += end + 1
//			}
//		})
//	}))
//
// # Order
//
// The loop writes the answers of a connection in the order in which its work was
// submitted. The work starts in that order too, but runs concurrently, up to MaxPerConn
// functions. With a MaxPerConn of 1 it runs one function after another: the next starts
// when the last answer has been written. Connections take turns in the pool, so a
// connection with much work does not delay the others.
//
// Output that the Handler writes by Conn.Write goes out at once. Queue.Write keeps the
// order.
//
// # Backpressure
//
// A Queue is full when MaxPerConn functions of its connection are unanswered, when
// MaxQueue functions wait in the whole pool, or when the connection's output is full
// (Conn.Full). Then Submit refuses, and Data leaves the request in its input. The
// connection is not read until there is room; then Data is called with the rest.
// Connections that wait for room in the pool are served first come, first served. If a
// peer does not read, its answers wait too, and count toward MaxPerConn until they are
// written.
//
// So a pool holds at most MaxWorkers plus MaxQueue functions, and a connection at most
// MaxPerConn answers.
//
// # The end of a connection
//
// If a peer ends its stream and waits (half-close, as in printf … | nc -N), it gets every
// answer. Then the connection closes, or the Handler's EOF is called if it has one. The
// same holds for an error that Data returns, for Queue.Close and for Engine.Shutdown: the
// answers to earlier work go first. A peer has Engine.Linger time to take them.
//
// A connection that closes in another way drops its answers as soon as it begins to
// close. Queued work does not run, and the context of running work is canceled.
// Conn.Close, Detach and Move drop answers too. To close after the answers, use
// Queue.Close or return an error. To detach or move after them, call Detach or Move in
// the answer of the last work (see Queue.Do).
//
// Deadlines continue while work runs: Conn.SetIdle must allow for the slowest function.
//
// # Panics
//
// A function that panics, or calls runtime.Goexit, aborts its connection and nothing
// else. The Engine logs the panic with its stack and counts it, as it does for a Handler.
// Handler.Closed receives a *rondo.PanicError. With Engine.Repanic a panic ends the
// program.
//
// # What this package is not
//
// Coroutines do not need a Queue, since they can wait: coro.AwaitOn runs their functions
// through Pool.Go. A Pool has no queue across connections or restarts, and does not
// retry.
package workers
