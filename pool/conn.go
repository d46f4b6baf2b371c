package pool

import (
	"errors"
	"net"
	"time"

	"github.com/rondo-go/rondo"
	"github.com/rondo-go/rondo/coro"
)

// A Conn is a connection of a Pool, and from Get or Borrow to Put or Discard its
// borrower's, who has to call one of these, also if the connection has closed
// meanwhile.
type Conn struct {
	// Value is what goes with the connection from borrower to borrower: the state of
	// its protocol, a bufio.Reader of its NetConn. The pool does not look at it.
	Value any

	pool  *Pool
	conn  *rondo.Conn
	nc    net.Conn // for coroutines, once one asked for it
	state state
	at    int // in Pool.live

	limits  rondo.Limits // of the connection, when it was ready
	filters int          // how many it had then

	since time.Time // idle

	timer *rondo.Timer // limits Setup and Check
	done  func(error)  // what they call
}

// A connection is set up, then put back for the first time; then idle, or with a
// borrower, or looked at by Check; and gone once it begins to close.
//
//	setUpDue → settingUp → returned → idle → borrowed → returned …
//	                                   └→ checkDue → checking → returned
type state uint8

const (
	setUpDue state = iota
	settingUp
	returned // by Setup, Check or a borrower; settle has a look at it
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

// Conn is the connection itself. Its borrower sets its Handler, of which no method is
// called any more after Put or Discard; until then what comes is kept. Put ends what
// the borrower has set: deadlines, Want, Pause, and limits, which are as Setup left
// them. Options of the socket (by Control) stay. A connection whose borrower has put
// filters on it is not lent again. It must not be moved or detached.
func (c *Conn) Conn() *rondo.Conn { return c.conn }

// NetConn is the connection as coroutines see it. It is the same for each borrower;
// between two of them its methods fail.
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

// Put gives the connection back, when its borrower has had all that the peer had to
// say; from within Data too, for the bytes that Data then reports. If there are more,
// or if the connection has closed, it is not lent again. Put panics if nobody has
// borrowed the connection.
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

// ready notes what Put restores.
func (c *Conn) ready() {
	c.limits, c.filters = c.conn.Limits(), c.stages()
}

// stages is how many filters the connection has.
func (c *Conn) stages() (n int) {
	for range c.conn.Filters() {
		n++
	}
	return n
}

// clean reports whether the next borrower finds a connection as the last one did.
func (c *Conn) clean() bool { return c.conn.Reusable() && c.stages() <= c.filters }

// Discard gives the connection back to be closed: who is not sure what the peer will
// say next must not Put it.
func (c *Conn) Discard() {
	if c.endLoan("Discard") {
		c.pool.stats.Discarded++
		c.close()
	}
}

// endLoan reports whether there is a connection to be given back: false after
// Discard, or if the pool has closed it.
func (c *Conn) endLoan(method string) bool {
	if c.state != borrowed && c.state != gone {
		panic("pool: " + method + " of a connection that is not borrowed: it was given back before, or is with Setup or Check, which call done")
	}
	return c.state == borrowed
}

// close ends the connection, whoever has it.
func (c *Conn) close() {
	c.pool.drop(c)
	c.end()
	c.pool.balance()
}

// end closes it for the pool, which has forgotten it. Nobody else hears of that.
func (c *Conn) end() {
	c.conn.SetHandler((*keeper)(c))
	c.conn.Close()
}

// drop forgets a connection that is to close.
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

// A keeper is a Conn as the Handler of its connection while no borrower has set one.
type keeper Conn

// Data closes a connection that has something to say while nobody listens. What a
// borrower will want is kept.
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

// EOF implements rondo.EOFHandler: the peer wants to close.
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

// lost closes a connection that its peer has done away with.
func (c *Conn) lost() {
	c.pool.stats.Lost++
	c.close()
}

// unclean closes one that a borrower should not have put back.
func (c *Conn) unclean() {
	c.pool.stats.Discarded++
	c.close()
}
