//go:build unix

package readiness

import (
	"github.com/rondo-go/rondo/internal/backend"
	"github.com/rondo-go/rondo/internal/sys"
)

// piping is the pipe of a Backend, for Recvs without a Buf on files that are piped. It is
// empty between two calls of Next, so one pipe serves all files.
type piping struct {
	pipe  *sys.Pipe // nil: none was wanted yet
	piped int       // bytes in the pipe
}

// Pipe implements backend.Splicer.
func (b *Backend) Pipe(id backend.File, on bool) bool {
	f := b.files.get(id)
	if f == nil || f.closing || f.datagram {
		return false
	}
	if f.piped = false; !on || f.shared {
		return false
	}
	if b.pipe == nil {
		p, err := sys.NewPipe()
		if err != nil {
			return false
		}
		b.pipe = p
	}
	f.piped = true
	return true
}

// SendPiped implements backend.Splicer.
func (b *Backend) SendPiped(id backend.File) (n int, ok bool, err error) {
	f := b.files.get(id)
	switch {
	case f == nil || f.closing:
		return 0, false, backend.ErrClosed
	case f.shared || f.datagram:
		return 0, false, nil
	case f.out != nil || b.piped == 0:
		return 0, true, nil
	}
	n, err = b.pipe.Send(f.fd(), b.piped)
	b.piped -= n
	if f.lost {
		err = lostError(err)
	}
	// If the connection was reset during the call, the next call shows only that it has ended.
	f.lost = f.lost || n > 0 && b.piped > 0 && !f.hup && sys.HungUp(uintptr(f.fd()))
	// splice(2) may be short though there is room. Then only a new interest in output has the
	// system look again; with an old one the next Send has to try.
	f.full = b.piped > 0 && f.watched&Out == 0
	return n, true, err
}

// Unpipe implements backend.Splicer.
func (b *Backend) Unpipe(c *backend.Completion) {
	n := 0
	for p := b.lend[backend.Headroom:]; b.piped > 0; {
		k := b.pipe.Read(p[n:][:b.piped])
		if k <= 0 {
			panic("readiness: the pipe has lost bytes")
		}
		n += k
		b.piped -= k
	}
	c.N, c.Piped, c.Lent = n, false, nil
	if n > 0 {
		c.Lent = b.lend[:backend.Headroom+n]
	}
}

// fill receives into the pipe. It reports whether the Recv completed; otherwise an ordinary
// receive must find out why there is no input.
func (b *Backend) fill(f *file, c *backend.Completion) bool {
	if b.piped > 0 { // a Handler that panicked has left it
		b.Unpipe(c)
	}
	n, err := b.pipe.Fill(f.fd(), backend.LendSize)
	if n == 0 && err == nil {
		return false
	}
	// The pipe may be full of short pieces, so a short result does not mean that the socket is
	// empty.
	f.more = true
	f.hup = f.hup || err != nil
	b.piped = n
	*c = backend.Completion{Op: f.in, N: n, Err: err, Piped: n > 0}
	f.in = nil
	return true
}
