package rondo

import (
	"context"
	"errors"
	"fmt"
	"iter"
	"log/slog"
	"math"
	"net"
	"slices"
	"sync"
	"time"

	"github.com/rondo-go/rondo/internal/pick"
	"github.com/rondo-go/rondo/internal/share"
)

// Defaults of Engine's fields.
const (
	DefaultMaxInput  = 1 << 20
	DefaultMaxOutput = 16 << 20
	DefaultHighWater = 256 << 10
	DefaultLowWater  = 64 << 10
	DefaultLinger    = 5 * time.Second
)

// An Engine is a group of loops and the connections they serve. The zero Engine is ready
// for use. The first call reads its fields; do not change them afterwards.
//
// Any goroutine may call its methods. Most of them wait for the loops. On a loop of this
// engine (in a callback or a coroutine) they do what is possible without waiting: Close
// and Shutdown begin the end and return, Listen and ListenPacket listen on that loop.
// Wait, Dial and Attach have to wait: on a loop they panic, and name the call to use
// instead.
type Engine struct {
	// NumLoops is the number of loops. Each loop is a goroutine. 0: GOMAXPROCS.
	NumLoops int
	// SpareProcessor raises GOMAXPROCS by one when the engine starts, if the engine has as
	// many loops as GOMAXPROCS and they sleep in system calls (on any backend but "std").
	// While one of Go's processors is idle, the scheduler does not take the processor of a
	// sleeping loop. Without a spare processor, loops on epoll park (they sleep as
	// goroutines do) if they are as many as GOMAXPROCS. Parking is better where loops share
	// the CPUs with other work. A spare processor is better for one loop on one CPU with
	// few connections (docs/design.md has the figures). GOMAXPROCS belongs to the whole
	// process, and once it is set, Go no longer adapts it to a changed CPU limit.
	SpareProcessor bool
	// Backend names the system interface that moves the bytes: "epoll" (Linux), "uring"
	// (io_uring: Linux 6.1 and the permission to use it), "kqueue" (macOS and the BSDs),
	// "poll" (all of these) or "std" (everywhere: package net, a goroutine per
	// connection). With several names, as in "uring,epoll", the engine tries them in that
	// order, and logs why it cannot use one. "": the platform's best. BackendName returns
	// the one that the engine uses.
	//
	// On "uring" each loop has its own thread, as with LockThreads.
	Backend string
	// Balance chooses the loop of an accepted connection.
	Balance Balance
	// CPUs pins loop i's thread to CPUs[i modulo its length]. Linux only.
	CPUs []int
	// LockThreads gives each loop its own thread. It seldom helps: passing work between a
	// loop and other goroutines then costs far more.
	LockThreads bool
	// Spin is how long a loop without work looks for more before it sleeps. 50 µs or so,
	// longer than a thread takes to wake, more than halves the latency of few connections
	// if each loop has a free core. Otherwise it wastes CPU time; a loop that spins in
	// vain stops spinning for a while, and one whose turn took longer than Spin sleeps at
	// once. 0: no time.
	Spin time.Duration

	// ReceiveBuffers is how many buffers of 17 KiB a loop on "uring" may have for short
	// messages. All its connections share them: in one turn the loop can receive from as
	// many connections without a system call for each. The loop allocates a buffer when
	// traffic first needs it. When it is idle and has used none for a twentieth of a
	// second, it frees all but 16. 0: 256, at most 4.3 MiB a loop; there are never more
	// than 32,768. Besides these buffers, and on other backends, a loop has one buffer of
	// 72 KiB. Start fails if the field is not 0 and Backend does not name "uring".
	ReceiveBuffers int

	// MaxInput is how many received bytes of a connection may wait for its handler. It is
	// also the size of the largest message; see ErrInputFull. 0: DefaultMaxInput.
	MaxInput int
	// MaxOutput is how many written bytes of a connection may wait for its peer; see
	// ErrOutputFull. The output of one call of a Handler must fit between HighWater and
	// MaxOutput: otherwise writes for a slow peer fail before the loop stops reading from
	// it. 0: DefaultMaxOutput.
	MaxOutput int
	// HighWater is how many bytes of waiting output stop the reading of a connection.
	// Reading goes on at LowWater. So the loop stops serving a peer that sends requests
	// and reads no replies. HighWater counts as no more than MaxOutput, and LowWater must
	// be no more than HighWater. 0: DefaultHighWater; DefaultLowWater, or HighWater if
	// that is less.
	HighWater, LowWater int
	// MaxConns is how many accepted connections may be open at once. A connection counts
	// from when a Listener accepts it until it closes, or leaves the engine by Detach or
	// Move. A connection that another engine accepted counts from when Move brings it
	// here. Connections from Dial or Attach do not count. 0: no limit.
	MaxConns int
	// MaxConnsPerAddr is MaxConns for each remote address: an IPv4 address, or an IPv6
	// network of 64 bits, since one host has all its addresses. The engine counts the
	// address that the system reports at accept. The address in a PROXY header arrives too
	// late: behind a proxy, all connections have the proxy's address. Unix sockets have no
	// address, and no such limit. 0: no limit.
	MaxConnsPerAddr int
	// AcceptRate is how many connections per second may be accepted, and how many at once
	// after a second without any. 0: no limit.
	AcceptRate int
	// MaxBufferBytes is how much memory the loops' buffers may take, within a sixteenth: input
	// that Handlers and Filters have left, and output that peers do not read. At the limit the
	// engine aborts connections until a quarter of it is free, first those for which bytes
	// times time is most: the bytes that the connection holds, and the time since any of them
	// moved, plus a second. Meanwhile it refuses new connections. Memory of WriteOwned, of
	// ReceiveInto and of the backend does not count. 0: no limit.
	MaxBufferBytes int
	// Refuse is called, on a loop, with a connection that one of these limits forbids;
	// limit is the name of the field. Refuse may write an answer to the peer, also through
	// filters that it adds by Use. When it returns, the loop closes the connection as
	// Conn.Close does, so Refuse must not keep it. A loop has at most 16 such connections:
	// one more cuts off the oldest. nil: the engine closes excess connections at once,
	// which costs least. LoopStats.Refused counts them, and the engine logs one in ten
	// seconds.
	Refuse func(c *Conn, limit string)
	// Linger is how long a closing connection may wait for its peer to read the output and
	// to close, and how long the loop reads a connection after a failed write. Negative: no
	// time. 0: DefaultLinger.
	Linger time.Duration

	// Resolver looks up names for Dial. nil: net.DefaultResolver.
	Resolver Resolver

	// Check makes calls from wrong goroutines panic, with the stacks of the caller and of
	// the loop. A wrong goroutine is one that uses a Conn, a Timer or a Loop's own methods
	// and does not run on that loop. The race detector finds most of these calls too.
	// Check needs no special build, and costs some nanoseconds a call. The environment
	// variable RONDO_CHECK=1 sets it. On rondotest's network it does not find calls that are
	// made while the loop stands still, as it does while the test runs.
	Check bool
	// Repanic lets a panic in a handler end the program, as in any goroutine. Otherwise
	// the panic ends its connection, and the engine logs it with its stack.
	Repanic bool
	// Logger gets messages about errors that no caller can return. nil: slog.Default().
	Logger *slog.Logger
	// Trace has hooks that the loops call. nil costs nothing.
	Trace *Trace

	// What loops read stands apart from what changes.

	state       engineState
	loops       []*Loop
	backendName string        // "" before Start
	stopped     chan struct{} // closed when every loop has ended
	larder      *larder       // nil: buffers may take any memory
	admission   *admission    // nil: any number of connections may come
	limits      limits        // of every Conn without its own
	unbound     limits        // without a bound of output: see NoOutputLimit in package bridge

	_         share.Pad
	mu        share.Mutex
	listeners []*Listener
	watching  sync.Once    // see Watch in package bridge
	accepting share.Uint32 // sockets listened on so far
	chosen    share.Uint32 // loops chosen so far for connections not from a Listener
	ends      share.Bool   // Shutdown or Close was called: no connection moves here any more
	_         share.Pad
	crowds    crowds
	_         share.Pad
}

