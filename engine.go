package rondo

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"iter"
	"log/slog"
	"math"
	"net"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"github.com/rondo-go/rondo/internal/backend"
	"github.com/rondo-go/rondo/internal/pick"
)

// Defaults of an Engine's fields.
const (
	DefaultMaxInput  = 1 << 20
	DefaultMaxOutput = 16 << 20
	DefaultHighWater = 256 << 10
	DefaultLowWater  = 64 << 10
	DefaultLinger    = 5 * time.Second
)

// An Engine is a group of loops and the connections they serve. The zero Engine
// is ready for use; its fields are read when it is first used, and not to be
// changed afterwards.
//
// Its methods may be called from any goroutine. Most of them wait for the loops, so on
// a loop of the engine's (in a callback or a coroutine) they do what they can without
// waiting: Close and Shutdown begin the end and return, Listen and ListenPacket listen
// on that loop. Those that cannot do without (Wait, Dial and Attach) panic, and say
// what to call instead.
type Engine struct {
	// NumLoops is the number of loops, each a goroutine. 0: GOMAXPROCS.
	NumLoops int
	// SpareProcessor raises GOMAXPROCS by one when the engine starts, if its loops are as
	// many and sleep in system calls (on any backend but "std"). As long as one of Go's
	// processors is idle, the scheduler does not take away that of a loop that sleeps.
	// Without a spare one, loops on epoll that are as many as GOMAXPROCS sleep as
	// goroutines do, which is better where they share the CPUs with other work. A spare
	// processor is better for one loop on one CPU with few connections (docs/design.md has
	// the figures). GOMAXPROCS is the whole process's, and once it was set Go adapts it no
	// more to a change of the CPUs' limit.
	SpareProcessor bool
	// Backend names what moves the bytes: "epoll" (Linux), "uring" (io_uring: Linux
	// 6.1 and the permission to use it), "kqueue" (macOS and the BSDs), "poll" (all
	// of these) or "std" (everywhere: package net, a goroutine per connection).
	// Several names with commas between, as in "uring,epoll", are tried in that
	// order; the Logger is told why one cannot be used. "": the platform's best.
	// BackendName tells which of them the engine uses.
	//
	// On "uring" each loop has a thread of its own, as with LockThreads.
	Backend string
	// Balance chooses the loop of an accepted connection.
	Balance Balance
	// CPUs pins loop i's thread to CPUs[i modulo its length]. Linux only.
	CPUs []int
	// LockThreads gives each loop a thread of its own. It is seldom good:
	// passing work between a loop and other goroutines costs far more then.
	LockThreads bool
	// Spin is how long a loop that has run out of work looks for more before it
	// sleeps. 50 µs or so, longer than a thread takes to wake, more than halves
	// the latency of few connections where a core is free for each loop, and
	// wastes it otherwise; a loop that spins in vain stops doing so for a while.
	// 0: no time.
	Spin time.Duration

	// ReceiveBuffers is how many buffers of 17 KiB a loop on "uring" may have for
	// short messages, which all its connections share: of so many connections it
	// can receive in one turn without a system call for each. Memory is taken when
	// traffic first needs it; that of all but 16 is given back when a loop has used
	// none for a twentieth of a second and has nothing to do. 0: 256, at most 4.3 MiB
	// a loop; there are never more than 32,768. Beside them, and on other backends, a
	// loop has one buffer of 72 KiB. Start fails if the field is not 0 and Backend does
	// not name "uring".
	ReceiveBuffers int

	// MaxInput is how many received bytes of a connection may wait for its
	// handler, and so the largest message; see ErrInputFull. 0: DefaultMaxInput.
	MaxInput int
	// MaxOutput is how many written bytes of a connection may wait for its
	// peer; see ErrOutputFull. The output of one call of a Handler has to fit between
	// HighWater and MaxOutput: otherwise writes for a slow peer fail before the loop
	// stops reading it.
	// 0: DefaultMaxOutput.
	MaxOutput int
	// HighWater is how many bytes of waiting output stop the reading of a
	// connection, which goes on at LowWater: so a peer that sends requests and
	// reads no replies is not served further. HighWater counts as no more than
	// MaxOutput, and LowWater must be no more than HighWater. 0: DefaultHighWater;
	// DefaultLowWater, or HighWater if that is less.
	HighWater, LowWater int
	// Linger is how long a closing connection may take to deliver its output
	// and to be closed by the peer, and how long a connection whose write has failed
	// is read. Negative: no time.
	Linger time.Duration

	// Resolver finds the addresses of names that are dialed. nil:
	// net.DefaultResolver.
	Resolver Resolver

	// Check finds calls from wrong goroutines: of what belongs to a loop (a Conn, a
	// Timer, a Loop's own methods), by a goroutine that is none of that loop's. They
	// panic, with the caller's and the loop's stacks. The race detector finds most of
	// these too; this needs no special build, and takes some nanoseconds a call. The
	// environment variable RONDO_CHECK=1 sets it. On rondotest's network it finds
	// nothing while a loop stands still there.
	Check bool
	// Repanic lets a panic in a handler end the program, as one in a goroutine
	// does. Otherwise it ends its connection and is logged with its stack.
	Repanic bool
	// Logger is told of what no caller hears of. nil: slog.Default().
	Logger *slog.Logger
	// Trace's hooks are called on the loops. nil costs nothing.
	Trace *Trace

	mu          sync.Mutex
	state       engineState
	loops       []*Loop
	backendName string // once they run
	listeners   []*Listener
	stopped     chan struct{} // closed when every loop has ended
	watching    sync.Once     // see Watch in package bridge
	limits      limits        // every Conn's, unless it has its own
	unbound     limits        // of those that have no bound of output: see NoOutputLimit in package bridge
	accepting   atomic.Uint32 // sockets listened on so far
	chosen      atomic.Uint32 // loops chosen so far for other connections than a Listener's
}

