package pool

import (
	"errors"
	"fmt"
	"net"
	"os"
	"time"

	"github.com/rondo-go/rondo"
)

// Defaults of a Config's fields.
const (
	DefaultMaxLive    = 16
	DefaultMaxWaiters = 1024
	DefaultPatience   = 5 * time.Second
)

// Config says what a Pool is like. Network and Address must be given; the rest has
// defaults.
type Config struct {
	// Network and Address are what is dialed, as by Loop.Dial, with Socket's options,
	// DialTimeout among them.
	Network, Address string
	Socket           rondo.SocketOptions
	// Filters stand between wire and borrower, rtls.Client's for instance. A
	// connection is usable when they are ready.
	Filters []rondo.FilterOpenFunc

	// MaxLive is how many connections there may be, idle, borrowed and being made;
	// those that close do not count. 0: DefaultMaxLive.
	MaxLive int
	// MinIdle is how many idle ones the pool keeps, within MaxLive, so that a borrower
	// need not wait for a dial. While the server cannot be reached the pool tries at
	// growing intervals of 100 ms to 30 s.
	MinIdle int
	// IdleTime is how long a connection may be idle; then it is closed, and replaced
	// if MinIdle asks for it. 0: for ever.
	IdleTime time.Duration
	// MaxWaiters is how many may wait for others to give a connection back, beside
	// those for whom one is being made. Others get ErrFull at once. 0:
	// DefaultMaxWaiters. Negative: nobody.
	MaxWaiters int
	// MaxWait is how long one may wait, before ErrTimeout. 0: for ever.
	MaxWait time.Duration

	// Setup makes a new connection ready: it greets, or logs in. It is called on the
	// loop and may take its time, with handlers of its own; it ends with one call of
	// done. With an error the connection is closed, and the dial has failed. nil: a
	// connection is ready when it is made. Where the server speaks first, Setup hears it.
	Setup func(c *Conn, done func(error))
	// Check looks whether an idle connection still works, as Setup does, before it is
	// lent: it sends a ping, say. It is asked if the connection was idle for CheckAfter
	// or longer. One that is found not to is closed, and the borrower gets another. It
	// is not needed to notice that the peer has closed the connection: a loop hears of
	// that at once.
	Check      func(c *Conn, done func(error))
	CheckAfter time.Duration
	// Patience is how long Filters may take to get ready, once a connection is made, and
	// how long Setup, and Check, may take. 0: DefaultPatience.
	Patience time.Duration
}

var (
	// ErrClosed is the error of using a Pool that was closed, or whose loop has ended.
	// It is a net.ErrClosed.
	ErrClosed = fmt.Errorf("the pool is closed: %w", net.ErrClosed)
	// ErrFull is the error of a borrower who may not wait.
	ErrFull = errors.New("no connection is free, and no more borrowers may wait (see MaxLive, MaxWaiters)")
	// ErrTimeout is the error of one who has waited for MaxWait. It is an
	// os.ErrDeadlineExceeded.
	ErrTimeout error = timeout{}
)

type timeout struct{}

func (timeout) Error() string        { return "no connection became free in time (see MaxLive, MaxWait)" }
func (timeout) Timeout() bool        { return true }
func (timeout) Temporary() bool      { return true }
func (timeout) Is(target error) bool { return target == os.ErrDeadlineExceeded }

// A Pool holds the connections of one loop to one address.
type Pool struct {
	config  Config
	loop    *rondo.Loop
	stats   Stats
	closed  bool
	invalid error // config is: nobody gets a connection

	live    []*Conn // all but those that are gone
	dialing []*dial
	idle    []*Conn // by when they were put back: the last one is lent first
	waiters waiterList
	free    []*waiter // to be used again

	work      []*Conn // to be looked at by settle
	head      int     // of it is done
	failures  []failure
	busy      int  // connections that are being made ready, checked, or put back
	scheduled bool // settle is

	settleFunc func()
	forget     func() // that the pool closes with the engine

	pause   time.Duration // before MinIdle's next dial, after one that failed
	retry   *rondo.Timer  // that
	paused  bool          // until then
	expiry  *rondo.Timer  // of idle connections
	expires bool          // it is running
	late    *rondo.Timer  // of waiters
	waits   bool          // it is running
}