type engineState uint8

const (
	engineNew engineState = iota
	engineRunning
	engineClosed
)

// limits bounds the bytes that may wait in a connection.
type limits struct {
	maxIn, maxOut, high, low int
	readWhenFull             bool
}

// writeLimit is how many bytes of output may wait before a coroutine parks.
func (l *limits) writeLimit() int { return min(l.high, l.maxOut) }

// Start starts the loops, if they are not running. Listen calls it.
func (e *Engine) Start() error {
	refused, err := e.started()
	for _, r := range refused { // outside the lock: the Logger may call the engine
		e.log().Warn("rondo: a backend cannot be used, the next one is tried", "backend", r.name, "next", r.next, "error", r.err)
	}
	return err
}

// A refusal notes, for the log, why a backend cannot be used and which one is tried next.
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
	e.larder = e.newLarder()
	e.admission = e.newAdmission()
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

// open makes the loops on the first candidate that the system permits. It returns that
// candidate, and a refusal for each one before it.
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

// log returns the engine's logger. It does not panic, whatever the Logger does.
func (e *Engine) log() *slog.Logger {
	logger := e.Logger
	if logger == nil {
		logger = slog.Default()
	}
	return slog.New(safely{logger.Handler()})
}

// BackendName returns the name of the backend that the engine uses, or "" before Start.
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

// Shutdown closes the engine gracefully. It stops accepting, closes every connection as
// Conn.Close does (or lets its Handler close it, see ShutdownHandler), waits until all are
// closed, and ends the loops. If ctx ends first, Shutdown aborts the remaining connections
// and returns ctx's error. On a loop, of this engine or another, it does not wait: it
// returns nil and goes on in the background.
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
	e.ends.Store(true)
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

// Close aborts every connection, closes the listeners and ends the loops. It waits until
// the loops have ended, except on a loop, of this engine or another.
func (e *Engine) Close() error {
	e.mu.Lock()
	if e.state == engineNew {
		e.stopped = make(chan struct{})
		close(e.stopped)
	}
	e.state = engineClosed
	e.ends.Store(true)
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

// Listen listens on address and serves its connections; open makes the Handler of each
// one. network is tcp, tcp4, tcp6 or unix; tcp without a host listens on IPv4 and IPv6. A
// unix address that begins with @ is abstract (Linux). Otherwise it is a file: Listen
// replaces a file that no server has open, and Listener.Close removes it. An Engine may
// listen on several addresses.
func (e *Engine) Listen(network, address string, s SocketOptions, open OpenFunc) (*Listener, error) {
	if err := e.Start(); err != nil {
		return nil, err
	}
	return e.listen(network, address, &s, nil, open)
}

// AttachListener is Listen with a socket that listens already: a *net.TCPListener or
// *net.UnixListener, of this program or passed on by another one (package fdpass,
// net.FileListener). It serves connections that wait in the socket, too. It sets s's
// options, except the buffers' sizes and UnixMode, which come too late. With Balance
// ReusePort it is still one socket.
//
// ln belongs to the engine from now on; on an error AttachListener closes it. The socket
// goes on listening while anything else has a descriptor of it. The engine does not
// remove a unix socket's file: its creator does.
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

// listen listens on address, or takes over the listener already.
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

// forget removes a closing listener from the list.
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
