package backendtest

import (
	"context"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"github.com/rondo-go/rondo/internal/backend"
	"github.com/rondo-go/rondo/internal/pick"
)

// Provoking these behaviours takes system calls, so the tests run on Linux's backends
// only. A behaviour that blocks hangs its test: nothing can watch a thread in a system
// call that the runtime does not know of.

// eachBackend tests a behaviour on every backend of this machine.
func eachBackend(t *testing.T, behaviour func(d *driver)) {
	for _, name := range pick.Available() {
		t.Run(name, func(t *testing.T) {
			open, _, err := pick.Find(name)
			if err != nil {
				t.Fatal(err)
			}
			behaviour(newDriver(t, func(t testing.TB) backend.Backend {
				b, err := open()
				if err != nil {
					t.Fatal(err)
				}
				return b
			}))
		})
	}
}

// fd returns c's descriptor.
func (c conn) fd() int {
	c.l.Helper()
	fd := c.l.descriptor(c)
	if fd == 0 {
		c.l.Fatal("a File without a descriptor")
	}
	return int(fd)
}

// TestSharedListenerNeverBlocks: another holder of a listener's socket may make it
// blocking. An accept that finds no connection still does not wait.
func TestSharedListenerNeverBlocks(t *testing.T) {
	eachBackend(t, func(d *driver) {
		l := d.loop()
		for _, network := range streams() {
			own, err := net.Listen(network, l.address(network))
			if err != nil {
				l.Fatal(err)
			}
			other, err := own.(interface{ File() (*os.File, error) }).File()
			if err != nil {
				l.Fatal(err)
			}
			defer other.Close()
			ln := l.listen(network, "", backend.Socket{Listener: own})
			for range 3 {
				if err := unix.SetNonblock(int(other.Fd()), false); err != nil {
					l.Fatal(err)
				}
				a, connected := l.dial(network, ln.addr, backend.Socket{})
				b := l.adopt(ln.next())
				l.ok(connected)
				l.turnFor(2)
				exchange(a, b)
				l.ok(a.close(), b.close())
			}
			l.ok(l.submit(ln.file, backend.Close, nil))
		}
	})
}

// TestCancelAcceptLosesNothing: when a canceled Accept has ended, each connection was brought
// or is still in the queue, where another holder of the listener's socket accepts it.
func TestCancelAcceptLosesNothing(t *testing.T) {
	eachBackend(t, func(d *driver) {
		l := d.loop()
		for _, network := range streams() {
			for round := range 40 {
				own, err := net.Listen(network, l.address(network))
				if err != nil {
					l.Fatal(err)
				}
				other, err := own.(interface{ File() (*os.File, error) }).File()
				if err != nil {
					l.Fatal(err)
				}
				ln := l.listen(network, "", backend.Socket{Listener: own})
				l.turnFor(round % 2)
				clients := []int{1, 3, 100, 300}[round%4]
				ends, connected := make([]conn, clients), make([]*call, clients)
				for i := range ends {
					if i == clients/2 {
						l.turnFor(round % 3)
					}
					ends[i], connected[i] = l.dial(network, ln.addr, backend.Socket{})
				}
				l.turnFor(round / 2 % 3)
				ln.accept.cancel()
				ln.accept.cancel() // a second time is not an error
				l.canceled(ln.accept)
				brought := len(ln.accept.conns)
				ln.discardRest()
				l.ok(connected...)
				l.ok(l.submit(ln.file, backend.Close, nil))
				if left := l.acceptAll(int(other.Fd())); brought+left != clients {
					l.Fatalf("%s, round %d: %d clients; the Accept brought %d, and %d are in the queue", network, round, clients, brought, left)
				}
				for _, c := range ends {
					l.ok(c.reset())
				}
				other.Close()
			}
		}
	})
}

