//go:build unix

package sys

import (
	"net"
	"net/netip"
	"os"
	"time"

	"golang.org/x/sys/unix"

	"github.com/rondo-go/rondo/internal/backend"
)

// A Datagram is a datagram socket's descriptor and state.
type Datagram struct {
	FD            int
	Local, Remote net.Addr // Remote: of a connected socket
	Path          string   // of the file to remove at the end; "": none

	v6     bool // addresses are IPv6 addresses, including IPv4's
	single bool // the system cannot segment: see Packets.Send
	long   int  // the system refused to segment packets of this size; 0: none yet
}

// TakePacket makes a Datagram of c's descriptor and closes c.
func TakePacket(c PacketSocket) (*Datagram, error) {
	d := &Datagram{Local: c.LocalAddr(), Remote: c.RemoteAddr()}
	if a, ok := d.Local.(*net.UnixAddr); ok {
		d.single = true
		if !Abstract(a.Name) {
			d.Path = a.Name
		}
	}
	defer c.Close()
	var err error
	if d.FD, err = Duplicate(c); err != nil {
		return nil, err
	}
	sa, _ := unix.Getsockname(d.FD)
	_, d.v6 = sa.(*unix.SockaddrInet6)
	return d, nil
}

// descriptor is package syscall's type of a descriptor.
type descriptor = int

// beforeBindPacket sets the options that must be set between socket(2) and bind(2).
func beforeBindPacket(fd uintptr, network string, s *backend.Socket) error {
	if network == "unixgram" {
		return beforeBind(fd, "unix", s)
	}
	if s.ReusePort {
		if err := unix.SetsockoptInt(int(fd), unix.SOL_SOCKET, reusePort, 1); err != nil {
			return os.NewSyscallError("setsockopt SO_REUSEPORT", err)
		}
	}
	return nil
}

// Member joins or leaves a multicast group.
func (d *Datagram) Member(group netip.Addr, ifi *net.Interface, join bool) error {
	return member(uintptr(d.FD), group, ifi, join)
}

// packetStride is the distance between the memory of two packets. It is not a power of
// two, so that the beginnings of small packets do not compete for the same cache lines.
const packetStride = backend.MaxPacket + 3*64

// zones caches the names of interfaces, which are part of link-local addresses, as long
// as package net does.
type zones struct {
	since time.Time
	names map[uint32]string
	ids   map[string]uint32
}

const zonesLast = time.Minute

func (z *zones) fresh() {
	if now := time.Now(); z.names == nil || now.Sub(z.since) > zonesLast {
		z.since, z.names, z.ids = now, make(map[uint32]string), make(map[string]uint32)
	}
}

func (z *zones) name(id uint32) string {
	z.fresh()
	name, ok := z.names[id]
	if !ok {
		name = zoneName(id)
		z.names[id] = name
	}
	return name
}

func (z *zones) id(name string) uint32 {
	if name == "" {
		return 0
	}
	z.fresh()
	id, ok := z.ids[name]
	if !ok {
		id = zoneID(name)
		if len(z.ids) < maxZones {
			z.ids[name] = id
		}
	}
	return id
}

// maxZones limits the cached names, because a program may use any number of them.
const maxZones = 1 << 12
