package sys

import (
	"context"
	"errors"
	"fmt"
	"net"
	"os"
	"syscall"

	"github.com/rondo-go/rondo/internal/backend"
)

// A PacketSocket is a datagram socket of package net.
type PacketSocket interface {
	net.Conn
	net.PacketConn
	syscall.Conn
}

// ListenPacket opens a datagram socket through package net, as Listen does. The file of
// a unixgram socket outlives the socket: the final owner of the descriptor calls
// Unlink.
func ListenPacket(network, address string, s *backend.Socket) (PacketSocket, error) {
	if s.Packets != nil {
		return takeOverPacket(s.Packets, network, s)
	}
	if err := packetNetwork(network); err != nil {
		return nil, err
	}
	lc := net.ListenConfig{Control: func(network, _ string, c syscall.RawConn) error {
		return control(c, func(fd uintptr) error { return beforeBindPacket(fd, network, s) })
	}}
	pc, err := lc.ListenPacket(context.Background(), network, address)
	if err = Portable(err); network == "unixgram" && errors.Is(err, syscall.EADDRINUSE) && stale(network, address) {
		os.Remove(address)
		pc, err = lc.ListenPacket(context.Background(), network, address)
	}
	if err != nil {
		return nil, Portable(err)
	}
	c := pc.(PacketSocket)
	if err := afterBind(c, network, s); err != nil {
		c.Close()
		return nil, err
	}
	if network == "unixgram" && s.UnixMode != 0 && !Abstract(address) {
		if err := os.Chmod(address, s.UnixMode.Perm()); err != nil {
			Unlink(address)
			c.Close()
			return nil, err
		}
	}
	return c, nil
}

// takeOverPacket returns a socket that listens already, after setting s's options.
func takeOverPacket(pc net.PacketConn, network string, s *backend.Socket) (PacketSocket, error) {
	c, ok := pc.(PacketSocket)
	if !ok {
		pc.Close()
		return nil, fmt.Errorf("a %T is not a datagram socket of the system: %w", pc, errors.ErrUnsupported)
	}
	if err := afterBind(c, network, s); err != nil {
		c.Close()
		return nil, err
	}
	return c, nil
}

// DialPacket opens a connected datagram socket. local may be "".
func DialPacket(network, local, remote string, s *backend.Socket) (PacketSocket, error) {
	if err := packetNetwork(network); err != nil {
		return nil, err
	}
	d := net.Dialer{Control: func(network, _ string, c syscall.RawConn) error {
		return control(c, func(fd uintptr) error { return beforeBindPacket(fd, network, s) })
	}}
	var err error
	switch {
	case local == "":
	case network == "unixgram":
		d.LocalAddr = &net.UnixAddr{Name: local, Net: network}
	default:
		d.LocalAddr, err = net.ResolveUDPAddr(network, local)
	}
	if err != nil {
		return nil, err
	}
	nc, err := d.Dial(network, remote)
	if err != nil {
		return nil, Portable(err)
	}
	c := nc.(PacketSocket)
	if err := afterBind(c, network, s); err != nil {
		c.Close()
		return nil, err
	}
	return c, nil
}

func packetNetwork(network string) error {
	switch network {
	case "udp", "udp4", "udp6", "unixgram":
		return nil
	}
	return net.UnknownNetworkError(network)
}

// afterBind sets the options that package net would override, and those that depend on
// the address.
func afterBind(c PacketSocket, network string, s *backend.Socket) error {
	wild := false
	if a, ok := c.LocalAddr().(*net.UDPAddr); ok {
		wild = a.IP == nil || a.IP.IsUnspecified() || a.IP.IsMulticast()
	}
	return Control(c, func(fd uintptr) error { return packetOptions(fd, network, wild, s) })
}