// TestCanceledAcceptWakesOthers: a connection comes, and the system tells one of two holders of
// the listener, who cancels the Accept. Then that one brings the connection, or the other does.
func TestCanceledAcceptWakesOthers(t *testing.T) {
	eachBackend(t, func(d *driver) {
		first, second := d.loop(), d.loop()
		for _, network := range streams() {
			for round := range 20 {
				own, err := net.Listen(network, first.address(network))
				if err != nil {
					d.Fatal(err)
				}
				f, err := own.(interface{ File() (*os.File, error) }).File()
				if err != nil {
					d.Fatal(err)
				}
				same, err := net.FileListener(f)
				if err != nil {
					d.Fatal(err)
				}
				f.Close()
				a := first.listen(network, "", backend.Socket{Listener: own})
				b := second.listen(network, "", backend.Socket{Listener: same})
				first.turnFor(2)
				second.turnFor(2)
				for range 1 + round%3 {
					c, err := net.Dial(network, a.addr.String())
					if err != nil {
						d.Fatal(err)
					}
					defer c.Close()
				}
				a.accept.cancel()
				first.canceled(a.accept)
				second.until("all clients", func() bool { return len(a.accept.conns)+len(b.accept.conns) == 1+round%3 })
				a.discardRest()
				b.discardRest()
				first.ok(first.submit(a.file, backend.Close, nil))
				second.ok(second.submit(b.file, backend.Close, nil))
			}
		}
	})
}

// acceptAll accepts and closes the connections in a listener's queue. It returns how many there
// were.
func (l *loop) acceptAll(listener int) (n int) {
	l.Helper()
	if err := unix.SetNonblock(listener, true); err != nil {
		l.Fatal(err)
	}
	for ; ; n++ {
		fd, _, err := unix.Accept4(listener, unix.SOCK_CLOEXEC)
		if err == unix.EAGAIN {
			return n
		}
		if err != nil {
			l.Fatal(err)
		}
		unix.Close(fd)
	}
}

// TestBlockingModeNeverBlocks: a connection whose socket somebody made blocking still
// receives and sends as before.
func TestBlockingModeNeverBlocks(t *testing.T) {
	eachBackend(t, func(d *driver) {
		l := d.loop()
		for _, network := range streams() {
			a, b := l.pair(network)
			for _, c := range []conn{a, b} {
				if err := unix.SetNonblock(c.fd(), false); err != nil {
					l.Fatal(err)
				}
			}
			waiting := a.recv(nil)
			l.turnFor(2)
			b.overfill()
			if n, err := b.trySend([]byte("x")); n > 1 || err != nil {
				l.Fatalf("%d bytes sent, %v", n, err)
			}
			l.ok(waiting)
			l.ok(a.reset(), b.close())
		}
	})
}

// lingers is an SO_LINGER longer than any test.
var lingers = &unix.Linger{Onoff: 1, Linger: 3600}

func (d *driver) haveLinger(fd int) {
	d.Helper()
	if err := unix.SetsockoptLinger(fd, unix.SOL_SOCKET, unix.SO_LINGER, lingers); err != nil {
		d.Fatal(err)
	}
}

// overfill sends until the system takes no more.
func (c conn) overfill() {
	c.l.Helper()
	s := c.send(make([]byte, 64<<20))
	c.l.turnFor(20)
	s.cancel()
	c.l.wait(s)
}

// TestCloseNeverLingers: close(2) of a socket with SO_LINGER waits until the peer has
// everything. Closing a File does not, wherever the option comes from. The test runs in
// a separate process, without the signals that preempt goroutines, because they would
// end the waiting.
func TestCloseNeverLingers(t *testing.T) {
	const without = "asyncpreemptoff=1"
	if os.Getenv("GODEBUG") == without {
		closeNeverLingers(t)
		return
	}
	ctx, cancel := context.WithTimeout(context.Background(), 2*time.Minute)
	defer cancel()
	child := exec.CommandContext(ctx, os.Args[0], "-test.run=^TestCloseNeverLingers$", "-test.v")
	child.Env = append(os.Environ(), "GODEBUG="+without)
	if out, err := child.CombinedOutput(); err != nil {
		t.Errorf("%v: %s", err, out)
	}
}