type engineState uint8

const (
	engineNew engineState = iota
	engineRunning
	engineClosed
)

// limits bounds what a connection may have waiting, in bytes.
type limits struct {
	maxIn, maxOut, high, low int
}

// writeLimit is how much output may wait before a coroutine has to.
func (l *limits) writeLimit() int { return min(l.high, l.maxOut) }

// SocketOptions holds options of sockets. The zero SocketOptions are right for most uses.
type SocketOptions struct {
	// KeepAlive is the idle time before TCP keep-alive probes, and the time
	// between them. 0: 15 s. Negative: no probes.
	KeepAlive time.Duration
	// Delay leaves Nagle's algorithm on; by default TCP_NODELAY is set, since
	// a loop gathers small writes itself.
	Delay bool
	// SendBuffer and RecvBuffer are the kernel's buffers, in bytes (SO_SNDBUF,
	// SO_RCVBUF). 0: the system's choice, which adapts.
	SendBuffer, RecvBuffer int
	// ReusePort sets SO_REUSEPORT, so that other processes may listen on the
	// same address. Balance ReusePort sets it where it counts. On Windows, which has no
	// such option, Listen fails (errors.ErrUnsupported).
	ReusePort bool
	// LocalAddr is where to dial from, a *net.TCPAddr or *net.UnixAddr; only
	// addresses of the same family are tried then. nil: the system's choice.
	// Listen does not look at it.
	LocalAddr net.Addr
	// DialTimeout is how long a dial may take, with the looking up of a name. 0:
	// as long as the system tries. Listen does not look at it.
	DialTimeout time.Duration
	// UnixMode is the permissions of a unix socket's file. 0: as umask leaves it.
	UnixMode fs.FileMode
}

// options are those that a backend sets.
func (s *SocketOptions) options() backend.Socket {
	return backend.Socket{
		KeepAlive:  s.KeepAlive,
		Delay:      s.Delay,
		SendBuffer: s.SendBuffer,
		RecvBuffer: s.RecvBuffer,
		ReusePort:  s.ReusePort,
		UnixMode:   s.UnixMode,
	}
}

// Start starts the loops, if they are not running. Listen does it by itself.
func (e *Engine) Start() error {
	refused, err := e.started()
	for _, r := range refused { // the Logger may ask the engine: its lock is free again
		e.log().Warn("rondo: a backend cannot be used, the next one is tried", "backend", r.name, "next", r.next, "error", r.err)
	}
	return err
}

// A refusal tells that a backend cannot be used, why, and which one is tried next. The
// Logger is told.
type refusal struct {
	name, next string
	err        error
}

