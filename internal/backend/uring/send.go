//go:build linux

package uring

import (
	"errors"
	"os"
	"syscall"
	"unsafe"

	"golang.org/x/sys/unix"

	"github.com/rondo-go/rondo/internal/backend"
	"github.com/rondo-go/rondo/internal/share"
	"github.com/rondo-go/rondo/internal/sys"
)

// maxSend limits one request, because its result has 31 bits.
const maxSend = 1 << 30

func address(p []byte) uint64 { return uint64(uintptr(unsafe.Pointer(unsafe.SliceData(p)))) }

func size32(p []byte) uint32 { return uint32(min(len(p), maxSend)) }

func (b *Backend) TrySend(id backend.File, p []byte) (int, error) {
	f := b.files.get(id)
	if f == nil || f.flags&closing != 0 {
		return 0, backend.ErrClosed
	}
	if f.out != nil {
		return 0, nil
	}
	return sys.Send(f.fd(), p)
}

func (b *Backend) Send(op *backend.SendOp) {
	f := b.files.get(op.File)
	if f == nil || f.flags&closing != 0 {
		b.done(&op.Op, 0, backend.ErrClosed)
		return
	}
	if f.out != nil {
		panic("uring: a Send was submitted while another is in flight on the same file")
	}
	op.Sent = 0
	if op.From.File != nil {
		if err := b.refill(op); err != nil {
			b.done(&op.Op, 0, err)
			return
		}
	}
	op.Bufs = sys.Consume(op.Bufs, 0)
	if len(op.Bufs) == 0 {
		b.done(&op.Op, 0, nil)
		return
	}
	f.out = op
	b.transmit(f)
}

// refill makes the next piece of op's Source its Bufs. A splice through a pipe would save the
// copy, and cost a pipe for each Send and a link of two requests for each 64 KiB.
func (b *Backend) refill(op *backend.SendOp) error {
	if op.Buf == nil {
		if last := len(b.pieces) - 1; last >= 0 {
			op.Buf, b.pieces = b.pieces[last], b.pieces[:last]
		} else {
			op.Buf = make([]byte, backend.SourcePiece)
		}
	}
	n, err := op.From.Read(op.Buf, op.Sent)
	if err != nil {
		b.freePiece(op)
		return err
	}
	op.Bufs = append(op.Bufs[:0], op.Buf[:n])
	return nil
}

// keepPieces is how many unused buffers for Sources a backend keeps.
const keepPieces = 4

func (b *Backend) freePiece(op *backend.SendOp) {
	if op.Buf != nil {
		if len(b.pieces) < keepPieces {
			b.pieces = append(b.pieces, op.Buf)
		}
		op.Buf = nil
	}
}

// transmit makes the kernel send f.out's remaining bytes, or the first part of them.
// The request completes when it has sent all of its bytes.
func (b *Backend) transmit(f *file) {
	bufs := f.out.Bufs
	s := b.request(opSend, f.fd(), f.userData(tagOut))
	s.opFlags = unix.MSG_NOSIGNAL | unix.MSG_WAITALL
	if len(bufs) == 1 || len(bufs[0]) > maxSend {
		s.addr, s.len = address(bufs[0]), size32(bufs[0])
		return
	}
	s.opcode = opSendMsg
	s.addr = uint64(uintptr(unsafe.Pointer(b.vectors.header(bufs))))
	s.len = 1
}

