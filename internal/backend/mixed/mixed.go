// Package mixed lets a backend serve connections that it cannot hold: a net.Conn
// without its own descriptor, such as a *tls.Conn or a net.Pipe. Package std serves
// them beside the main backend, at std's cost. For everything else mixed adds the cost
// of one call.
//
// A loop switches to mixed when the first such connection comes.
package mixed

import (
	"errors"
	"net"

	"github.com/rondo-go/rondo/internal/backend"
	"github.com/rondo-go/rondo/internal/backend/std"
)

// Backend combines a main backend with std.
type Backend struct {
	backend.Backend
	side   *std.Backend
	lender backend.Backend // the backend whose lent buffer the loop has
}

// New puts std beside main. main may have been used before. From now on only the new
// Backend may use it, except for Wake.
func New(main backend.Backend) *Backend {
	return &Backend{Backend: main, side: std.Beside(backend.SecondTable, main.Wake), lender: main}
}

// of returns the backend that id belongs to.
func (b *Backend) of(id backend.File) backend.Backend {
	if id.Slot()&backend.SecondTable != 0 {
		return b.side
	}
	return b.Backend
}

// holds returns the backend that can hold h's connection.
func (b *Backend) holds(h backend.Handle) backend.Backend {
	if _, ok := h.Obj.(net.Conn); ok {
		return b.side
	}
	return b.Backend
}

func (b *Backend) Adopt(h backend.Handle) (backend.File, error) { return b.holds(h).Adopt(h) }

func (b *Backend) Release(id backend.File) (backend.Handle, error) { return b.of(id).Release(id) }

func (b *Backend) Discard(h backend.Handle) { b.holds(h).Discard(h) }

// Import prefers the main backend.
func (b *Backend) Import(nc net.Conn) (backend.Handle, error) {
	h, err := b.Backend.Import(nc)
	if errors.Is(err, backend.ErrForeign) {
		return b.side.Import(nc)
	}
	return h, err
}

func (b *Backend) Export(h backend.Handle) (net.Conn, error) { return b.holds(h).Export(h) }

func (b *Backend) LocalAddr(id backend.File) net.Addr  { return b.of(id).LocalAddr(id) }
func (b *Backend) RemoteAddr(id backend.File) net.Addr { return b.of(id).RemoteAddr(id) }

func (b *Backend) Control(id backend.File, f func(fd uintptr) error) error {
	return b.of(id).Control(id, f)
}

// KeepFile implements backend.FileKeeper.
func (b *Backend) KeepFile(id backend.File) {
	if k, ok := b.of(id).(backend.FileKeeper); ok {
		k.KeepFile(id)
	}
}

// Acknowledge implements backend.Acknowledger.
func (b *Backend) Acknowledge(id backend.File) {
	if a, ok := b.of(id).(backend.Acknowledger); ok {
		a.Acknowledge(id)
	}
}

func (b *Backend) Submit(op *backend.Op)         { b.of(op.File).Submit(op) }
func (b *Backend) Send(op *backend.SendOp)       { b.of(op.File).Send(op) }
func (b *Backend) Connect(op *backend.ConnectOp) { b.of(op.File).Connect(op) }
func (b *Backend) Cancel(op *backend.Op)         { b.of(op.File).Cancel(op) }

func (b *Backend) TrySend(id backend.File, p []byte) (int, error) { return b.of(id).TrySend(id, p) }

// Wait waits for both backends: a completion of std wakes the main one.
func (b *Backend) Wait(until backend.Time) (bool, error) {
	ready, err := b.Backend.Wait(b.armed(until))
	more, sideErr := b.side.Wait(backend.Time(0))
	return ready || more, errors.Join(err, sideErr)
}

// Parks reports whether the main backend can park. If it cannot, do not call Park.
func (b *Backend) Parks() bool {
	p, ok := b.Backend.(backend.Parker)
	return ok && p.Parks()
}

// Park parks in the main backend.
func (b *Backend) Park(until backend.Time) (ready, slept bool, err error) {
	ready, slept, err = b.Backend.(backend.Parker).Park(b.armed(until))
	more, sideErr := b.side.Wait(backend.Time(0))
	return ready || more, slept, errors.Join(err, sideErr)
}

// Behind reports whether the main backend is behind.
func (b *Backend) Behind() bool {
	l, ok := b.Backend.(backend.Laggard)
	return ok && l.Behind()
}

// Direct works on the main backend's streams.
func (b *Backend) Direct(f backend.File) backend.Direct {
	if d, ok := b.Backend.(backend.Director); ok && f.Slot()&backend.SecondTable == 0 {
		return d.Direct(f)
	}
	return nil
}

// Pipe works on the main backend's streams.
func (b *Backend) Pipe(f backend.File, on bool) bool {
	s, ok := b.Backend.(backend.Splicer)
	return ok && f.Slot()&backend.SecondTable == 0 && s.Pipe(f, on)
}

// SendPiped works on the main backend's streams.
func (b *Backend) SendPiped(f backend.File) (n int, ok bool, err error) {
	if s, ok := b.Backend.(backend.Splicer); ok && f.Slot()&backend.SecondTable == 0 {
		return s.SendPiped(f)
	}
	return 0, false, nil
}

// Unpipe is called with completions of the main backend.
func (b *Backend) Unpipe(c *backend.Completion) { b.Backend.(backend.Splicer).Unpipe(c) }

// armed returns until, or a past time if std has a result waiting.
func (b *Backend) armed(until backend.Time) backend.Time {
	if !b.side.Arm() {
		return backend.Time(0)
	}
	return until
}

// Next takes the main backend's completions first.
func (b *Backend) Next(c *backend.Completion) bool {
	b.lender = b.Backend
	if b.Backend.Next(c) {
		return true
	}
	b.lender = b.side
	return b.side.Next(c)
}

func (b *Backend) Return(lent []byte) { b.lender.Return(lent) }

func (b *Backend) Close() error { return errors.Join(b.Backend.Close(), b.side.Close()) }
