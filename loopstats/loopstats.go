package loopstats

import (
	"sync"

	"github.com/rondo-go/rondo"
	"github.com/rondo-go/rondo/internal/bridge"
	"github.com/rondo-go/rondo/internal/meter"
)

// A Cause is why a connection was closed: what began its end, or the error that cut it short.
type Cause uint8

const (
	// PeerEnd: the peer ended its stream first, and the connection closed without an error.
	PeerEnd = Cause(meter.PeerEnd)
	// OwnEnd: the program called Close first, as Engine.Shutdown does, and the connection closed
	// without an error.
	OwnEnd = Cause(meter.OwnEnd)
	// Reset: the peer reset the connection, or stopped reading before the end of the output.
	Reset = Cause(meter.Reset)
	// Failed: another error of the system.
	Failed = Cause(meter.Failed)
	// Idle: rondo.ErrIdle, after the time of Conn.SetIdle.
	Idle = Cause(meter.Idle)
	// Deadline: os.ErrDeadlineExceeded, from Conn.CloseAt or AbortUnsentAt.
	Deadline = Cause(meter.Deadline)
	// Linger: rondo.ErrLinger. The peer did not read all output in time after Close.
	Linger = Cause(meter.Linger)
	// Full: rondo.ErrInputFull or ErrOutputFull.
	Full = Cause(meter.Full)
	// Filter: the error of a Filter, such as a failed TLS handshake.
	Filter = Cause(meter.Filter)
	// Refused: Engine.Refuse got the connection, or its OpenFunc returned nil. Connections
	// above a limit that no Engine.Refuse gets never open, and count in
	// LoopStats.Refused alone.
	Refused = Cause(meter.Refused)
	// Panic: a callback panicked, or called runtime.Goexit.
	Panic = Cause(meter.Panic)
	// Aborted: Conn.Abort without an error, as Engine.Close does.
	Aborted = Cause(meter.Aborted)
	// Handler: another error, from Handler.Data or given to CloseWith or Abort.
	Handler = Cause(meter.Handler)
	// Shed: the connection was cut off because of rondo.Engine.MaxBufferBytes.
	Shed = Cause(meter.Shed)

	// Causes is the number of Causes.
	Causes = meter.Causes
)

// String returns a word, such as "reset".
func (c Cause) String() string {
	if int(c) < len(causes) {
		return causes[c]
	}
	return "unknown"
}

var causes = [Causes]string{
	PeerEnd: "peer_end", OwnEnd: "own_end", Reset: "reset", Failed: "error", Idle: "idle",
	Deadline: "deadline", Linger: "linger", Full: "full", Filter: "filter", Refused: "refused",
	Panic: "panic", Aborted: "aborted", Handler: "handler",
	Shed: "shed",
}

// A TLSFailure is why a TLS handshake of package rtls failed.
type TLSFailure uint8

const (
	// TLSLate: rtls.ErrHandshakeTimeout.
	TLSLate = TLSFailure(meter.Late)
	// TLSGone: the connection ended first: the peer closed it, or the program did.
	TLSGone = TLSFailure(meter.Gone)
	// TLSForeign: the peer does not speak TLS.
	TLSForeign = TLSFailure(meter.NotTLS)
	// TLSAlert: the peer sent an alert, as it does if it does not trust the certificate.
	TLSAlert = TLSFailure(meter.Alert)
	// TLSCertificate: the peer's certificate was refused.
	TLSCertificate = TLSFailure(meter.Certificate)
	// TLSOther: anything else, such as no version or cipher in common.
	TLSOther = TLSFailure(meter.Handshake)

	// TLSFailures is the number of TLSFailures.
	TLSFailures = meter.Failures
)

// String returns a word, such as "not_tls".
func (f TLSFailure) String() string {
	if int(f) < len(failures) {
		return failures[f]
	}
	return "unknown"
}

var failures = [TLSFailures]string{
	TLSLate: "timeout", TLSGone: "gone", TLSForeign: "not_tls", TLSAlert: "alert", TLSCertificate: "certificate", TLSOther: "other",
}

