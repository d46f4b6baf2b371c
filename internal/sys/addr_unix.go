//go:build unix

package sys

import (
	"fmt"
	"net"
	"net/netip"
	"strconv"

	"golang.org/x/sys/unix"
)

// LocalAddr returns fd's own address, or nil if it has none.
func LocalAddr(fd int) net.Addr {
	sa, err := unix.Getsockname(fd)
	return netAddr(sa, err)
}

// RemoteAddr returns the address of fd's peer, or nil if it has none, or no longer.
func RemoteAddr(fd int) net.Addr {
	sa, err := unix.Getpeername(fd)
	return netAddr(sa, err)
}

func netAddr(sa unix.Sockaddr, err error) net.Addr {
	if err != nil {
		return nil
	}
	if u, ok := sa.(*unix.SockaddrUnix); ok {
		return &net.UnixAddr{Name: u.Name, Net: "unix"}
	}
	if ap := addrPort(sa); ap.IsValid() {
		return net.TCPAddrFromAddrPort(ap)
	}
	return nil
}

// addrPort returns the address of an IP socket, or the zero AddrPort.
func addrPort(sa unix.Sockaddr) netip.AddrPort {
	switch sa := sa.(type) {
	case *unix.SockaddrInet4:
		return netip.AddrPortFrom(netip.AddrFrom4(sa.Addr), uint16(sa.Port))
	case *unix.SockaddrInet6:
		a := netip.AddrFrom16(sa.Addr).Unmap()
		if a.Is6() && sa.ZoneId != 0 {
			a = a.WithZone(zoneName(sa.ZoneId))
		}
		return netip.AddrPortFrom(a, uint16(sa.Port))
	}
	return netip.AddrPort{}
}

func zoneName(id uint32) string {
	if i, err := net.InterfaceByIndex(int(id)); err == nil {
		return i.Name
	}
	return strconv.FormatUint(uint64(id), 10)
}

// sockaddr returns the system's form of a, and its socket domain.
func sockaddr(a net.Addr) (unix.Sockaddr, int, error) {
	switch a := a.(type) {
	case *net.UnixAddr:
		return &unix.SockaddrUnix{Name: a.Name}, unix.AF_UNIX, nil
	case *net.TCPAddr:
		ip := ipOf(a)
		if ip.Is4() {
			return &unix.SockaddrInet4{Port: a.Port, Addr: ip.As4()}, unix.AF_INET, nil
		}
		sa := &unix.SockaddrInet6{Port: a.Port, Addr: ip.As16()}
		if a.Zone != "" {
			sa.ZoneId = zoneID(a.Zone)
		}
		return sa, unix.AF_INET6, nil
	}
	return nil, 0, fmt.Errorf("cannot use %v (%T) as the address of a stream socket: want *net.TCPAddr or *net.UnixAddr", a, a)
}

// ipOf returns the IP of a; of an empty one, that which stands for all.
func ipOf(a *net.TCPAddr) netip.Addr {
	if a.IP == nil {
		return netip.IPv6Unspecified()
	}
	ip, _ := netip.AddrFromSlice(a.IP)
	return ip.Unmap()
}

func zoneID(name string) uint32 {
	if i, err := net.InterfaceByName(name); err == nil {
		return uint32(i.Index)
	}
	id, _ := strconv.ParseUint(name, 10, 32)
	return uint32(id)
}
