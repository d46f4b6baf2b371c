//go:build unix

package readiness

import (
	"net"
	"net/netip"

	"github.com/rondo-go/rondo/internal/backend"
	"github.com/rondo-go/rondo/internal/share"
	"github.com/rondo-go/rondo/internal/sys"
)

var _ backend.PacketBackend = (*Backend)(nil)

// datagrams is the state for datagram sockets. It is empty until the first one.
type datagrams struct {
	sockets map[backend.File]*datagram
	memory  *sys.Packets
	got     []backend.Packet // from the last RecvFrom
}

// datagram is the part of a file that only datagram sockets have. It is a separate
// object because they are few.
type datagram struct {
	*sys.Datagram
	out *backend.SendToOp // in flight
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
	if b.memory == nil {
		b.memory = sys.NewPackets()
		b.sockets = make(map[backend.File]*datagram)
	}
	id := b.files.add(d.FD)
	b.files.get(id).datagram = true
	b.sockets[id] = &datagram{Datagram: d}
	if d.Path != "" {
		b.paths[id] = d.Path
	}
	return id, d.Local, nil
}

// socket returns the datagram socket of id, or nil if id is stale or closing.
func (b *Backend) socket(id backend.File) (*file, *datagram) {
	f := b.files.get(id)
	if f == nil || f.closing || !f.datagram {
		return nil, nil
	}
	return f, b.sockets[id]
}

func (b *Backend) Member(id backend.File, group netip.Addr, ifi *net.Interface, join bool) error {
	_, d := b.socket(id)
	if d == nil {
		return backend.ErrClosed
	}
	return d.Member(group, ifi, join)
}

func (b *Backend) Packets() []backend.Packet { return b.got }

// recvFrom receives a batch. The socket is watched level-triggered, because a short
// batch does not mean that the socket is empty: an error may be left.
func (b *Backend) recvFrom(f *file, c *backend.Completion) bool {
	got, err := b.memory.Recv(b.sockets[f.id()].Datagram)
	if got == nil && err == nil {
		return false
	}
	b.got = got
	*c = backend.Completion{Op: f.in, N: len(got), Err: err}
	f.in = nil
	return true
}

func (b *Backend) TrySendTo(id backend.File, packets []backend.Packet) (int, error) {
	f, d := b.socket(id)
	switch {
	case d == nil:
		return 0, backend.ErrClosed
	case d.out != nil:
		return 0, nil
	}
	n, err := b.memory.Send(d.Datagram, packets)
	f.full = n < len(packets) && err == nil
	return n, err
}

func (b *Backend) SendTo(op *backend.SendToOp) {
	f, d := b.socket(op.File)
	switch {
	case d == nil:
		b.done(&op.Op, 0, backend.ErrClosed)
		return
	case d.out != nil:
		panic("readiness: a SendTo was submitted while another is in flight on the same file")
	case len(op.Packets) == 0:
		b.done(&op.Op, 0, nil)
		return
	}
	op.Sent, op.Slot = 0, b.turn
	d.out, f.pending = op, true
	if !f.full {
		b.next.try = append(share.Queue(b.next.try), retry{op.File, false})
		return
	}
	if err := b.watch(f, f.watched|Out); err != nil {
		b.endSendTo(f, d, err)
	}
}

// endSendTo completes f's SendTo in the next turn.
func (b *Backend) endSendTo(f *file, d *datagram, err error) {
	b.done(&d.out.Op, d.out.Sent, err)
	d.out, f.pending = nil, false
}

// sendTo continues f's SendTo. It reports whether the SendTo completed.
func (b *Backend) sendTo(f *file, c *backend.Completion) bool {
	d := b.sockets[f.id()]
	op := d.out
	if op.Slot == b.turn {
		return false
	}
	n, err := b.memory.Send(d.Datagram, op.Packets[op.Sent:])
	op.Sent += n
	if op.Sent == len(op.Packets) || err != nil {
		d.out, f.pending = nil, false
		*c = backend.Completion{Op: &op.Op, N: op.Sent, Err: err}
		return true
	}
	f.full = true
	if err := b.watch(f, f.watched|Out); err != nil {
		b.endSendTo(f, d, err)
	}
	return false
}

// cancelPackets ends f's SendTo if it is op, or if op is nil.
func (b *Backend) cancelPackets(f *file, op *backend.Op, err error) {
	if d := b.sockets[f.id()]; d.out != nil && (op == nil || op == &d.out.Op) {
		b.endSendTo(f, d, err)
	}
}
