package rondo

import (
	"errors"
	"fmt"
	"log/slog"
	"net"
	"net/netip"
	"time"

	"github.com/rondo-go/rondo/internal/backend"
	"github.com/rondo-go/rondo/internal/pick"
	"github.com/rondo-go/rondo/internal/share"
	"github.com/rondo-go/rondo/internal/sys"
	"github.com/rondo-go/rondo/internal/timer"
)

// A PacketHandler serves a datagram socket. Its methods run on the socket's loop, one at a
// time, and must not block. With Balance ReusePort every loop has a socket and a
// PacketConn, and all of them call one handler, at the same time.
type PacketHandler interface {
	// Packet handles one datagram, which may be empty, from the address from. On unixgram
	// from is invalid: PacketConn.Reply answers, and PacketConn.Name returns the sender. p
	// is valid until Packet returns. The loop sends the datagrams that Packet writes
	// together, at the turn's end.
	//
	// A panic costs only the datagram. The engine logs and counts it, and the socket goes
	// on: otherwise one datagram could end a server.
	Packet(c *PacketConn, p []byte, from netip.AddrPort)

	// Closed is the last call, made exactly once. err is nil after Close.
	Closed(c *PacketConn, err error)
}

// PacketHandlerFunc is a PacketHandler that has only Packet.
type PacketHandlerFunc func(c *PacketConn, p []byte, from netip.AddrPort)

// Packet calls f.
func (f PacketHandlerFunc) Packet(c *PacketConn, p []byte, from netip.AddrPort) { f(c, p, from) }

// Closed does nothing.
func (f PacketHandlerFunc) Closed(*PacketConn, error) {}

// A PacketErrorHandler is a PacketHandler that gets the system's errors about datagrams:
// one could not be sent, or the peer did not receive an earlier one (syscall.ECONNREFUSED,
// on a socket from DialPacket). to is the address of the unsent datagram; it is invalid
// for other errors, and for a socket with one peer. The socket goes on.
type PacketErrorHandler interface {
	PacketFailed(c *PacketConn, to netip.AddrPort, err error)
}

// A PacketConn is a datagram socket on a loop. Only that loop may call its methods, except
// LocalAddr, Loop and Ref, which any goroutine may call.
//
//	open --Close--> closing --output sent, or Linger--> closed --backend--> Closed
type PacketConn struct {
	loop      *Loop
	handler   PacketHandler
	backend   backend.PacketBackend
	file      backend.File
	network   string
	local     net.Addr
	group     *packetGroup
	place     int         // index in loop.packets
	context   any         // see SetValue
	connected bool        // by DialPacket
	posted    share.Int64 // bytes on their way from PacketRefs, with packetCost each
	closed    share.Bool  // for PacketRefs

	recv      backend.Op // RecvFrom
	shut      backend.Op // Close
	state     packetState
	receiving bool
	paused    bool // by Pause
	above     bool // output was above HighWater, and has not fallen to LowWater
	dirty     bool // in loop.dirtyPackets
	reason    error

	batch    []backend.Packet // received and not yet handled
	at       *backend.Packet  // the current one: the handler has it
	dropped  uint32           // the system's last count
	errors   int              // in a row
	failures []packetFailure  // for the PacketErrorHandler
	resume   timer.Timer      // ends a pause after errors
	linger   timer.Timer

	out     packetQueue // written, not yet given to the system
	sending packetQueue // being sent by op
	op      backend.SendToOp
	flying  bool // op is in flight
}

type packetState uint8

const (
	packetOpen packetState = iota
	packetClosing
	packetClosed
)

// packetGroup is the sockets of one ListenPacket. It does not change once they are open.
type packetGroup struct {
	conns []*PacketConn
	state share.Uint32
}

// A group is being made until ListenPacket has all sockets. If one ends before that,
// ListenPacket fails. Only a whole group calls the handler.
const (
	groupMaking uint32 = iota
	groupWhole
	groupFailed
)

// made makes the group whole, and reports whether that succeeded.
func (g *packetGroup) made() bool { return g.state.CompareAndSwap(groupMaking, groupWhole) }

// heardOf reports whether the handler gets the Closed of a socket. If not, no socket of
// the group is served any more.
func (g *packetGroup) heardOf() bool {
	return !g.state.CompareAndSwap(groupMaking, groupFailed) && g.state.Load() == groupWhole
}

// close closes the sockets except one. Any goroutine may call it.
func (g *packetGroup) close(except *PacketConn) {
	for _, c := range g.conns {
		if c != except {
			c.loop.Post(c.close)
		}
	}
}

