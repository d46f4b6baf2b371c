package rondo

import (
	"context"
	"net"
	"net/netip"
	"strconv"

	"github.com/rondo-go/rondo/internal/backend"
)

// Dial connects to address, and serves the connection on this loop. open is
// called once, on the loop: with the connection, whose Handler it makes, or with
// nil and the reason why there is none; it is not called before Dial returns.
// Like an Opener it may return nil. network is tcp, tcp4, tcp6 or unix. Names
// are looked up on another goroutine; their addresses are tried one by one.
func (l *Loop) Dial(network, address string, s Socket, open func(*Conn, error) Handler) {
	l.check()
	d := &dialer{loop: l, network: network, address: address, socket: backend.Socket(s), open: open}
	if network == "unix" {
		d.connect([]net.Addr{&net.UnixAddr{Name: address, Net: "unix"}})
		return
	}
	if ap, err := netip.ParseAddrPort(address); err == nil && fits(network, ap.Addr()) {
		d.connect([]net.Addr{net.TCPAddrFromAddrPort(ap)})
		return
	}
	go func() {
		addrs, err := lookUp(network, address)
		if l.Post(func() { d.found(addrs, err) }) != nil {
			return // the loop has ended, and with it whoever would hear of it
		}
	}()
}

// dialer is a connection being made.
type dialer struct {
	loop             *Loop
	network, address string
	socket           backend.Socket
	open             func(*Conn, error) Handler

	op   backend.ConnectOp
	rest []net.Addr // to be tried if this one fails
	shut backend.Op // Close of a socket that did not connect
}

func fits(network string, a netip.Addr) bool {
	return network == "tcp" || network == "tcp4" && a.Unmap().Is4() || network == "tcp6" && !a.Unmap().Is4()
}

// lookUp resolves a host:port as package net does.
func lookUp(network, address string) ([]net.Addr, error) {
	host, service, err := net.SplitHostPort(address)
	if err != nil {
		return nil, err
	}
	port, err := net.DefaultResolver.LookupPort(context.Background(), network, service)
	if err != nil {
		return nil, err
	}
	ips, err := net.DefaultResolver.LookupNetIP(context.Background(), "ip", host)
	if err != nil {
		return nil, err
	}
	var addrs []net.Addr
	for _, ip := range ips {
		if fits(network, ip) {
			addrs = append(addrs, net.TCPAddrFromAddrPort(netip.AddrPortFrom(ip.Unmap(), uint16(port))))
		}
	}
	if len(addrs) == 0 {
		return nil, &net.AddrError{Err: "no suitable address", Addr: net.JoinHostPort(host, strconv.Itoa(port))}
	}
	return addrs, nil
}

func (d *dialer) found(addrs []net.Addr, err error) {
	if err != nil {
		d.failed(err)
		return
	}
	d.connect(addrs)
}

// connect tries the first of addrs.
func (d *dialer) connect(addrs []net.Addr) {
	d.rest = addrs[1:]
	network := "unix"
	if a, ok := addrs[0].(*net.TCPAddr); ok {
		if network = "tcp6"; a.IP.To4() != nil {
			network = "tcp4"
		}
	}
	file, err := d.loop.backend.Socket(network, nil, &d.socket)
	if err != nil {
		// open is not called before Dial returns.
		d.loop.Post(func() { d.failed(err) })
		return
	}
	d.op = backend.ConnectOp{Op: backend.Op{Kind: backend.Connect, File: file, Owner: d}, Addr: addrs[0]}
	d.loop.dialers[d] = struct{}{}
	d.loop.backend.Connect(&d.op)
}

// Complete takes the completion of Connect, then of the Close after a failure.
func (d *dialer) Complete(c *backend.Completion) {
	if c.Op.Kind == backend.Close {
		delete(d.loop.dialers, d)
		if len(d.rest) > 0 && !d.loop.stopping {
			d.connect(d.rest)
		}
		return
	}
	if c.Err == nil && !d.loop.stopping && !d.loop.draining {
		delete(d.loop.dialers, d)
		d.connected()
		return
	}
	d.shut = backend.Op{Kind: backend.Close, File: d.op.File, Owner: d}
	d.loop.backend.Submit(&d.shut)
	if len(d.rest) == 0 || d.loop.stopping {
		err := c.Err
		if err == nil {
			err = ErrClosed
		}
		d.failed(err)
	}
}

func (d *dialer) connected() {
	var peer netip.AddrPort
	if a, ok := d.op.Addr.(*net.TCPAddr); ok {
		peer = a.AddrPort()
	}
	c := newConn(d.loop, d.op.File, peer)
	c.opened(func(c *Conn) Handler { return d.open(c, nil) })
}

func (d *dialer) failed(err error) {
	var addr net.Addr = text{d.network, d.address}
	if d.op.Addr != nil {
		addr = d.op.Addr
	}
	d.open(nil, &net.OpError{Op: "dial", Net: d.network, Addr: addr, Err: err})
}
