// Package proactor lets goroutines do I/O by completions on rondo's loops.
// Submit reads and writes of many connections to a Queue, and wait for their
// results in batches.
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
// It is for programs that own their goroutines and already have connections.
// One goroutine can serve thousands of connections, without callbacks.
//
// # Delegation
//
// The first operation on a connection attaches it to the queue's engine, as
// Engine.Attach does. For a *net.TCPConn or *net.UnixConn the engine serves a
// duplicate of the descriptor, with the same socket options, and closes the
// original. For any other net.Conn, such as a *tls.Conn, it calls the
// connection's methods. From then on the net.Conn only names the connection.
// Free ends it. If the program drops all references to a *net.TCPConn or
// *net.UnixConn, the garbage collector frees it, except on backend "std", which
// needs the object itself. The garbage collector also closes an unreachable
// Queue.
//
// # Order
//
// The reads of a connection complete in the order they were submitted, and so
// do its writes. Reads and writes do not wait for each other. An operation that
// is canceled or misses its deadline completes out of order, unless it is the
// first in line. After a write has failed, later writes of the connection fail
// too. Reads still return what the peer had sent, for the engine's Linger at
// most.
//
// The submitting goroutine does an operation itself, without the loop, if the
// system can do it at once and nothing of the same connection and direction is
// queued before it. Wait still returns the result. Engine.Stats counts the
// loops' work only.
//
// While no read of a connection is submitted, nothing is read from it, and TCP
// stops its peer. So a relay that submits a read only when the write has
// completed holds a bounded number of bytes.
//
// # What this package is not
//
// For a protocol that a Handler can serve on the loop, this package costs more:
// each completion goes from the loop to a goroutine, and each submission back.
package proactor