func (e *Engine) started() ([]refusal, error) {
	e.mu.Lock()
	defer e.mu.Unlock()
	switch e.state {
	case engineRunning:
		return nil, nil
	case engineClosed:
		return nil, fmt.Errorf("rondo: start: engine: %w", ErrClosed)
	}
	return e.start()
}

func (e *Engine) start() ([]refusal, error) {
	if err := e.checkFields(); err != nil {
		return nil, err
	}
	candidates, err := pick.Choose(e.Backend, pick.Options{ReceiveBuffers: e.ReceiveBuffers})
	if err != nil {
		return nil, fmt.Errorf("rondo: Engine.Backend: %w", err)
	}
	if err := e.checkBuffers(candidates); err != nil {
		return nil, err
	}
	e.limits = limits{
		maxIn:  orDefault(e.MaxInput, DefaultMaxInput),
		maxOut: orDefault(e.MaxOutput, DefaultMaxOutput),
		high:   orDefault(e.HighWater, DefaultHighWater),
		low:    orDefault(e.LowWater, DefaultLowWater),
	}
	e.limits.high = min(e.limits.high, e.limits.maxOut)
	e.limits.low = min(e.limits.low, e.limits.high)
	e.unbound = limits{maxIn: e.limits.maxIn, maxOut: math.MaxInt, high: math.MaxInt, low: math.MaxInt}
	loops, used, refused, err := e.open(candidates)
	if err != nil {
		return refused, err
	}
	if used.Sleeps {
		e.shareProcessors(loops)
	}
	e.backendName, e.loops, e.state = used.Name, loops, engineRunning
	e.stopped = make(chan struct{})
	e.enter()
	var running sync.WaitGroup
	running.Add(len(loops))
	for _, l := range loops {
		l.finished = running.Done
		go l.run()
	}
	go func() {
		running.Wait()
		e.leave()
		close(e.stopped)
	}()
	return refused, nil
}

// open makes the loops, on the first of the candidates that the system permits,
// and returns which it is, and which it does not.
func (e *Engine) open(candidates []pick.Candidate) (loops []*Loop, used pick.Candidate, refused []refusal, err error) {
	for i, c := range candidates {
		loops, err := e.openOn(c)
		switch {
		case err == nil:
			return loops, c, refused, nil
		case i == len(candidates)-1:
			return nil, c, refused, err
		}
		refused = append(refused, refusal{c.Name, candidates[i+1].Name, err})
	}
	panic("rondo: no candidates")
}

func (e *Engine) openOn(c pick.Candidate) ([]*Loop, error) {
	var loops []*Loop
	for i := range orDefault(e.NumLoops, processors()) {
		be, err := c.Open()
		if err != nil {
			for _, l := range loops {
				l.backend.Close()
			}
			return nil, fmt.Errorf("rondo: backend %s of loop %d: %w", c.Name, i, err)
		}
		loops = append(loops, newLoop(e, i, be))
	}
	return loops, nil
}

func orDefault[T int | time.Duration](v, d T) T {
	if v == 0 {
		return d
	}
	return v
}

func (e *Engine) linger() time.Duration { return max(0, orDefault(e.Linger, DefaultLinger)) }

// log is where the engine logs to. It does not panic, whatever the Logger does.
func (e *Engine) log() *slog.Logger {
	logger := e.Logger
	if logger == nil {
		logger = slog.Default()
	}
	return slog.New(safely{logger.Handler()})
}

// BackendName is the name of the backend that the engine uses; "" before Start.
func (e *Engine) BackendName() string {
	e.mu.Lock()
	defer e.mu.Unlock()
	return e.backendName
}

// Loops ranges over the loops. There are none before Start.
func (e *Engine) Loops() iter.Seq[*Loop] {
	e.mu.Lock()
	defer e.mu.Unlock()
	return slices.Values(e.loops)
}

// Wait waits until the engine is closed. Its error is nil.
func (e *Engine) Wait() error {
	e.mustNotBeOnLoop("Wait", "Loop.OnClose calls a function at the end")
	e.mu.Lock()
	stopped := e.stopped
	e.mu.Unlock()
	if stopped != nil {
		<-stopped
	}
	return nil
}