// ListenPacket listens for datagrams on address; h handles them. network is udp, udp4,
// udp6 or unixgram (not on Windows); udp without a host listens on IPv4 and IPv6. A
// unixgram address is like a unix address of Listen.
//
// With Balance ReusePort, on systems where Listen supports it, every loop has a socket,
// and the kernel chooses one by the sender's address; ListenPacket returns one of them.
// Otherwise there is one socket, and successive sockets take turns with the loops.
// SocketOptions.KeepAlive and Delay have no effect.
func (e *Engine) ListenPacket(network, address string, s SocketOptions, h PacketHandler) (*PacketConn, error) {
	if err := e.Start(); err != nil {
		return nil, err
	}
	err := checkPacket(&s, h)
	if err == nil {
		address, err = e.toListen(network, address)
	}
	if err != nil {
		return nil, packetError("listen", network, address, err)
	}
	loops, each := e.packetLoops(network, &s)
	g, o := new(packetGroup), s.options()
	for _, l := range loops {
		c, err := l.openPacket(network, h, g, func(b backend.PacketBackend) (backend.File, net.Addr, error) {
			return b.ListenPacket(network, address, &o)
		})
		if err != nil {
			g.state.Store(groupFailed)
			g.close(nil)
			return nil, packetError("listen", network, address, err)
		}
		if each {
			address = c.local.String() // with the port that the first one got
		}
	}
	if !g.made() { // the engine was closed meanwhile
		g.close(nil)
		return nil, packetError("listen", network, address, ErrClosed)
	}
	for _, c := range g.conns {
		c.loop.Post(c.read) // if its loop has ended, Closed was called
	}
	return g.conns[0], nil
}

// packetLoops chooses the loops for the sockets of a ListenPacket.
func (e *Engine) packetLoops(network string, s *SocketOptions) (loops []*Loop, each bool) {
	here := e.onLoop()
	switch {
	case e.Balance == ReusePort && sys.ReusePortBalances && network != "unixgram" && len(e.loops) > 1:
		e.mustNotBeOnLoop("ListenPacket", "with Balance ReusePort it waits for every loop")
		s.ReusePort = true
		return e.loops, true
	case here != nil:
		return []*Loop{here}, false
	}
	e.mustNotBeOnLoop("ListenPacket", "")
	i := (e.accepting.Add(1) - 1) % uint32(len(e.loops))
	return e.loops[i : i+1], false
}

// DialPacket makes a socket that sends to address and receives only from it. Balance
// chooses its loop. local is the address to send from; "": the system chooses it, and on
// unixgram there is none. A unixgram peer needs it to answer. DialPacket looks up names
// before it returns; on a loop, which that would block, a name is an error.
func (e *Engine) DialPacket(network, local, address string, s SocketOptions, h PacketHandler) (*PacketConn, error) {
	if err := e.Start(); err != nil {
		return nil, err
	}
	err := checkPacket(&s, h)
	var remote netip.AddrPort
	if err == nil {
		remote, err = packetPeer(network, address)
	}
	if err == nil {
		l := e.onLoop()
		if l == nil {
			e.mustNotBeOnLoop("DialPacket", "")
			l = e.choose(&e.chosen, remote.Addr())
		}
		to := address
		if remote.IsValid() {
			to = remote.String()
		}
		var c *PacketConn
		o, g := s.options(), new(packetGroup)
		c, err = l.openPacket(network, h, g, func(b backend.PacketBackend) (backend.File, net.Addr, error) {
			return b.DialPacket(network, local, to, &o)
		})
		if err == nil {
			c.connected = true // before reading starts
			if g.made() {
				l.Post(c.read) // if the loop has ended, Closed was called
				return c, nil
			}
			err = ErrClosed
		}
	}
	return nil, packetError("dial", network, address, err)
}

// checkPacket returns an error for arguments that make no sense.
func checkPacket(s *SocketOptions, h PacketHandler) error {
	if h == nil {
		return errNilHandler
	}
	return s.check()
}

// packetPeer returns the address of a host:port; zero for unixgram.
func packetPeer(network, address string) (netip.AddrPort, error) {
	if network == "unixgram" {
		return netip.AddrPort{}, nil
	}
	if ap, err := netip.ParseAddrPort(address); err == nil {
		return ap, nil
	}
	if l := callingLoop(); l != nil {
		return netip.AddrPort{}, errNameOnLoop(address, l)
	}
	a, err := net.ResolveUDPAddr(network, address)
	if err != nil {
		return netip.AddrPort{}, err
	}
	ap := a.AddrPort()
	if !ap.Addr().IsValid() {
		return ap, &net.AddrError{Err: "no host to send to", Addr: address}
	}
	return netip.AddrPortFrom(ap.Addr().Unmap(), ap.Port()), nil
}

