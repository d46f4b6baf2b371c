//go:build linux

package uring

import (
	"net"
	"net/netip"
	"slices"
	"syscall"
	"unsafe"

	"golang.org/x/sys/unix"

	"github.com/rondo-go/rondo/internal/backend"
	"github.com/rondo-go/rondo/internal/sys"
)

var _ backend.PacketBackend = (*Backend)(nil)

// datagram is the part of a file that only datagram sockets have. It is a separate
// object because they are few.
type datagram struct {
	*sys.Datagram
	letters []receivedPacket  // received, not yet delivered
	out     *backend.SendToOp // in flight
}

func (b *Backend) ListenPacket(network, address string, s *backend.Socket) (backend.File, net.Addr, error) {
	return b.packetFile(sys.ListenPacket(network, address, s))
}

func (b *Backend) DialPacket(network, local, remote string, s *backend.Socket) (backend.File, net.Addr, error) {
	return b.packetFile(sys.DialPacket(network, local, remote, s))
}

// packetFile makes a File of a socket.
func (b *Backend) packetFile(c sys.PacketSocket, err error) (backend.File, net.Addr, error) {
	if err != nil {
		return 0, nil, err
	}
	d, err := sys.TakePacket(c)
	if err != nil {
		return 0, nil, err
	}
	if b.packets.memory == nil {
		if err := b.packets.open(b.ring, len(b.bufs.parts)); err != nil {
			sys.Unlink(d.Path)
			sys.Close(d.FD)
			return 0, nil, err
		}
	}
	f := b.files.add(d.FD)
	f.flags |= packets
	b.packets.sockets[f.id()] = &datagram{Datagram: d}
	if d.Path != "" {
		b.paths[f.id()] = d.Path
	}
	return f.id(), d.Local, nil
}

// socket returns the datagram socket of id, or nil if id is stale or closing.
func (b *Backend) socket(id backend.File) (*file, *datagram) {
	f := b.files.get(id)
	if f == nil || f.flags&(closing|packets) != packets {
		return nil, nil
	}
	return f, b.packets.sockets[id]
}

func (b *Backend) Member(id backend.File, group netip.Addr, ifi *net.Interface, join bool) error {
	_, d := b.socket(id)
	if d == nil {
		return backend.ErrClosed
	}
	return d.Member(group, ifi, join)
}

func (b *Backend) Packets() []backend.Packet { return b.packets.got }

// gather starts a multishot receive for f.in, which puts each datagram into a buffer of
// the packetRing.
func (b *Backend) gather(f *file) {
	s := b.request(opRecvMsg, f.fd(), f.userData(tagIn))
	s.flags = sqeBufferSelect
	s.bufGroup = packetGroup
	s.ioprio = recvMultishot
	s.addr = uint64(uintptr(unsafe.Pointer(&b.packets.header)))
	s.len = 1
	f.at = gathers
}

// gathered handles a completion of gather: a datagram or an error. Datagrams of one
// turn are delivered together.
func (b *Backend) gathered(f *file, e *cqe) {
	number := uint16(none)
	if e.flags&cqeBuffer != 0 {
		number = uint16(e.flags >> cqeBufferShift)
	}
	if number != none && (e.res < int32(mailData) || f.flags&closing != 0) {
		b.packets.putBack(number)
	}
	errno := syscall.Errno(-e.res)
	switch {
	case f.flags&closing != 0, e.res < 0 && passing(errno):
		return
	case e.res >= int32(mailData):
		d := b.packets.sockets[f.id()]
		d.letters = append(d.letters, receivedPacket{b.packets.at(number)[:e.res], number})
		f.flags |= packetsWaiting
	case errno == unix.ENOBUFS:
		f.flags |= readable // there was a datagram, but no buffer for it
	default:
		f.endInput(errno)
	}
	if !f.asks(b.turn) {
		b.feed(f)
	} else if f.flags&fed == 0 {
		f.flags |= fed
		b.now.fed = append(b.now.fed, f.id())
	}
}

