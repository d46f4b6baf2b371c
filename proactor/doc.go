// Package proactor lets goroutines do I/O by completions, on rondo's loops: submit
// reads and writes of many connections to a Queue, and wait for what became of them,
// many at a time.
//
//	q, err := proactor.New(&rondo.Engine{}, proactor.Options{})
//	q.Read(conn, nil, nil) // any net.Conn
//	for {
//		results, err := q.Wait(ctx)
//		for _, r := range results {
//			// r.Kind, r.Conn, r.Buf[:r.N], r.Err
//		}
//	}
//
// It is for programs that own their goroutines and have connections already: one
// goroutine can serve thousands, with no callbacks and no goroutine each.
//
// # Delegation
//
// The first operation on a connection gives it to the queue's engine, as
// Engine.Attach does: a *net.TCPConn or *net.UnixConn is closed, and a duplicate of
// its descriptor served, socket options kept; any other net.Conn, such as a
// *tls.Conn, is served through its methods. The net.Conn is from then on the name of
// the connection and nothing else. Free ends it. A *net.TCPConn or *net.UnixConn that
// the program has forgotten is freed by the garbage collector, but not on backend
// "std", which needs the object itself; and so is a Queue.
//
// # Order
//
// The reads of a connection are done in the order they were submitted, and so are its
// writes; a read and a write do not wait for each other. An operation that is
// cancelled, or whose deadline passes, completes out of order while it is not the
// first.
//
// An operation that can be done at once, with nothing of its connection and direction
// before it, is done by the goroutine that submits it, without the loop; Wait has its
// result too. Engine.Stats counts what loops do.
//
// While no read of a connection is submitted nothing is read from it, so its peer
// is held up: a relay that submits a read when the write has completed is bounded.
//
// # What this package is not
//
// For a protocol that a Handler can serve on the loop it is the dearer way: each
// completion goes from the loop to a goroutine, and each submission back.
package proactor
