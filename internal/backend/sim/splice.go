package sim

import (
	"os"
	"syscall"

	"github.com/rondo-go/rondo/internal/backend"
)

var _ backend.Splicer = (*Backend)(nil)

// Pipe implements backend.Splicer.
func (b *Backend) Pipe(id backend.File, on bool) bool {
	b.enter("Pipe")
	defer b.net.mu.Unlock()
	f := b.file(id)
	if f == nil || f.end == nil {
		return false
	}
	f.piped = on
	return on
}

// fill receives n bytes of e into the pipe.
func (b *Backend) fill(e *end, n int, c *backend.Completion) {
	b.piped = append(b.piped[:0], make([]byte, n)...)
	c.N, c.Err = e.read(b.piped)
	c.Piped = true
}

// SendPiped implements backend.Splicer.
func (b *Backend) SendPiped(id backend.File) (n int, ok bool, err error) {
	b.enter("SendPiped")
	defer b.net.mu.Unlock()
	f, p := b.file(id), b.piped
	switch faults := &b.net.opt.Faults; {
	case f == nil:
		return 0, false, backend.ErrClosed
	case f.end == nil:
		return 0, false, os.NewSyscallError("splice", syscall.ENOTCONN)
	case f.inFlight(backend.Send) != nil, len(p) == 0, b.rand.chance(faults.Block):
		return 0, true, nil
	case b.rand.chance(faults.ShortWrite):
		p = p[:1+b.rand.intn(len(p))]
	}
	n, err = f.end.write(p)
	b.piped = b.piped[:copy(b.piped, b.piped[n:])]
	return n, true, err
}

// Unpipe implements backend.Splicer.
func (b *Backend) Unpipe(c *backend.Completion) {
	b.enter("Unpipe")
	defer b.net.mu.Unlock()
	if !c.Piped {
		b.breach("Unpipe was given a completion whose bytes are not in the pipe")
	}
	n := len(b.piped)
	if c.N, c.Piped = n, false; n > 0 {
		c.Lent = b.lendFor(n)
		copy(c.Lent[backend.Headroom:], b.piped)
		b.piped = b.piped[:0]
	}
}