// sent handles the completion of transmit. If a request sends some bytes and then gets an
// error, the kernel completes it with the number of bytes, and the error is lost: the next
// request gets EPIPE. The peer may have reset the connection, so that is what a Send
// reports then: after EPIPE the engine takes the end of the input for the peer's.
func (b *Backend) sent(f *file, e *cqe, c *backend.Completion) bool {
	op := f.out
	if e.res > 0 {
		op.Sent += int(e.res)
		op.Bufs = sys.Consume(op.Bufs, int(e.res))
	}
	var err error
	if e.res > 0 && f.flags&(closing|outEnding) == outEnding {
		err = f.sendOn(op)
	}
	isShort := len(op.Bufs) > 0
	if !isShort && op.From.File != nil && op.Sent < op.From.Count && f.flags&(closing|outEnding) == 0 {
		err = b.refill(op)
	}
	switch errno := syscall.Errno(-e.res); {
	case err != nil:
	case len(op.Bufs) == 0 && (op.From.File == nil || op.Sent == op.From.Count):
	case f.flags&closing != 0:
		err = backend.ErrClosed
	case e.res < 0 && !passing(errno):
		if errno == syscall.EPIPE && f.flags&outShort != 0 {
			errno = syscall.ECONNRESET
		}
		err = os.NewSyscallError("send", errno)
	case f.flags&outEnding != 0:
		err = backend.ErrCanceled
	default:
		if e.res > 0 {
			f.flags &^= outShort
		}
		if e.res > 0 && isShort {
			f.flags |= outShort
		}
		b.transmit(f)
		return false
	}
	b.freePiece(op)
	*c = backend.Completion{Op: &op.Op, N: op.Sent, Err: err}
	f.out = nil
	f.flags &^= outEnding | outShort
	if f.flags&closing != 0 {
		b.closeIdle(f)
	} else if f.last != nil {
		b.done(f.last, 0, nil)
		f.last = nil
	}
	return true
}

// sendOn tries to continue a canceled Send of which a request has sent some bytes. The cancel
// may not be why the request is short: only this finds an error that the kernel has lost, and
// without it the end of the input that follows a reset would look like the peer's.
func (f *file) sendOn(op *backend.SendOp) error {
	if len(op.Bufs) == 0 {
		return nil
	}
	n, err := sys.Send(f.fd(), op.Bufs[0])
	op.Sent += n
	op.Bufs = sys.Consume(op.Bufs, n)
	if errors.Is(err, syscall.EPIPE) {
		err = os.NewSyscallError("send", syscall.ECONNRESET)
	}
	return err
}

// arenas hold the headers of submissions with several buffers. The kernel reads them
// when it takes the submission; then reset may reuse them.
type arenas struct {
	all  []*arena
	used int
}

type arena struct {
	headers []unix.Msghdr
	vectors []unix.Iovec
}

const (
	arenaHeaders = 32
	arenaVectors = 256
	maxVectors   = 64 // in one submission
	keepArenas   = 4
)

// header returns a header for the first of bufs.
func (a *arenas) header(bufs [][]byte) *unix.Msghdr {
	bufs = bufs[:min(len(bufs), maxVectors)]
	m := a.room(len(bufs))
	first := len(m.vectors)
	total := 0
	for _, p := range bufs {
		if total += len(p); total > maxSend {
			break
		}
		if len(p) > 0 {
			v := unix.Iovec{Base: unsafe.SliceData(p)}
			v.SetLen(len(p))
			m.vectors = append(m.vectors, v)
		}
	}
	h := unix.Msghdr{Iov: &m.vectors[first]}
	h.SetIovlen(len(m.vectors) - first)
	m.headers = append(m.headers, h)
	return &m.headers[len(m.headers)-1]
}

// room returns an arena with room for a header and so many vectors.
func (a *arenas) room(vectors int) *arena {
	if a.used > 0 {
		m := a.all[a.used-1]
		if len(m.headers) < arenaHeaders && len(m.vectors)+vectors <= arenaVectors {
			return m
		}
	}
	if a.used == len(a.all) {
		a.all = append(share.Queue(a.all), &arena{make([]unix.Msghdr, 0, arenaHeaders), make([]unix.Iovec, 0, arenaVectors)})
	}
	a.used++
	return a.all[a.used-1]
}

// reset empties the arenas.
func (a *arenas) reset() {
	if a.used == 0 {
		return
	}
	for _, m := range a.all[:a.used] {
		clear(m.headers)
		clear(m.vectors)
		m.headers, m.vectors = m.headers[:0], m.vectors[:0]
	}
	a.used = 0
	if len(a.all) > keepArenas {
		clear(a.all[keepArenas:])
		a.all = a.all[:keepArenas]
	}
}
