package backendtest

import (
	"fmt"
	"net"
	"net/netip"
	"runtime"
	"sync"
	"time"

	"github.com/rondo-go/rondo"
)

// packetHandler records its datagrams and checks the order of calls for each socket.
// With ReusePort it serves several sockets.
type packetHandler struct {
	w      World
	packet func(c *rondo.PacketConn, p []byte, from netip.AddrPort) // nil: none
	failed func()                                                   // nil: none

	mu     sync.Mutex
	got    []string
	from   []netip.AddrPort
	errs   []error
	over   map[*rondo.PacketConn]bool // closed sockets
	closed int
	err    error
}

func (h *packetHandler) Packet(c *rondo.PacketConn, p []byte, from netip.AddrPort) {
	h.mu.Lock()
	if h.over[c] {
		h.w.Errorf("a datagram after Closed")
	}
	h.got = append(h.got, string(p))
	h.from = append(h.from, from)
	h.mu.Unlock()
	if h.packet != nil {
		h.packet(c, p, from)
	}
}

func (h *packetHandler) PacketFailed(c *rondo.PacketConn, _ netip.AddrPort, err error) {
	h.mu.Lock()
	if h.over[c] {
		h.w.Errorf("an error after Closed: %v", err)
	}
	h.errs = append(h.errs, err)
	h.mu.Unlock()
	if h.failed != nil {
		h.failed()
	}
}

func (h *packetHandler) Closed(c *rondo.PacketConn, err error) {
	h.mu.Lock()
	defer h.mu.Unlock()
	if h.over[c] {
		h.w.Errorf("Closed twice")
	}
	if h.over == nil {
		h.over = make(map[*rondo.PacketConn]bool)
	}
	h.over[c] = true
	h.closed++
	h.err = err
}

func (h *packetHandler) state() (packets, errs, closed int) {
	h.mu.Lock()
	defer h.mu.Unlock()
	return len(h.got), len(h.errs), h.closed
}

// has reports whether p was received.
func (h *packetHandler) has(p string) bool {
	h.mu.Lock()
	defer h.mu.Unlock()
	for _, g := range h.got {
		if g == p {
			return true
		}
	}
	return false
}

func (h *packetHandler) untilClosed() error {
	h.w.Helper()
	h.w.Until("Closed of a datagram socket", func() bool { _, _, closed := h.state(); return closed > 0 })
	h.mu.Lock()
	defer h.mu.Unlock()
	return h.err
}

// replies returns a handler that sends datagrams back.
func replies(w World) *packetHandler {
	return &packetHandler{w: w, packet: func(c *rondo.PacketConn, p []byte, _ netip.AddrPort) {
		if err := c.Reply(p); err != nil {
			w.Errorf("Reply: %v", err)
		}
	}}
}

// addrOf returns the address of a socket, as reached from the same host.
func addrOf(c *rondo.PacketConn) netip.AddrPort {
	ap := c.LocalAddr().(*net.UDPAddr).AddrPort()
	return netip.AddrPortFrom(ap.Addr().Unmap(), ap.Port())
}

// onLoop runs f on c's loop, and waits for it.
func onLoop(w World, c *rondo.PacketConn, f func(c *rondo.PacketConn)) {
	w.Helper()
	done := make(chan struct{})
	if err := c.Ref().Do(func(c *rondo.PacketConn) { defer close(done); f(c) }); err != nil {
		w.Fatalf("PacketRef.Do: %v", err)
	}
	w.Until("PacketRef.Do", func() bool {
		select {
		case <-done:
			return true
		default:
			return false
		}
	})
}

// ask sends p from c to an address until h has it.
func ask(w World, c *rondo.PacketConn, to netip.AddrPort, p string, h *packetHandler) {
	w.Helper()
	retry(w, fmt.Sprintf("a datagram of %d bytes", len(p)), func() {
		if err := c.Ref().WriteTo([]byte(p), to); err != nil {
			w.Fatalf("PacketRef.WriteTo: %v", err)
		}
	}, func() bool { return h.has(p) })
}

// retry repeats try until done, and fails after some time.
func retry(w World, what string, try func(), done func() bool) {
	w.Helper()
	for begin := w.Now(); !done(); {
		if w.Now().Sub(begin) > patience {
			w.Fatalf("tried %v in vain: %s", patience, what)
		}
		try()
		for pause := time.Duration(100_000); !done() && pause < 30*time.Millisecond; pause *= 4 {
			w.Sleep(pause)
		}
	}
}

// otherLoopback returns another loopback address than 127.0.0.1, if there is one.
func otherLoopback() netip.Addr {
	if runtime.GOOS == "linux" || runtime.GOOS == "windows" {
		return netip.AddrFrom4([4]byte{127, 0, 0, 2})
	}
	return netip.AddrFrom4([4]byte{127, 0, 0, 1})
}

// loopback returns the loopback interface and its index.
func loopback() (*net.Interface, int) {
	all, _ := net.Interfaces()
	for _, i := range all {
		if i.Flags&net.FlagLoopback != 0 {
			return &i, i.Index
		}
	}
	return nil, 0
}
