// Package workers runs the slow work of connections, a query, a file, a long
// computation, on a bounded number of goroutines, so that no loop waits for it.
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
// The answers of a connection are written in the order in which its work was
// submitted, on its loop. Its work begins in that order too, but runs concurrently,
// up to MaxPerConn functions. With a MaxPerConn of 1 it runs one after another: the
// next begins when the answer of the last one has been given. Connections take turns
// in the pool: one that has submitted much does not delay the others.
//
// What the Handler writes by Conn.Write goes out at once. Queue.Write keeps the order.
//
// # Backpressure
//
// A Queue is full when MaxPerConn functions of its connection are unanswered, when
// the whole pool has MaxQueue waiting, or when the connection's own output is full
// (Conn.Full). Then Submit refuses, and Data leaves the request where it is: the
// connection is not read any more, and Data is called with the rest as soon as
// there is room. Connections that wait for room in the pool get it first come,
// first served. The answers of a peer that does not read wait as well, and count for
// MaxPerConn until they are written.
//
// So the pool holds MaxWorkers and MaxQueue functions at most, and a connection
// MaxPerConn answers.
//
// # The end of a connection
//
// A peer that ends its stream and waits (half-close, as in printf … | nc -N) gets
// every answer; then the connection closes, or the Handler's EOF is called if it
// has one. The same holds for an error that Data returns, for Queue.Close, and for
// Engine.Shutdown: answers of what was submitted before go first. A peer that does not
// take them has Engine.Linger time for it.
//
// A connection that closes otherwise drops its answers as soon as it begins to. Work that
// has not begun does not run, and the context of running work is canceled. Conn.Close
// drops them too: to answer first, use Queue.Close or return an error. So do Detach and
// Move: to leave when all is answered, call them in the answer of the last work (see
// Queue.Do).
//
// Deadlines go on while work runs: Conn.SetIdle must allow for the slowest function.
//
// # Panics
//
// A function that panics, or calls runtime.Goexit, aborts its connection and nothing
// else. The Engine logs the panic with its stack and counts it, as it does for a
// Handler; Handler.Closed is given a *rondo.PanicError. With Engine.Repanic a panic
// ends the program.
//
// # What this package is not
//
// Coroutines need none of its Queues, since they wait by themselves: Pool.Go runs their
// functions, by coro.AwaitOn. It keeps no queue across connections or restarts, and retries
// nothing.
package workers
