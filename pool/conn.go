package pool

import (
	"errors"
	"net"
	"time"

	"github.com/rondo-go/rondo"
	"github.com/rondo-go/rondo/coro"
)

// A Conn is a connection of a Pool. It belongs to its borrower from Get or
// Borrow until Put or Discard. The borrower must call one of these, even if the
// connection has closed meanwhile.
type Conn struct {
	// Value stays with the connection from borrower to borrower, such as the
	// state of its protocol or a bufio.Reader of its NetConn. The pool does not
	// look at it.
	Value any

	pool  *Pool
	conn  *rondo.Conn
	nc    net.Conn // for coroutines, made on first use
	state state
	at    int // in Pool.live

	limits  rondo.Limits // of the connection, when it was ready
	filters int          // how many filters it had when it was ready

	since time.Time // when it became idle

	timer *rondo.Timer // for Setup and Check
	done  func(error)  // the function that they call
}

// A connection is set up, then put back for the first time. From then on it is
// idle, borrowed, or being checked by Check. It is gone once it is to close.
//
//	setUpDue → settingUp → returned → idle → borrowed → returned …
//	                                   └→ checkDue → checking → returned
type state uint8

const (
	setUpDue state = iota
	settingUp
	returned // by Setup, Check or a borrower; settle will examine it
	idle
	checkDue
	checking
	borrowed
	gone
)

var (
	errPatience = errors.New("it took longer than Patience")
	errEnded    = errors.New("the peer closed the connection")
)

// Conn returns the rondo.Conn. Its borrower sets its Handler; until then, input
// is kept. After Put or Discard no method of that Handler is called. Put resets
// what the borrower has set: deadlines, Want and Pause, and the limits, which
// become those that Setup left. It does not reset socket options (see Control).
// The pool does not lend a connection again if its borrower added filters. A
// borrower must not move or detach the connection.
func (c *Conn) Conn() *rondo.Conn { return c.conn }

// NetConn returns the connection for use in coroutines. It is the same net.Conn
// for every borrower. While nobody has borrowed the connection, its methods
// fail.
func (c *Conn) NetConn() net.Conn {
	lent := c.state == borrowed || c.state == settingUp || c.state == checking
	if c.nc == nil {
		c.nc = coro.NetConn(c.conn)
	}
	if h := c.nc.(rondo.Handler); lent && c.conn.Handler() != h {
		c.conn.SetHandler(h)
	} else if !lent {
		c.conn.SetHandler((*keeper)(c))
	}
	return c.nc
}

// Put returns the connection to the pool. Call it after the whole of the peer's
// answer. Put may be called within Data; the bytes that Data then returns as
// consumed count. If unconsumed bytes remain, or the connection has closed, the
// pool does not lend the connection again. Put panics if the connection is not
// borrowed.
func (c *Conn) Put() {
	if !c.endLoan("Put") {
		return
	}
	c.conn.SetHandler((*keeper)(c))
	c.conn.SetIdle(0)
	c.conn.CloseAt(time.Time{})
	c.conn.AbortUnsentAt(time.Time{})
	c.conn.SetLimits(c.limits)
	c.conn.Want(0)
	c.conn.Resume()
	if c.pool.closed {
		c.close()
	} else {
		c.pool.settleLater(c, returned)
	}
}

// ready records what Put restores.
func (c *Conn) ready() {
	c.limits, c.filters = c.conn.Limits(), c.stages()
}

// stages returns the number of the connection's filters.
func (c *Conn) stages() (n int) {
	for range c.conn.Filters() {
		n++
	}
	return n
}

// clean reports whether the next borrower finds the connection as the last one
// did.
func (c *Conn) clean() bool { return c.conn.Reusable() && c.stages() <= c.filters }

// Discard returns the connection to the pool, which closes it. Call it instead
// of Put if you are not sure what the peer will send next.
func (c *Conn) Discard() {
	if c.endLoan("Discard") {
		c.pool.stats.Discarded++
		c.close()
	}
}

// endLoan reports whether there is a connection to return. There is none after
// Discard, or after the pool has closed it.
func (c *Conn) endLoan(method string) bool {
	if c.state != borrowed && c.state != gone {
		panic("pool: " + method + " of a connection that is not borrowed: it was already returned, or Setup or Check uses it and must call done instead")
	}
	return c.state == borrowed
}

// close ends the connection in any state.
func (c *Conn) close() {
	c.pool.drop(c)
	c.end()
	c.pool.balance()
}

// end closes a connection that the pool has dropped. No borrower's Handler is
// called.
func (c *Conn) end() {
	c.conn.SetHandler((*keeper)(c))
	c.conn.Close()
}

// drop removes a connection that is to close.
func (p *Pool) drop(c *Conn) {
	switch c.state {
	case gone:
		return
	case idle:
		p.notIdle(c)
	case borrowed:
	default:
		p.busy--
	}
	if c.timer != nil {
		c.timer.Stop()
	}
	c.state = gone
	last := len(p.live) - 1
	p.live[c.at] = p.live[last]
	p.live[c.at].at = c.at
	p.live[last] = nil
	p.live = p.live[:last]
}

// A keeper is a Conn as the Handler of its connection, while no borrower has
// set one.
type keeper Conn

// Data closes a connection that receives something while no borrower listens.
// It keeps the input that a borrower, or Setup or Check, will read.
func (k *keeper) Data(_ *rondo.Conn, in []byte) (int, error) {
	c := (*Conn)(k)
	switch c.state {
	case idle, checkDue:
		c.lost()
	case returned:
		c.unclean()
	case gone:
	default:
		return 0, nil
	}
	return len(in), nil
}

// EOF implements rondo.EOFHandler: the peer has closed its side.
func (k *keeper) EOF(conn *rondo.Conn) {
	k.ended(errEnded)
	conn.Close()
}

// Closed implements rondo.Handler.
func (k *keeper) Closed(_ *rondo.Conn, err error) {
	if err == nil {
		err = errEnded
	}
	k.ended(err)
}

func (k *keeper) ended(err error) {
	switch c := (*Conn)(k); c.state {
	case idle, checkDue:
		c.lost()
	case returned:
		c.unclean()
	case setUpDue, settingUp, checking:
		c.finished(err)
	}
}

// lost closes a connection that its peer has ended.
func (c *Conn) lost() {
	c.pool.stats.Lost++
	c.close()
}

// unclean closes a connection that its borrower should not have put back.
func (c *Conn) unclean() {
	c.pool.stats.Discarded++
	c.close()
}