func closeNeverLingers(t *testing.T) {
	ways := []struct {
		name string
		pair func(l *loop) conn
	}{
		{"Control", func(l *loop) conn {
			a, _ := l.pair("tcp4")
			l.haveLinger(a.fd())
			return a
		}},
		{"Control, then adopted by another backend", func(l *loop) conn {
			a, _ := l.pair("tcp4")
			l.haveLinger(a.fd())
			h, err := l.b.Release(a.file)
			if err != nil {
				l.Fatal(err)
			}
			other := l.driver.loop()
			return other.adopt(h)
		}},
		{"somebody who had the connection before", func(l *loop) conn {
			ln := l.listen("tcp4", "127.0.0.1:0", backend.Socket{})
			nc, err := net.Dial("tcp4", ln.addr.String())
			if err != nil {
				l.Fatal(err)
			}
			other, err := nc.(*net.TCPConn).File()
			if err != nil {
				l.Fatal(err)
			}
			h, err := l.b.Import(nc)
			if err != nil {
				l.Fatal(err)
			}
			a := l.adopt(h)
			l.adopt(ln.next())
			l.haveLinger(int(other.Fd())) // Fd has made it blocking
			other.Close()
			return a
		}},
		{"the listener's other holder", func(l *loop) conn {
			own, err := net.Listen("tcp4", "127.0.0.1:0")
			if err != nil {
				l.Fatal(err)
			}
			other, err := own.(*net.TCPListener).File()
			if err != nil {
				l.Fatal(err)
			}
			defer other.Close()
			l.haveLinger(int(other.Fd()))
			ln := l.listen("tcp4", "", backend.Socket{Listener: own})
			_, connected := l.dial("tcp4", ln.addr, backend.Socket{})
			a := l.adopt(ln.next())
			l.ok(connected)
			return a
		}},
	}
	for _, way := range ways {
		t.Run(way.name, func(t *testing.T) {
			eachBackend(t, func(d *driver) {
				a := way.pair(d.loop())
				a.overfill()
				d.ok(a.close())
				b := way.pair(d.loop())
				b.overfill()
				d.loops[len(d.loops)-1].close() // with open Files
			})
		})
	}
}

// TestMarkEndsNoStream: bytes after TCP's urgent mark, and after a unix message with a
// descriptor, are received, although the receive before them was short.
func TestMarkEndsNoStream(t *testing.T) {
	eachBackend(t, func(d *driver) {
		l := d.loop()
		for _, network := range streams() {
			a, b := l.pair(network)
			fd := a.fd()
			in := b.drain()
			var out stream
			check := func(err error) {
				l.Helper()
				if err != nil {
					l.Fatal(err)
				}
			}
			for range 20 {
				l.turnFor(1) // b must be watched already
				check(unix.Sendto(fd, out.next(3), 0, nil))
				if network == "unix" {
					check(unix.Sendmsg(fd, out.next(1), unix.UnixRights(0), nil, 0))
				} else {
					check(unix.Sendto(fd, []byte("!"), unix.MSG_OOB, nil)) // not part of the stream
				}
				check(unix.Sendto(fd, out.next(5), 0, nil))
				l.until("what is behind the mark", func() bool { return in.n == out.at })
			}
		}
	})
}

