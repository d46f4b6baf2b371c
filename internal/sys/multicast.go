package sys

import (
	"fmt"
	"net"
	"net/netip"
	"os"
	"syscall"
)

// member joins or leaves a multicast group on a socket (ip(7), ipv6(7)).
func member(fd uintptr, group netip.Addr, ifi *net.Interface, join bool) error {
	group = group.Unmap()
	if !group.IsMulticast() {
		return fmt.Errorf("%v is not a multicast group", group)
	}
	if group.Is4() {
		mreq := &syscall.IPMreq{Multiaddr: group.As4()}
		if ifi != nil {
			a, err := addressOf(ifi)
			if err != nil {
				return err
			}
			mreq.Interface = a
		}
		option, name := syscall.IP_ADD_MEMBERSHIP, "setsockopt IP_ADD_MEMBERSHIP"
		if !join {
			option, name = syscall.IP_DROP_MEMBERSHIP, "setsockopt IP_DROP_MEMBERSHIP"
		}
		return Portable(os.NewSyscallError(name, syscall.SetsockoptIPMreq(descriptor(fd), syscall.IPPROTO_IP, option, mreq)))
	}
	mreq := &syscall.IPv6Mreq{Multiaddr: group.As16()}
	if ifi != nil {
		mreq.Interface = uint32(ifi.Index)
	}
	option, name := syscall.IPV6_JOIN_GROUP, "setsockopt IPV6_JOIN_GROUP"
	if !join {
		option, name = syscall.IPV6_LEAVE_GROUP, "setsockopt IPV6_LEAVE_GROUP"
	}
	return Portable(os.NewSyscallError(name, syscall.SetsockoptIPv6Mreq(descriptor(fd), syscall.IPPROTO_IPV6, option, mreq)))
}

// addressOf returns an IPv4 address of ifi, which identifies the interface to the
// system here.
func addressOf(ifi *net.Interface) (a [4]byte, err error) {
	addrs, err := ifi.Addrs()
	if err != nil {
		return a, err
	}
	for _, addr := range addrs {
		if n, ok := addr.(*net.IPNet); ok && n.IP.To4() != nil {
			return [4]byte(n.IP.To4()), nil
		}
	}
	return a, fmt.Errorf("interface %s has no IPv4 address, so it cannot join or leave an IPv4 group", ifi.Name)
}
