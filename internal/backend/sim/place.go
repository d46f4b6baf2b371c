package sim

import (
	"fmt"
	"net"
	"net/netip"
	"strconv"
	"strings"
)

// A place is an address to listen on or connect to: a TCP address or the name of a unix
// socket.
type place struct {
	unix bool
	name string         // unix
	tcp  netip.AddrPort // TCP address; never IPv4 mapped into IPv6
	dual bool           // the IPv6 wildcard that takes IPv4 too
}

// parse parses an address as a user writes it. The only name it knows is localhost.
func parse(network, address string) (place, error) {
	switch network {
	case "unix":
		return place{unix: true, name: address}, nil
	case "tcp", "tcp4", "tcp6":
	default:
		return place{}, net.UnknownNetworkError(network)
	}
	host, port, err := net.SplitHostPort(address)
	if err != nil {
		return place{}, err
	}
	number, err := strconv.ParseUint(port, 10, 16)
	if err != nil {
		return place{}, &net.AddrError{Err: "port is not a number from 0 to 65535", Addr: address}
	}
	ip, err := parseHost(network, host)
	if err != nil {
		return place{}, &net.AddrError{Err: err.Error(), Addr: address}
	}
	p := place{dual: network == "tcp" && ip.IsUnspecified()}
	if p.dual {
		ip = netip.IPv6Unspecified() // like package net: one socket for both
	}
	if network == "tcp4" && !ip.Is4() || network == "tcp6" && ip.Is4() {
		return place{}, &net.AddrError{Err: "no suitable address for " + network, Addr: address}
	}
	p.tcp = netip.AddrPortFrom(ip, uint16(number))
	return p, nil
}

func parseHost(network, host string) (netip.Addr, error) {
	switch {
	case host == "" && network == "tcp4":
		return netip.IPv4Unspecified(), nil
	case host == "":
		return netip.IPv6Unspecified(), nil
	case host == "localhost" && network == "tcp6":
		return netip.IPv6Loopback(), nil
	case host == "localhost":
		return netip.AddrFrom4([4]byte{127, 0, 0, 1}), nil
	}
	ip, err := netip.ParseAddr(host)
	if err != nil {
		return ip, fmt.Errorf("the simulated network has no names: want an IP address, not %q", host)
	}
	return ip.Unmap(), nil
}

// placeOf converts an address of package net.
func placeOf(a net.Addr) (place, error) {
	switch a := a.(type) {
	case *net.UnixAddr:
		return place{unix: true, name: a.Name}, nil
	case *net.TCPAddr:
		ap := a.AddrPort()
		if !ap.Addr().IsValid() {
			return place{tcp: netip.AddrPortFrom(netip.IPv6Unspecified(), ap.Port()), dual: true}, nil
		}
		return place{tcp: netip.AddrPortFrom(ap.Addr().Unmap(), ap.Port())}, nil
	}
	return place{}, fmt.Errorf("address of type %T: want *net.TCPAddr or *net.UnixAddr", a)
}

func (p place) addr() net.Addr {
	if p.unix {
		return &net.UnixAddr{Name: p.name, Net: "unix"}
	}
	return net.TCPAddrFromAddrPort(p.tcp)
}

func (p place) abstract() bool { return p.unix && (p.name == "" || strings.HasPrefix(p.name, "@")) }

// withPort returns p with another port.
func (p place) withPort(port uint16) place {
	p.tcp = netip.AddrPortFrom(p.tcp.Addr(), port)
	return p
}

// takes reports whether a socket at p is reached by connecting to q.
func (p place) takes(q place) bool {
	if p.unix || q.unix {
		return p.unix == q.unix && p.name == q.name
	}
	if p.tcp.Port() != q.tcp.Port() {
		return false
	}
	mine, its := p.tcp.Addr(), q.tcp.Addr()
	return mine == its || mine.IsUnspecified() && (p.dual || mine.Is4() == its.Is4())
}

// collides reports whether p and q cannot both be bound.
func (p place) collides(q place) bool { return p.takes(q) || q.takes(p) }

// here returns p as seen from its own host: the wildcard becomes loopback.
func (p place) here() place {
	if p.unix || !p.tcp.Addr().IsUnspecified() {
		return p
	}
	ip := netip.IPv6Loopback()
	if p.tcp.Addr().Is4() || p.dual {
		ip = netip.AddrFrom4([4]byte{127, 0, 0, 1})
	}
	p.tcp, p.dual = netip.AddrPortFrom(ip, p.tcp.Port()), false
	return p
}