// TestNobodyMeetsHimself: a socket that connects to its own port, which the system
// chose, gets connected to itself. That must be a refusal. If the user chose the port,
// it may be intended.
func TestNobodyMeetsHimself(t *testing.T) {
	const ipLocalPortRange = 51 // IP_LOCAL_PORT_RANGE, Linux 6.3
	free, err := net.Listen("tcp4", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	addr := free.Addr().(*net.TCPAddr)
	free.Close()
	eachBackend(t, func(d *driver) {
		l := d.loop()
		f, err := l.b.Socket("tcp4", nil, &backend.Socket{})
		if err != nil {
			l.Fatal(err)
		}
		if err := l.b.Control(f, func(fd uintptr) error {
			return unix.SetsockoptInt(int(fd), unix.IPPROTO_IP, ipLocalPortRange, addr.Port|addr.Port<<16)
		}); err != nil {
			l.Log("there is no way to choose the system's choice: ", err) // an older Linux, or std, where package net chooses
			return
		}
		c := l.connect(f, addr)
		l.wait(c)
		if c.err == nil || !isErr(c.err, refused) {
			l.Errorf("connected to %v from %v, error %v; want a refusal", l.b.RemoteAddr(f), l.b.LocalAddr(f), c.err)
		}
		l.ok(l.submit(f, backend.Reset, nil)) // leaves the port free
		f, err = l.b.Socket("tcp4", addr, &backend.Socket{})
		if err != nil {
			l.Fatal(err)
		}
		l.ok(l.connect(f, addr))
		l.ok(l.submit(f, backend.Reset, nil))
	})
}

// TestFileGoesBeforeListener: the file of a unix listener is removed before its socket
// is closed. After that another server may have taken the place, and would lose its
// file. An epoll reports the order of the two events.
func TestFileGoesBeforeListener(t *testing.T) {
	for _, end := range []string{"Close", "the backend's Close"} {
		t.Run(end, func(t *testing.T) {
			eachBackend(t, func(d *driver) {
				l := d.loop()
				path := l.address("unix")
				ln := l.listen("unix", path, backend.Socket{})
				waiting, err := unix.Socket(unix.AF_UNIX, unix.SOCK_STREAM|unix.SOCK_CLOEXEC|unix.SOCK_NONBLOCK, 0)
				if err != nil {
					l.Fatal(err)
				}
				defer unix.Close(waiting)
				if err := unix.Connect(waiting, &unix.SockaddrUnix{Name: path}); err != nil {
					l.Fatal(err)
				}
				accepted := l.adopt(ln.next()) // its end follows the listener's
				ln.accept.cancel()
				l.wait(ln.accept)
				order := watchBoth(l, filepath.Dir(path), waiting)
				if end == "Close" {
					l.ok(l.submit(ln.file, backend.Close, nil))
					l.ok(accepted.close())
				} else {
					l.close()
				}
				if got := order(); got != "file" {
					l.Errorf("the %s went first, want the file", got)
				}
			})
		})
	}
}

// watchBoth returns a function that tells what happened first: the deletion of a file
// in dir, or the end of a connection's peer.
func watchBoth(d testing.TB, dir string, conn int) func() string {
	d.Helper()
	notify, err := unix.InotifyInit1(unix.IN_CLOEXEC | unix.IN_NONBLOCK)
	if err != nil {
		d.Fatal(err)
	}
	d.Cleanup(func() { unix.Close(notify) })
	if _, err := unix.InotifyAddWatch(notify, dir, unix.IN_DELETE); err != nil {
		d.Fatal(err)
	}
	ep, err := unix.EpollCreate1(unix.EPOLL_CLOEXEC)
	if err != nil {
		d.Fatal(err)
	}
	d.Cleanup(func() { unix.Close(ep) })
	for _, fd := range []int{notify, conn} {
		if err := unix.EpollCtl(ep, unix.EPOLL_CTL_ADD, fd, &unix.EpollEvent{Events: unix.EPOLLIN | unix.EPOLLRDHUP, Fd: int32(fd)}); err != nil {
			d.Fatal(err)
		}
	}
	return func() string {
		var events [2]unix.EpollEvent
		n, err := unix.EpollWait(ep, events[:], int(seamPatience/time.Millisecond))
		switch {
		case n < 1 || err != nil:
			return "patience"
		case int(events[0].Fd) == notify:
			return "file"
		}
		return "socket"
	}
}
