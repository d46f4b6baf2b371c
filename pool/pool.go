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

// Config configures a Pool. Network and Address are required; the other fields
// have defaults.
type Config struct {
	// Network and Address are dialed as by Loop.Dial, with the options of
	// Socket, including its DialTimeout.
	Network, Address string
	Socket           rondo.SocketOptions
	// Filters are put between the wire and the borrower, for instance
	// rtls.Client. A connection is usable once they are ready.
	Filters []rondo.FilterOpenFunc

	// MaxLive is the maximum number of connections: idle, borrowed and being
	// made. Closing connections do not count. 0 means DefaultMaxLive.
	MaxLive int
	// MinIdle is the number of idle connections that the pool keeps, within
	// MaxLive, so that a borrower need not wait for a dial. While the server is
	// unreachable, the pool dials at growing intervals from 100 ms to 30 s.
	MinIdle int
	// IdleTime is how long a connection may be idle. Then the pool closes it,
	// and replaces it if MinIdle requires that. 0 means for ever.
	IdleTime time.Duration
	// MaxWaiters is the maximum number of borrowers that wait for a connection
	// to be put back. It does not count borrowers for which a connection is
	// being made. Further borrowers get ErrFull at once. 0 means
	// DefaultMaxWaiters; a negative number means none.
	MaxWaiters int
	// MaxWait is how long a borrower may wait before it gets ErrTimeout. 0
	// means for ever.
	MaxWait time.Duration

	// Setup prepares a new connection, for instance with a greeting or a login.
	// The loop calls it. Setup sets handlers as needed, and ends with one call
	// of done, at once or later. With an error the pool closes the connection
	// and counts the dial as failed. nil means that a new connection is ready.
	// If the server speaks first, Setup reads its greeting.
	Setup func(c *Conn, done func(error))
	// Check tests, as Setup does, an idle connection before it is lent, for
	// instance with a ping. The pool calls it if the connection was idle for
	// CheckAfter or longer. If Check fails, the pool closes the connection and
	// the borrower gets another one. Check is not needed to notice that the
	// peer has closed the connection: the loop notices that at once.
	Check      func(c *Conn, done func(error))
	CheckAfter time.Duration
	// Patience is how long Filters may take to get ready once a connection is made, and
	// how long Setup or Check may take. 0 means DefaultPatience.
	Patience time.Duration
}

var (
	// ErrClosed is the error of using a closed Pool, or one whose loop has
	// ended. It wraps net.ErrClosed.
	ErrClosed = fmt.Errorf("the pool is closed: %w", net.ErrClosed)
	// ErrFull is the error of a borrower when MaxWaiters others wait.
	ErrFull = errors.New("no connection is free, and no more borrowers may wait: raise MaxLive or MaxWaiters")
	// ErrTimeout is the error of a borrower that has waited for MaxWait. It is an
	// os.ErrDeadlineExceeded.
	ErrTimeout error = timeout{}
)

type timeout struct{}

func (timeout) Error() string        { return "no connection became free in time: raise MaxLive or MaxWait" }
func (timeout) Timeout() bool        { return true }
func (timeout) Temporary() bool      { return true }
func (timeout) Is(target error) bool { return target == os.ErrDeadlineExceeded }

// A Pool holds the connections of one loop to one address.
type Pool struct {
	config  Config
	loop    *rondo.Loop
	stats   Stats
	closed  bool
	invalid error // config is invalid: every borrower gets this error

	live    []*Conn // all connections that are not gone
	dialing []*dial
	idle    []*Conn // in the order they were put back; the last one is lent first
	waiters waiterList
	free    []*waiter // for reuse

	work      []*Conn // connections for settle to examine
	head      int     // settle has examined work[:head]
	failures  []failure
	busy      int  // connections being set up, checked or put back
	scheduled bool // settle is deferred

	settleFunc func()
	forget     func() // undoes Loop.OnClose

	pause   time.Duration // after a failed dial, before the next one for MinIdle
	retry   *rondo.Timer  // ends the pause
	paused  bool          // retry is running
	expiry  *rondo.Timer  // for idle connections
	expires bool          // expiry is running
	late    *rondo.Timer  // for waiters
	waits   bool          // late is running
}

// New makes a Pool on loop, and must be called on that loop. Dials for MinIdle
// begin at once. If a field of config is meaningless the pool dials nothing,
// and each borrower gets an error that names the field.
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

// timer makes a stopped timer for Reset.
func timer(l *rondo.Loop, f func()) *rondo.Timer {
	t := l.AfterFunc(0, f)
	t.Stop()
	return t
}

// Loop returns the loop that the Pool belongs to. Any goroutine may call it.
func (p *Pool) Loop() *rondo.Loop { return p.loop }

// Close closes all connections as Conn.Close does, including borrowed ones.
// Waiting and later borrowers get ErrClosed.
func (p *Pool) Close() {
	p.Drain()
	for len(p.live) > 0 {
		c := p.live[len(p.live)-1]
		p.drop(c)
		c.conn.Close()
	}
}

// Drain is Close, but leaves borrowed connections to their borrowers. The pool
// closes each one when it is put back.
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

// refused wraps err for a borrower.
func (p *Pool) refused(err error) error { return p.opError("borrow", err) }

func (p *Pool) opError(op string, err error) error {
	return &net.OpError{Op: op, Net: p.config.Network, Addr: address{p.config.Network, p.config.Address}, Err: err}
}

// address is the configured address.
type address struct{ network, text string }

func (a address) Network() string { return a.network }
func (a address) String() string  { return a.text }

// Stats is the state of a Pool and its counts.
type Stats struct {
	// Idle and Borrowed connections, and those in between: being dialed, set
	// up, checked or examined after Put.
	Idle, Borrowed, Pending int
	// Waiting is the number of waiting borrowers.
	Waiting int

	// Gets counts calls of Get and Borrow. Reused counts those that got an idle
	// connection at once, Waited those that waited for their connection.
	Gets, Reused, Waited uint64
	// Refused counts ErrFull, and TimedOut ErrTimeout.
	Refused, TimedOut uint64
	// Dialed counts connections that were made and set up, DialsFailed those
	// that failed.
	Dialed, DialsFailed uint64
	// Expired counts connections that were idle for IdleTime. Lost counts idle
	// ones that their peer closed, or that received something. ChecksFailed
	// counts those that Check rejected.
	Expired, Lost, ChecksFailed uint64
	// Discarded counts connections that borrowers discarded, or put back closed
	// or with unconsumed input.
	Discarded uint64
}

// Stats returns the state and the counts.
func (p *Pool) Stats() Stats {
	s := p.stats
	s.Idle = len(p.idle)
	s.Pending = len(p.dialing) + p.busy
	s.Borrowed = p.borrowed()
	s.Waiting = p.waiters.n
	return s
}

func (p *Pool) borrowed() int { return len(p.live) - len(p.idle) - p.busy }
