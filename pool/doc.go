// Package pool lends connections to a server, of which a loop keeps some open: to a
// database, a cache, another service.
//
//	p := pool.New(loop, pool.Config{Network: "tcp", Address: "db:5432", MaxLive: 8})
//	p.Get(func(c *pool.Conn, err error) {
//		if err != nil {
//			return
//		}
//		c.Conn().SetHandler(reply) // which calls c.Put when it has the whole of it
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
// A Pool belongs to a loop, as its connections do, and so takes no lock; none of its
// methods, and none of a Conn's, may be called elsewhere. With several loops each has
// one of its own, made when it is first asked for:
//
//	pools := rondo.LoopLocal[*pool.Pool]{New: func(l *rondo.Loop) *pool.Pool {
//		return pool.New(l, config)
//	}}
//	pools.Get(c.Loop()).Get(…)
//
// MaxLive then counts for each loop.
//
// # What becomes of a connection
//
// It is dialed when somebody wants it or MinIdle asks for it, then Setup has it. From
// then on it is idle, or borrowed, or being looked at by Check. One that was put back
// is idle at the end of the loop's turn, if nothing is left of the conversation that
// it served: received bytes that nobody consumed mean that question and answer have
// got out of step, and the connection is closed. So is an idle one that receives
// something, that is idle for too long, or whose peer closes it.
//
// Waiters are served first come, first served, by the next connection that is put back
// or new. If a dial fails, so does the waiter that it
// was begun for: with the dial's error, although another connection might still have
// come back.
//
// # What this package is not
//
// It knows no protocol, and one address; it does not balance. It does not multiplex
// either: a connection is one borrower's at a time.
package pool
