package rondo

import (
	"net"
	"net/netip"
	"slices"

	"github.com/rondo-go/rondo/internal/backend"
)

// A try is the attempt at a connection to one of a Dialing's addresses.
type try struct {
	dialing *Dialing
	op      backend.ConnectOp
	shut    backend.Op // Close of a socket that did not connect, or too late
}

// found begins to try addresses.
func (d *Dialing) found(addrs []net.Addr, err error) {
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

// tryNext tries the next address, and those after it if that cannot even begin.
func (d *Dialing) tryNext() {
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
		t := &try{dialing: d}
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

// note keeps the error of the first address, which says most.
func (d *Dialing) note(addr net.Addr, err error) {
	if addr == d.first {
		d.err = err
	}
}

func (d *Dialing) endIfAllFailed() {
	connecting := func(t *try) bool { return t.shut.Kind == 0 }
	if len(d.addrs) == 0 && !slices.ContainsFunc(d.tries, connecting) {
		d.end(d.err)
	}
}

// Complete takes the completion of Connect, then of the Close after a failure.
func (t *try) Complete(c *backend.Completion) {
	d := t.dialing
	switch {
	case c.Op == &t.shut:
		d.forget(t)
	case c.Err == nil && !d.over:
		d.forget(t)
		d.settled()
		d.connected(t)
	default:
		t.shut = backend.Op{Kind: backend.Close, File: t.op.File, Owner: t}
		d.loop.backend.Submit(&t.shut)
		if !d.over {
			d.note(t.op.Addr, c.Err)
			d.tryNext()
		}
	}
}

func (d *Dialing) forget(t *try) {
	d.tries = slices.DeleteFunc(d.tries, func(o *try) bool { return o == t })
	d.release()
}

// connected serves the connection.
func (d *Dialing) connected(t *try) {
	var peer netip.AddrPort
	if a, ok := t.op.Addr.(*net.TCPAddr); ok {
		peer = a.AddrPort()
	}
	c := newConn(d.loop, t.op.File, peer)
	d.loop.stats.now.Dialed++
	c.opened(func(c *Conn) Handler { return d.open(c, nil) })
}

// socketNetwork is the network of a socket to connect to addr.
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
