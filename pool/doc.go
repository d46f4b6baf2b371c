// Package pool keeps connections to a server open on a loop and lends them. The
// server may be a database, a cache or another service.
//
//	p := pool.New(loop, pool.Config{Network: "tcp", Address: "db:5432", MaxLive: 8})
//	p.Get(func(c *pool.Conn, err error) {
//		if err != nil {
//			return
//		}
//		c.Conn().SetHandler(reply) // reply calls c.Put after the last byte of the answer
//		c.Conn().Write(query)
//	})
//
// In a coroutine, Borrow waits:
//
//	c, err := p.Borrow(co)
//	if err != nil {
//		return err
//	}
//	defer c.Put()
//	fmt.Fprintln(c.NetConn(), "PING")
//
// # One for each loop
//
// A Pool and its connections belong to a loop, so a Pool takes no lock. Call
// its methods, and those of its Conns, on that loop only. With several loops,
// give each its own Pool, made on first use:
//
//	pools := rondo.LoopLocal[*pool.Pool]{New: func(l *rondo.Loop) *pool.Pool {
//		return pool.New(l, config)
//	}}
//	pools.Get(c.Loop()).Get(…)
//
// MaxLive then applies to each loop.
//
// # The life of a connection
//
// The pool dials a connection when a borrower wants one or MinIdle asks for
// one, and passes it to Setup. From then on the connection is idle, borrowed,
// or being checked by Check. At the end of the loop's turn, the pool examines
// each connection that was put back. If its borrower left received bytes,
// requests and answers are out of step, and the pool closes the connection.
// Otherwise the connection is idle. The pool also closes an idle connection
// that receives something, is idle for too long, or is closed by its peer.
//
// Waiters are served first come, first served, by the first connection that is
// put back or newly made. If a dial fails, the waiter for which it was begun
// fails with the dial's error, even if another connection might still have come
// back.
//
// # What this package is not
//
// It knows no protocol, and only one address: it does not balance. It does not
// multiplex: a connection has one borrower at a time.
package pool