// Shutdown stops accepting, closes every connection as Conn.Close does (or has its
// Handler close it, see ShutdownHandler), waits until that is done, and ends the loops.
// When ctx ends first it aborts what is left, and returns ctx's error. On a loop, this
// engine's or another's, it does not wait: it returns nil, and the rest goes on.
func (e *Engine) Shutdown(ctx context.Context) error {
	if ctx == nil {
		return fmt.Errorf("rondo: Engine.Shutdown: %w", errNilContext)
	}
	if callingLoop() != nil {
		go e.Shutdown(ctx)
		return nil
	}
	e.mu.Lock()
	listeners, loops, state := e.listeners, e.loops, e.state
	e.listeners = nil
	e.mu.Unlock()
	if state == engineNew {
		return e.Close()
	}
	for _, ln := range listeners {
		ln.Close()
	}
	for _, l := range loops {
		l.Post(l.drain)
	}
	for _, l := range loops {
		select {
		case <-l.drained:
		case <-e.stopped:
		case <-ctx.Done():
			return errors.Join(ctx.Err(), e.Close())
		}
	}
	return e.Close()
}

// Close aborts every connection, closes the listeners and ends the loops. On a
// loop, this engine's or another's, it does not wait for that.
func (e *Engine) Close() error {
	e.mu.Lock()
	if e.state == engineNew {
		e.stopped = make(chan struct{})
		close(e.stopped)
	}
	e.state = engineClosed
	e.listeners = nil
	loops, stopped := e.loops, e.stopped
	e.mu.Unlock()
	for _, l := range loops {
		l.Post(l.stop)
	}
	if callingLoop() == nil {
		<-stopped
	}
	return nil
}

// Listen serves connections to address: open makes each one's Handler. network
// is tcp, tcp4, tcp6 or unix; tcp without a host takes IPv4 and IPv6. A unix
// address that begins with @ is abstract (Linux); the file of another is
// replaced if no server has it open, and removed when the listener closes.
// An Engine may listen on several addresses.
func (e *Engine) Listen(network, address string, s SocketOptions, open OpenFunc) (*Listener, error) {
	if err := e.Start(); err != nil {
		return nil, err
	}
	return e.listen(network, address, &s, nil, open)
}

// AttachListener is Listen with a socket that listens already: a *net.TCPListener or
// *net.UnixListener of this program, or of another one that passed it on (package
// fdpass), by net.FileListener. Connections that wait in it are served. s's options
// are set, but for the buffers' sizes and UnixMode, which come too late. It is one
// socket also with Balance ReusePort.
//
// ln is the engine's, also on an error, which closes it. The socket listens on as long
// as somebody else has a descriptor of it. The file of a unix one is not removed: that
// is for who made it.
func (e *Engine) AttachListener(ln net.Listener, s SocketOptions, open OpenFunc) (*Listener, error) {
	if ln == nil {
		return nil, &net.OpError{Op: "listen", Err: errNilListener}
	}
	if err := e.Start(); err != nil {
		ln.Close()
		return nil, err
	}
	s.UnixMode = 0
	l, err := e.listen(ln.Addr().Network(), ln.Addr().String(), &s, ln, open)
	if err != nil {
		ln.Close()
	}
	return l, err
}

// listen listens on address, or takes over what listens there already.
func (e *Engine) listen(network, address string, s *SocketOptions, already net.Listener, open OpenFunc) (*Listener, error) {
	ln := &Listener{engine: e, network: network, open: open}
	resolved := address
	err := s.check()
	if open == nil {
		err = errNilOpener
	}
	if err == nil && already == nil {
		resolved, err = e.toListen(network, address)
	}
	if err == nil {
		o := s.options()
		o.Listener = already
		err = ln.listen(resolved, o)
	}
	if err != nil {
		ln.Close()
		return nil, &net.OpError{Op: "listen", Net: network, Addr: text{network, address}, Err: err}
	}
	e.mu.Lock()
	defer e.mu.Unlock()
	if e.state == engineRunning {
		e.listeners = append(e.listeners, ln)
	}
	return ln, nil
}

// forget drops a listener that is being closed.
func (e *Engine) forget(ln *Listener) {
	e.mu.Lock()
	defer e.mu.Unlock()
	if i := slices.Index(e.listeners, ln); i >= 0 {
		e.listeners = slices.Delete(slices.Clone(e.listeners), i, i+1) // Shutdown may range over it
	}
}

// text is an address as the caller wrote it.
type text struct{ network, address string }

func (t text) Network() string { return t.network }
func (t text) String() string  { return t.address }