// New makes a Pool of loop's, on which it must be called. The dials that MinIdle asks
// for begin at once. If a field of config is meaningless the pool dials nothing, and each
// borrower gets an error that names the field.
func New(loop *rondo.Loop, config Config) *Pool {
	p := &Pool{config: config, loop: loop, invalid: config.check()}
	p.config.setDefaults()
	p.settleFunc = p.settle
	p.retry = timer(loop, func() { p.paused = false; p.balance() })
	p.expiry = timer(loop, p.expire)
	p.late = timer(loop, p.tooLate)
	p.forget = loop.OnClose(p.Close)
	p.balance()
	return p
}

// timer makes one to be started by Reset.
func timer(l *rondo.Loop, f func()) *rondo.Timer {
	t := l.AfterFunc(0, f)
	t.Stop()
	return t
}

// Loop is the loop that the Pool belongs to. Any goroutine may call it.
func (p *Pool) Loop() *rondo.Loop { return p.loop }

// Close closes every connection, also the borrowed ones, as Conn.Close does; those
// who wait get ErrClosed, and so does everybody from now on.
func (p *Pool) Close() {
	p.Drain()
	for len(p.live) > 0 {
		c := p.live[len(p.live)-1]
		p.drop(c)
		c.conn.Close()
	}
}

// Drain is Close that leaves the borrowed connections to their borrowers: each is
// closed when it is put back.
func (p *Pool) Drain() {
	if !p.closed {
		p.closed = true
		p.forget()
		p.retry.Stop()
		p.expiry.Stop()
		p.late.Stop()
		for p.waiters.first != nil {
			p.fail(p.waiters.first, p.refused(ErrClosed))
		}
		for _, d := range p.dialing {
			d.cancel()
		}
	}
	for i := len(p.live) - 1; i >= 0; i-- {
		if c := p.live[i]; c.state != borrowed {
			c.close()
		}
	}
}

// refused is the error of a borrower.
func (p *Pool) refused(err error) error { return p.opError("borrow", err) }

func (p *Pool) opError(op string, err error) error {
	return &net.OpError{Op: op, Net: p.config.Network, Addr: address{p.config.Network, p.config.Address}, Err: err}
}

// address is the configured one.
type address struct{ network, text string }

func (a address) Network() string { return a.network }
func (a address) String() string  { return a.text }

// Stats tells where a Pool stands, and what it did.
type Stats struct {
	// Idle connections, Borrowed ones, and those on their way between: being dialed,
	// set up, checked, or just put back.
	Idle, Borrowed, Pending int
	// Waiting is how many borrowers wait.
	Waiting int

	// Gets counts Get and Borrow; Reused those that got an idle connection at once,
	// Waited those that waited for theirs.
	Gets, Reused, Waited uint64
	// Refused counts ErrFull, and TimedOut ErrTimeout.
	Refused, TimedOut uint64
	// Dialed counts connections that were made and set up, DialsFailed those that were
	// not.
	Dialed, DialsFailed uint64
	// Expired were idle for IdleTime. Lost are those whose peer closed them, or sent
	// something, while they were idle. ChecksFailed are those that Check found at fault.
	Expired, Lost, ChecksFailed uint64
	// Discarded are those that borrowers gave up by Discard, or put back closed, or
	// with input that they had not consumed.
	Discarded uint64
}

// Stats returns them.
func (p *Pool) Stats() Stats {
	s := p.stats
	s.Idle = len(p.idle)
	s.Pending = len(p.dialing) + p.busy
	s.Borrowed = p.borrowed()
	s.Waiting = p.waiters.n
	return s
}

func (p *Pool) borrowed() int { return len(p.live) - len(p.idle) - p.busy }
