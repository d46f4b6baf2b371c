package backendtest

import (
	"errors"
	"net"
	"net/netip"
	"os"
	"runtime"
	"strconv"
	"strings"
	"syscall"

	"github.com/rondo-go/rondo/internal/backend"
)

// seamListen listens on every kind of address, connects, and compares the addresses
// that both ends and the Handle report.
func seamListen(d *driver) {
	l := d.loop()
	networks := streams()
	if hasIPv6() {
		networks = append(networks, "tcp6")
	}
	for _, network := range networks {
		seamListenOn(l, network, d.address(network))
	}
	if runtime.GOOS == "linux" {
		seamListenOn(l, "unix", "@rondo-seam-"+strconv.Itoa(os.Getpid())+"-"+strconv.FormatInt(int64(l.b.Now()), 36))
	}
}

func seamListenOn(l *loop, network, address string) {
	ln := l.listen(network, address, backend.Socket{})
	if got := l.b.LocalAddr(ln.file); got == nil || got.String() != ln.addr.String() {
		l.Fatalf("%s: listening on %v, LocalAddr is %v", network, ln.addr, got)
	}
	a, connected := l.dial(network, ln.addr, backend.Socket{})
	h := ln.next()
	l.ok(connected)
	b := l.adopt(h)
	sameAddr(l, network+" client's remote, listener's", a.remoteAddr(), ln.addr)
	sameAddr(l, network+" server's local, listener's", b.localAddr(), ln.addr)
	if network == "unix" {
		if ln.addr.String() != address {
			l.Fatalf("listening on %q, not on %q", ln.addr, address)
		}
		if h.Peer.IsValid() {
			l.Fatalf("a unix connection's Handle has the TCP peer %v", h.Peer)
		}
	} else {
		sameAddr(l, network+" client's local, server's remote", a.localAddr(), b.remoteAddr())
		sameAddr(l, network+" Handle's peer, server's remote", net.TCPAddrFromAddrPort(h.Peer), b.remoteAddr())
	}
	exchange(a, b)
	l.ok(a.close(), b.close(), l.submit(ln.file, backend.Close, nil))
	if network == "unix" && !strings.HasPrefix(address, "@") {
		if _, err := os.Lstat(address); err == nil {
			l.Fatalf("the file %s is still there after its listener was closed", address)
		}
	}
}

func sameAddr(l *loop, what string, x, y net.Addr) {
	l.Helper()
	if x == nil || y == nil || x.String() != y.String() || x.Network() != y.Network() {
		l.Fatalf("addresses (%s) differ: %v, %v", what, x, y)
	}
}

// streams returns the stream networks of every system. Only Wine has no unix sockets;
// Windows has.
func streams() []string {
	const noSuchFamily = syscall.Errno(10047) // WSAEAFNOSUPPORT
	if runtime.GOOS == "windows" {
		if _, err := net.Dial("unix", "nobody"); errors.Is(err, noSuchFamily) {
			return []string{"tcp4"}
		}
	}
	return []string{"tcp4", "unix"}
}

// hasIPv6 reports whether this machine's loopback interface has IPv6.
func hasIPv6() bool {
	ln, err := net.Listen("tcp6", "[::1]:0")
	if err == nil {
		ln.Close()
	}
	return err == nil
}

// seamListenDualStack: one listener serves both versions of IP, and IPv4 peers have
// IPv4 addresses.
func seamListenDualStack(d *driver) {
	if !hasIPv6() {
		d.Log("this machine has no IPv6: there is one stack")
		return
	}
	l := d.loop()
	ln := l.listen("tcp", "[::]:0", backend.Socket{})
	port := ln.addr.(*net.TCPAddr).AddrPort().Port()
	for network, ip := range map[string]string{"tcp4": "127.0.0.1", "tcp6": "::1"} {
		want := netip.MustParseAddr(ip)
		a, connected := l.dial(network, net.TCPAddrFromAddrPort(netip.AddrPortFrom(want, port)), backend.Socket{})
		h := ln.next()
		l.ok(connected)
		if h.Peer.Addr() != want {
			l.Errorf("the peer of a %s connection is %v, want %v", network, h.Peer, want)
		}
		b := l.adopt(h)
		sameAddr(l, "client's local, server's remote", a.localAddr(), b.remoteAddr())
		exchange(a, b)
	}
}

// seamListenInUse: only one listener may have an address.
func seamListenInUse(d *driver) {
	l := d.loop()
	for _, network := range streams() {
		ln := l.listen(network, d.address(network), backend.Socket{})
		f, addr, err := l.b.Listen(network, ln.addr.String(), &backend.Socket{})
		if err == nil {
			l.Fatalf("%s: a second listener on %v: File %x on %v, want an error", network, ln.addr, f, addr)
		}
		a, connected := l.dial(network, ln.addr, backend.Socket{})
		l.ok(connected)
		l.ok(a.send([]byte("still there?")))
		// To find out whether a unix socket is served, Listen connects to it. The first
		// connection may be that one, which ends at once.
		for n := 0; n == 0; {
			n = l.oked(l.adopt(ln.next()).recv(nil)).n
		}
	}
}
