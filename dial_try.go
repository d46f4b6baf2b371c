package rondo

import (
	"context"
	"errors"
	"fmt"
	"net"
	"net/netip"
	"slices"
	"strconv"
	"strings"

	"github.com/rondo-go/rondo/internal/backend"
)

// A try is an attempt to connect to one address of a dial.
type try struct {
	dial *dial // nil: unused
	op   backend.ConnectOp
	shut backend.Op // Close of a socket that failed to connect, or connected too late
}

// found starts to try the addresses.
func (d *dial) found(addrs []net.Addr, err error) {
	d.stopLookUp = nil
	if d.over {
		return
	}
	if err == nil {
		d.addrs, err = reachable(addrs, d.local)
	}
	if err != nil {
		d.end(err)
		return
	}
	d.tryNext()
}

// tryNext tries the next address for which it can open a socket.
func (d *dial) tryNext() {
	for len(d.addrs) > 0 {
		addr := d.addrs[0]
		d.addrs = d.addrs[1:]
		if d.first == nil {
			d.first = addr
		}
		file, err := d.loop.backend.Socket(socketNetwork(addr), d.local, &d.socket)
		if err != nil {
			d.note(addr, err)
			continue
		}
		t := &d.firstTry
		if t.dial != nil {
			t = new(try)
		}
		t.dial = d
		t.op = backend.ConnectOp{Op: backend.Op{Kind: backend.Connect, File: file, Owner: t}, Addr: addr}
		d.tries = append(d.tries, t)
		d.loop.backend.Connect(&t.op)
		if len(d.addrs) > 0 {
			d.loop.timers.Start(&d.next, d.loop.now.Add(stagger))
		}
		return
	}
	d.endIfAllFailed()
}

// note keeps the error of the first address, which is the most useful one.
func (d *dial) note(addr net.Addr, err error) {
	if addr == d.first {
		d.err = err
	}
}

func (d *dial) endIfAllFailed() {
	connecting := func(t *try) bool { return t.shut.Kind == 0 }
	if len(d.addrs) == 0 && !slices.ContainsFunc(d.tries, connecting) {
		d.end(d.err)
	}
}

// Complete handles the completion of Connect, then of the Close after a failure.
func (t *try) Complete(c *backend.Completion) {
	d := t.dial
	d.loop.begin(nil)
	switch {
	case c.Op == &t.shut:
		d.forget(t)
	case c.Err == nil && !d.over:
		l, open, file, addr := d.loop, d.open, t.op.File, t.op.Addr
		d.forget(t)
		d.settled()
		d.recycle()
		l.connected(file, addr, open)
	default:
		t.shut = backend.Op{Kind: backend.Close, File: t.op.File, Owner: t}
		d.loop.backend.Submit(&t.shut)
		if !d.over {
			d.note(t.op.Addr, c.Err)
			d.tryNext()
		}
	}
}

func (d *dial) forget(t *try) {
	d.tries = slices.DeleteFunc(d.tries, func(o *try) bool { return o == t })
	*t = try{}
	d.release()
}

// connected serves a new connection.
func (l *Loop) connected(file backend.File, addr net.Addr, open func(*Conn, error) Handler) {
	var peer netip.AddrPort
	if a, ok := addr.(*net.TCPAddr); ok {
		peer = a.AddrPort()
	}
	c := newConn(l, file, peer)
	l.stats.Dialed++
	c.opened(func(c *Conn) Handler { return open(c, nil) })
}

// socketNetwork returns the network of a socket that connects to addr.
func socketNetwork(addr net.Addr) string {
	a, ok := addr.(*net.TCPAddr)
	switch {
	case !ok:
		return "unix"
	case a.IP.To4() != nil:
		return "tcp4"
	}
	return "tcp6"
}

// A Resolver looks up the addresses of names, in order of preference. A *net.Resolver is
// one; tests may use their own.
type Resolver interface {
	// LookupNetIP is like net.Resolver's; network is ip, ip4 or ip6. The engine calls it
	// on separate goroutines.
	LookupNetIP(ctx context.Context, network, host string) ([]netip.Addr, error)
}

// errName is literal's error if the address has a name.
var errName = errors.New("the address has a name")

// literal parses the dial's address, unless an earlier dial had the same one.
func (d *dial) literal() ([]net.Addr, error) {
	if l := &d.last; l.addrs == nil || l.network != d.network || l.address != d.address {
		addrs, err := literal(d.network, d.address)
		if err != nil {
			return nil, err
		}
		*l = parsed{d.network, d.address, addrs}
	}
	return d.last.addrs, nil
}

// literal parses an address that needs no lookup.
func literal(network, address string) ([]net.Addr, error) {
	switch network {
	case "unix":
		return []net.Addr{&net.UnixAddr{Name: address, Net: "unix"}}, nil
	case "tcp", "tcp4", "tcp6":
	default:
		return nil, net.UnknownNetworkError(network)
	}
	if a, err := netip.ParseAddrPort(address); err == nil && isOf(network, here(a.Addr().Unmap())) {
		a = netip.AddrPortFrom(here(a.Addr().Unmap()), a.Port())
		return []net.Addr{net.TCPAddrFromAddrPort(a)}, nil // the usual case, in short
	}
	host, service, err := net.SplitHostPort(address)
	if err != nil {
		return nil, err
	}
	var ips []netip.Addr
	switch ip, err := netip.ParseAddr(host); {
	case host == "":
		ips = []netip.Addr{loopback4, netip.IPv6Loopback()} // this host, as in package net
	case err != nil:
		return nil, errName
	default:
		ips = []netip.Addr{ip}
	}
	port := 0
	for _, c := range []byte(service) {
		if c < '0' || c > '9' || port > 1<<16 {
			return nil, errName // the port has a name, or is wrong: package net reports that
		}
		port = 10*port + int(c-'0')
	}
	if service == "" || port > 1<<16-1 {
		return nil, errName
	}
	return suitable(network, host, ips, port)
}