// A Loop has what a loop has counted since it started, and measured. The counts may be one
// turn old, and differ by what happened while they were read.
type Loop struct {
	ID int // the loop's number, as of Loop.ID
	rondo.LoopStats

	// Ended counts the connections in LoopStats.Closed by their causes.
	Ended [Causes]uint64
	// Handshakes counts TLS handshakes of package rtls that were done, of servers and clients.
	Handshakes uint64
	// FailedHandshakes counts those that failed.
	FailedHandshakes [TLSFailures]uint64
	// OutputStops counts how often full output stopped the reading of a connection: its peer
	// reads more slowly than it asks. See rondo.Engine.HighWater.
	OutputStops uint64
	// OutputWaiting is how many bytes wait because the system did not take them. What waits in
	// Filters, and datagrams, do not count.
	OutputWaiting int
	// Buffers is how many buffers of the loop's pool are in use, for input that a Handler has
	// left, output that waits, and work of coroutines. An idle connection has none.
	Buffers int
	// BufferBytes is how many bytes these buffers have. See rondo.Engine.MaxBufferBytes.
	BufferBytes int

	// The following are measured while Measure says so. Times are in nanoseconds. Turn, Callback
	// and Events stand for all turns, of which a busy loop does not measure all: see the package.

	// Turn has how long each turn took, without the wait for events.
	Turn Histogram
	// Callback has how long the longest callback of each turn took at most. Up to 64
	// callbacks that follow each other are timed together, with the engine's work for them. So
	// a time of a millisecond or less may be that of several.
	Callback Histogram
	// Events has the number of events (completed operations) that each wait for them brought.
	Events Histogram
	// PostDelay has, for each turn that began with posts (Loop.Post, Ref.Do, Ref.Write), how
	// long the oldest one had waited.
	PostDelay Histogram
	// TimerDelay has, for each turn in which timers fired, how late the latest one was.
	TimerDelay Histogram
}

// Measure starts e, if necessary, and makes its loops measure times until stop is called as well.
// What was measured stays. Several callers may measure at the same time. Neither Measure nor stop
// waits for the loops.
func Measure(e *rondo.Engine) (stop func(), err error) {
	if err := e.Start(); err != nil {
		return nil, err
	}
	set := func(on bool) {
		for l := range e.Loops() {
			l.Post(func() { bridge.LoopOf(l).Measure(on) })
		}
	}
	set(true)
	return sync.OnceFunc(func() { set(false) }), nil
}

// Of returns what each loop of e has counted and measured so far. There are no loops before e
// starts.
func Of(e *rondo.Engine) []Loop {
	var loops []*rondo.Loop
	for l := range e.Loops() {
		loops = append(loops, l)
	}
	stats := e.Stats().Loops
	all := make([]Loop, len(loops))
	for i, l := range loops {
		all[i] = read(stats[i], bridge.LoopOf(l))
		all[i].ID = l.ID()
	}
	return all
}

func read(s rondo.LoopStats, w bridge.Loop) Loop {
	t := w.Tally().(*meter.Tally)
	l := Loop{
		LoopStats:     s,
		OutputStops:   t.OutputStops.Load(),
		OutputWaiting: int(t.OutputWaiting.Load()),
		Buffers:       int(t.Buffers.Load()),
		BufferBytes:   int(t.BufferBytes.Load()),
	}
	l.Handshakes = t.Handshakes.Load()
	for i := range t.NoHandshakes {
		l.FailedHandshakes[i] = t.NoHandshakes[i].Load()
	}
	for i := range t.Ended {
		l.Ended[i] = t.Ended[i].Load()
	}
	if m := w.Measured().(*meter.Meter); m != nil {
		l.Turn = recorded(&m.Turn)
		l.Callback = recorded(&m.Callback)
		l.Events = recorded(&m.Events)
		l.PostDelay = recorded(&m.PostDelay)
		l.TimerDelay = recorded(&m.TimerDelay)
	}
	return l
}