func packetError(op, network, address string, err error) error {
	var inner *net.OpError
	if errors.As(err, &inner) {
		err = inner.Err
	}
	return &net.OpError{Op: op, Net: network, Addr: text{network, address}, Err: err}
}

// openPacket makes a PacketConn of the socket that open opens on the loop.
func (l *Loop) openPacket(network string, h PacketHandler, g *packetGroup,
	open func(backend.PacketBackend) (backend.File, net.Addr, error)) (c *PacketConn, err error) {
	alive := l.do(func() {
		if l.stopping || l.draining {
			err = ErrClosed
			return
		}
		b, ok := l.backend.(backend.PacketBackend)
		if !ok {
			l.use(pick.Beside(l.backend))
			b = l.backend.(backend.PacketBackend)
		}
		c = &PacketConn{loop: l, handler: h, backend: b, network: network, group: g}
		if c.file, c.local, err = open(b); err == nil {
			g.conns = append(g.conns, c)
			l.enterPacket(c)
			c.prepare()
		}
	})
	if !alive {
		err = ErrClosed
	}
	return c, err
}

// enterPacket and leavePacket update the list of the loop's datagram sockets.
func (l *Loop) enterPacket(c *PacketConn) {
	c.place = len(l.packets)
	l.packets = append(l.packets, c)
}

func (l *Loop) leavePacket(c *PacketConn) {
	last := len(l.packets) - 1
	l.packets[c.place] = l.packets[last]
	l.packets[c.place].place = c.place
	l.packets[last] = nil
	l.packets = l.packets[:last]
}

func (c *PacketConn) prepare() {
	o := (*packetOwner)(c)
	c.resume.Owner, c.linger.Owner = o, o
	c.recv = backend.Op{Kind: backend.RecvFrom, File: c.file, Owner: o}
	c.op.Op = backend.Op{Kind: backend.SendTo, File: c.file, Owner: o}
}

// LocalAddr returns the socket's address, with the port that the system chose: a
// *net.UDPAddr or *net.UnixAddr. Any goroutine may call it.
func (c *PacketConn) LocalAddr() net.Addr { return c.local }

// Loop returns the socket's loop. Any goroutine may call it.
func (c *PacketConn) Loop() *Loop { return c.loop }

// Value returns the value of the last SetValue.
func (c *PacketConn) Value() any {
	c.loop.check()
	return c.context
}

// SetValue attaches a value to the socket.
func (c *PacketConn) SetValue(v any) {
	c.loop.check()
	c.context = v
}

// JoinGroup joins a multicast group on an interface; nil: the system chooses the
// interface. The socket must be bound to the group's port, and to no address or the
// group's.
func (c *PacketConn) JoinGroup(group netip.Addr, ifi *net.Interface) error {
	return c.member("join", group, ifi, true)
}

// LeaveGroup leaves a group that JoinGroup joined with the same arguments. Close does too.
func (c *PacketConn) LeaveGroup(group netip.Addr, ifi *net.Interface) error {
	return c.member("leave", group, ifi, false)
}

func (c *PacketConn) member(op string, group netip.Addr, ifi *net.Interface, join bool) error {
	c.loop.check()
	err := error(ErrClosed)
	if c.state == packetOpen {
		err = c.backend.Member(c.file, group, ifi, join)
	}
	if err != nil {
		return &net.OpError{Op: op, Net: c.network, Source: c.local, Addr: &net.IPAddr{IP: group.AsSlice(), Zone: group.Zone()}, Err: err}
	}
	return nil
}

// Control calls f with the socket's descriptor, which f must not keep. It is for options
// that have no method here: time to live, multicast loopback, marks. On the simulated
// network it returns errors.ErrUnsupported.
func (c *PacketConn) Control(f func(fd uintptr) error) error {
	c.loop.check()
	if c.state != packetOpen {
		return ErrClosed
	}
	return c.backend.Control(c.file, f)
}

// brokenBy does nothing: a panic costs the datagram, not the socket. Otherwise a datagram
// that makes a handler panic could end a server.
func (c *PacketConn) brokenBy(error) {}

func (c *PacketConn) logAttr() slog.Attr { return slog.String("socket", c.String()) }

// String returns the network and the address, for logs.
func (c *PacketConn) String() string { return fmt.Sprintf("%s %v", c.network, c.local) }

// Receiving pauses while the system returns one error after another.
const (
	packetErrors      = 64 // errors in a row before the first pause
	minPacketPause    = time.Millisecond
	maxPacketPause    = time.Second
	maxPacketDoubling = 10
)
