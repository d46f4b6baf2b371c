package sys

import (
	"net"
	"net/netip"
	"syscall"

	"github.com/rondo-go/rondo/internal/backend"
)

// ReadPacket receives one datagram through package net into p. p's bytes lie in buf;
// control is memory of ControlSize bytes.
func ReadPacket(c PacketSocket, buf, control []byte, p *backend.Packet) error {
	*p = backend.Packet{}
	var n, size, flags int
	var err error
	switch c := c.(type) {
	case *net.UDPConn:
		var from netip.AddrPort
		n, size, flags, from, err = c.ReadMsgUDPAddrPort(buf, control)
		p.Peer = netip.AddrPortFrom(from.Addr().Unmap(), from.Port())
	case *net.UnixConn:
		var from *net.UnixAddr
		n, size, flags, from, err = c.ReadMsgUnix(buf, nil)
		if from != nil {
			p.Name = from.Name
		}
	}
	if p.Truncated, err = cut(flags, err); err != nil {
		return err
	}
	p.Data = buf[:n:n]
	parseControl(control[:size], p)
	return nil
}

// WritePacket sends p through package net. control is as in ReadPacket.
func WritePacket(c PacketSocket, control []byte, p *backend.Packet) error {
	var err error
	switch c := c.(type) {
	case *net.UDPConn:
		if p.Local.IsValid() || p.Interface != 0 {
			local, _ := c.LocalAddr().(*net.UDPAddr)
			control = pathControl(control, local.IP.To4() == nil, p.Local, p.Interface)
		} else {
			control = nil
		}
		_, _, err = c.WriteMsgUDPAddrPort(p.Data, control, p.Peer)
	case *net.UnixConn:
		if p.Name == "" {
			_, err = c.Write(p.Data)
		} else {
			_, err = c.WriteToUnix(p.Data, &net.UnixAddr{Name: p.Name, Net: "unixgram"})
		}
	}
	return err
}

// Member joins or leaves a multicast group on a socket of package net.
func Member(c PacketSocket, group netip.Addr, ifi *net.Interface, join bool) error {
	return Control(c, func(fd uintptr) error { return member(fd, group, ifi, join) })
}

// Control calls f with the descriptor of a socket of package net.
func Control(c syscall.Conn, f func(fd uintptr) error) error {
	rc, err := c.SyscallConn()
	if err != nil {
		return err
	}
	return control(rc, f)
}