var loopback4 = netip.AddrFrom4([4]byte{127, 0, 0, 1})

// lookUp looks up the addresses of a host:port.
func (e *Engine) lookUp(ctx context.Context, network, address string) ([]net.Addr, error) {
	host, service, err := net.SplitHostPort(address)
	if err != nil {
		return nil, err
	}
	port, err := net.DefaultResolver.LookupPort(ctx, network, service)
	if err != nil {
		return nil, err
	}
	if ip, err := netip.ParseAddr(host); err == nil {
		return suitable(network, host, []netip.Addr{ip}, port)
	}
	ips, err := e.resolver().LookupNetIP(ctx, strings.Replace(network, "tcp", "ip", 1), host)
	if err != nil {
		return nil, err
	}
	return suitable(network, host, ips, port)
}

// suitable makes addresses of those ips that network allows. The two families alternate
// (RFC 8305, 4).
func suitable(network, host string, ips []netip.Addr, port int) ([]net.Addr, error) {
	var families [2][]net.Addr // the family of the first ip, and the other
	for _, ip := range ips {
		ip = here(ip.Unmap())
		if !isOf(network, ip) {
			continue
		}
		a := net.TCPAddrFromAddrPort(netip.AddrPortFrom(ip, uint16(port)))
		other := 0
		if first := families[0]; len(first) > 0 && socketNetwork(first[0]) != socketNetwork(a) {
			other = 1
		}
		families[other] = append(families[other], a)
	}
	var addrs []net.Addr
	for i := range max(len(families[0]), len(families[1])) {
		for _, f := range families {
			if i < len(f) {
				addrs = append(addrs, f[i])
			}
		}
	}
	if len(addrs) == 0 {
		return nil, &net.AddrError{Err: "no suitable address", Addr: host}
	}
	return addrs, nil
}

// isOf reports whether a network has addresses like ip.
func isOf(network string, ip netip.Addr) bool {
	return network == "tcp" || ip.Is4() == (network == "tcp4")
}

// here returns the address to connect to: the loopback one for an unspecified ip.
func here(ip netip.Addr) netip.Addr {
	switch {
	case !ip.IsUnspecified():
		return ip
	case ip.Is4():
		return loopback4
	}
	return netip.IPv6Loopback()
}

// reachable leaves out addresses that the local address cannot reach.
func reachable(addrs []net.Addr, local net.Addr) ([]net.Addr, error) {
	if local == nil {
		return addrs, nil
	}
	var fit []net.Addr
	for _, a := range addrs {
		tcp, isTCP := local.(*net.TCPAddr)
		_, isUnix := local.(*net.UnixAddr)
		network := socketNetwork(a)
		if network == "unix" && isUnix || network != "unix" && isTCP &&
			(len(tcp.IP) == 0 || tcp.IP.IsUnspecified() && network == "tcp6" || socketNetwork(tcp) == network) {
			fit = append(fit, a)
		}
	}
	if len(fit) == 0 {
		return nil, &net.AddrError{Err: "cannot be reached from the local address " + local.String(), Addr: addrs[0].String()}
	}
	return fit, nil
}

// toListen returns the address to listen on, with names looked up. Like package net it
// prefers an IPv4 address.
func (e *Engine) toListen(network, address string) (string, error) {
	family, isIP := strings.CutPrefix(network, "tcp")
	if !isIP {
		family, isIP = strings.CutPrefix(network, "udp")
	}
	if !isIP {
		return address, nil
	}
	host, service, err := net.SplitHostPort(address)
	if err != nil {
		return address, nil // package net reports the error, or takes "" as any port
	}
	ctx := context.Background()
	_, notLiteral := netip.ParseAddr(host)
	hostNamed := host != "" && notLiteral != nil
	_, notNumber := strconv.ParseUint(service, 10, 16)
	portNamed := service != "" && notNumber != nil
	if !hostNamed && !portNamed {
		return address, nil
	}
	if l := callingLoop(); l != nil {
		return "", errNameOnLoop(address, l)
	}
	if portNamed {
		port, err := net.DefaultResolver.LookupPort(ctx, network, service)
		if err != nil {
			return "", err
		}
		service = strconv.Itoa(port)
	}
	if hostNamed {
		ip, err := e.hostIP(ctx, family, host)
		if err != nil {
			return "", err
		}
		host = ip.String()
	}
	return net.JoinHostPort(host, service), nil
}

// errNameOnLoop is the error of a method that would have to look up a name on loop l.
func errNameOnLoop(address string, l *Loop) error {
	return fmt.Errorf("%s has a name, and to look it up would block loop %d: call from another goroutine, or look it up before", address, l.id)
}

// hostIP returns the address to listen on for a name. family is "", "4" or "6".
func (e *Engine) hostIP(ctx context.Context, family, host string) (netip.Addr, error) {
	ips, err := e.resolver().LookupNetIP(ctx, "ip"+family, host)
	if err != nil {
		return netip.Addr{}, err
	}
	best := -1
	for i, ip := range ips {
		is4 := ip.Unmap().Is4()
		if family == "4" && !is4 || family == "6" && is4 {
			continue
		}
		if best < 0 || is4 && !ips[best].Is4() {
			best = i
		}
		ips[i] = ip.Unmap()
	}
	if best < 0 {
		return netip.Addr{}, &net.AddrError{Err: "no suitable address", Addr: host}
	}
	return ips[best], nil
}

func (e *Engine) resolver() Resolver {
	if e.Resolver != nil {
		return e.Resolver
	}
	return net.DefaultResolver
}
