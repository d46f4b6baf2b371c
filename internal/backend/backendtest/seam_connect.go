package backendtest

import (
	"net"
	"runtime"

	"github.com/rondo-go/rondo/internal/backend"
)

// seamConnectRefused: Connect fails where nobody listens.
func seamConnectRefused(d *driver) {
	l := d.loop()
	ln := l.listen("tcp4", d.address("tcp4"), backend.Socket{})
	l.ok(l.submit(ln.file, backend.Close, nil))
	for range 3 {
		a, connected := l.dial("tcp4", ln.addr, backend.Socket{})
		l.wait(connected)
		if !isErr(connected.err, refused) {
			l.Fatalf("Connect to a closed port: %v, want ECONNREFUSED", connected.err)
		}
		l.ok(a.close())
	}
	a, connected := l.dial("unix", &net.UnixAddr{Name: d.address("unix"), Net: "unix"}, backend.Socket{})
	l.wait(connected)
	if connected.err == nil {
		l.Fatal("Connect to a path that does not exist succeeded")
	}
	l.ok(a.close())
}

// seamConnectFrom: the local address is the one passed to Socket.
func seamConnectFrom(d *driver) {
	l := d.loop()
	ln := l.listen("tcp4", d.address("tcp4"), backend.Socket{})
	from := &net.TCPAddr{IP: net.IPv4(127, 0, 0, 1)}
	if runtime.GOOS == "linux" { // all of 127.0.0.0/8 is local
		from.IP = net.IPv4(127, 0, 0, 2)
	}
	f, err := l.b.Socket("tcp4", from, &backend.Socket{})
	if err != nil {
		l.Fatal(err)
	}
	a := conn{l, f}
	connected := l.connect(f, ln.addr)
	h := ln.next()
	l.ok(connected)
	if h.Peer.Addr().String() != from.IP.String() {
		l.Fatalf("connected from %v, want %v", h.Peer, from.IP)
	}
	exchange(a, l.adopt(h))
	if f, err := l.b.Socket("udp", nil, &backend.Socket{}); err == nil {
		l.Fatalf("Socket made File %x of network udp, which has no streams", f)
	}
}