// deliverPackets completes f.in, a RecvFrom, with undelivered datagrams or an error.
func (b *Backend) deliverPackets(f *file, c *backend.Completion) bool {
	d := b.packets.sockets[f.id()]
	*c = backend.Completion{Op: f.in}
	switch {
	case f.flags&packetsWaiting != 0:
		c.N = b.packets.hand(d)
		if len(d.letters) == 0 {
			f.flags &^= packetsWaiting
		}
	case f.flags&ended != 0:
		c.Err = f.takeEnd("recvmsg")
	default:
		f.flags &^= readable
		b.packets.got, c.Err = b.packets.calls.Recv(d.Datagram)
		if c.N = len(b.packets.got); c.N == 0 && c.Err == nil {
			return false
		}
	}
	f.in = nil
	return true
}

// keepPackets copies undelivered datagrams out of the packetRing.
func (b *Backend) keepPackets(f *file) {
	if f.flags&packetsWaiting == 0 {
		return
	}
	d := b.packets.sockets[f.id()]
	for i, l := range d.letters {
		if l.buffer != none {
			d.letters[i] = receivedPacket{slices.Clone(l.bytes), none}
			b.packets.putBack(l.buffer)
		}
	}
}

// TrySendTo makes the same system call as readiness does: io_uring has none that costs
// less.
func (b *Backend) TrySendTo(id backend.File, packets []backend.Packet) (int, error) {
	_, d := b.socket(id)
	switch {
	case d == nil:
		return 0, backend.ErrClosed
	case d.out != nil:
		return 0, nil
	}
	return b.packets.calls.Send(d.Datagram, packets)
}

func (b *Backend) SendTo(op *backend.SendToOp) {
	f, d := b.socket(op.File)
	switch {
	case d == nil:
		b.done(&op.Op, 0, backend.ErrClosed)
		return
	case d.out != nil:
		panic("uring: a SendTo was submitted while another is in flight on the same file")
	case len(op.Packets) == 0:
		b.done(&op.Op, 0, nil)
		return
	}
	op.Sent, op.Slot = 0, b.turn
	d.out = op
	b.awaitRoom(f)
}

// awaitRoom polls until f's socket can take datagrams.
func (b *Backend) awaitRoom(f *file) {
	if f.flags&sendWaits != 0 {
		return
	}
	f.flags |= sendWaits
	b.request(opPollAdd, f.fd(), f.userData(tagSendTo)).setEvents(unix.POLLOUT)
}

// canSendTo continues f's SendTo. It reports whether the SendTo completed.
func (b *Backend) canSendTo(f *file, e *cqe, c *backend.Completion) bool {
	f.flags &^= sendWaits
	d := b.packets.sockets[f.id()]
	op := d.out
	switch {
	case op == nil:
		b.closeIdle(f)
		return false
	case op.Slot == b.turn, e.res < 0 && passing(syscall.Errno(-e.res)):
		b.awaitRoom(f)
		return false
	}
	n, err := b.packets.calls.Send(d.Datagram, op.Packets[op.Sent:])
	if op.Sent += n; op.Sent < len(op.Packets) && err == nil {
		b.awaitRoom(f)
		return false
	}
	d.out = nil
	*c = backend.Completion{Op: &op.Op, N: op.Sent, Err: err}
	return true
}

// cancelSendTo cancels op if it is f's SendTo.
func (b *Backend) cancelSendTo(f *file, op *backend.Op) {
	if d := b.packets.sockets[f.id()]; d.out != nil && op == &d.out.Op {
		b.done(op, d.out.Sent, backend.ErrCanceled)
		d.out = nil
	}
}

// endPackets ends the SendTo of a closing datagram socket and discards its undelivered
// datagrams. startClose ends its RecvFrom.
func (b *Backend) endPackets(f *file) {
	d := b.packets.sockets[f.id()]
	if d.out != nil {
		b.done(&d.out.Op, d.out.Sent, backend.ErrClosed)
		d.out = nil
	}
	if f.flags&sendWaits != 0 {
		b.cancel(f.userData(tagSendTo))
	}
	for _, l := range d.letters {
		if l.buffer != none {
			b.packets.putBack(l.buffer)
		}
	}
	d.letters = nil
	f.flags &^= packetsWaiting
}
