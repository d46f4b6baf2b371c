package std

import (
	"net"
	"net/netip"

	"github.com/rondo-go/rondo/internal/backend"
	"github.com/rondo-go/rondo/internal/sys"
)

var _ backend.PacketBackend = (*Backend)(nil)

// packets is the part of a file that only datagram sockets have. One goroutine receives
// a datagram for each RecvFrom; each SendTo has its own goroutine.
//
// got, buf and control belong to the receiving goroutine while a RecvFrom is in flight.
type packets struct {
	file   *file
	socket sys.PacketSocket
	recvs  chan *backend.Op  // holds the RecvFrom in flight; nil before the first one
	out    *backend.SendToOp // in flight
	sender func()            // the method value p.send

	got     [1]backend.Packet
	buf     []byte
	control []byte
	path    []byte // control memory for sending

	keepsFile bool
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
	f := &file{b: b, conn: c}
	f.packet = &packets{file: f, socket: c, path: make([]byte, sys.ControlSize)}
	f.packet.sender = f.packet.send
	return b.files.add(f), c.LocalAddr(), nil
}

// datagram returns the datagram socket of id, or nil if id is stale or closing.
func (b *Backend) datagram(id backend.File) *packets {
	if f := b.open(id); f != nil {
		return f.packet
	}
	return nil
}

func (b *Backend) Member(id backend.File, group netip.Addr, ifi *net.Interface, join bool) error {
	p := b.datagram(id)
	if p == nil {
		return backend.ErrClosed
	}
	return sys.Member(p.socket, group, ifi, join)
}

// Packets returns one packet: package net has no batches.
func (b *Backend) Packets() []backend.Packet {
	if b.packet == nil {
		return nil
	}
	return b.packet.got[:]
}

func (f *file) recvFrom(op *backend.Op) {
	p := f.packet
	if p == nil {
		f.b.done(op, errNotConnected)
		return
	}
	f.setIn(op)
	f.resumeReads()
	if p.recvs == nil {
		p.recvs = make(chan *backend.Op, 1)
		p.buf = make([]byte, backend.MaxPacket)
		p.control = make([]byte, sys.ControlSize)
		f.b.workers.Add(1)
		go p.receive()
	}
	p.recvs <- op
}

// receive is the receiving goroutine.
func (p *packets) receive() {
	defer p.file.b.workers.Done()
	for op := range p.recvs {
		err := sys.ReadPacket(p.socket, p.buf, p.control, &p.got[0])
		r := result{op: op, file: p.file, n: 1, err: plain(err)}
		if err != nil {
			r.n = 0
		}
		p.file.b.post(r)
	}
}

// release ends the receiving goroutine.
func (p *packets) release() {
	if p.recvs != nil {
		close(p.recvs)
	}
	if a, ok := p.socket.LocalAddr().(*net.UnixAddr); ok && !p.keepsFile {
		sys.Unlink(a.Name)
	}
}

// TrySendTo never sends: a write of package net may block.
func (b *Backend) TrySendTo(id backend.File, _ []backend.Packet) (int, error) {
	if b.datagram(id) == nil {
		return 0, backend.ErrClosed
	}
	return 0, nil
}

// SendTo starts a goroutine for op.
func (b *Backend) SendTo(op *backend.SendToOp) {
	p := b.datagram(op.File)
	switch {
	case p == nil:
		b.done(&op.Op, backend.ErrClosed)
		return
	case p.out != nil:
		panic("std: a SendTo was submitted while another is in flight on the same file")
	}
	p.out = op
	p.file.resumeWrites()
	b.workers.Add(1)
	go p.sender()
}

// send is the goroutine of a SendTo.
func (p *packets) send() {
	defer p.file.b.workers.Done()
	op := p.out
	r := result{op: &op.Op, file: p.file}
	for ; r.n < len(op.Packets); r.n++ {
		if err := sys.WritePacket(p.socket, p.path, &op.Packets[r.n]); err != nil {
			r.err = plain(err)
			break
		}
	}
	p.file.b.post(r)
}
