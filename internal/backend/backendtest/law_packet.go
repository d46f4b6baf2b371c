package backendtest

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net/netip"
	"runtime"
	"slices"
	"syscall"
	"time"

	"github.com/rondo-go/rondo"
)

// packetLaws are the engine's laws of datagram sockets. Both ends are PacketConns, of
// separate engines. Networks may lose datagrams, so a test repeats its requests.
var packetLaws = []law{
	{"PacketsAreAnswered", packetsAreAnswered},
	{"PacketsOfAllSizes", packetsOfAllSizes},
	{"PacketPanicCostsOne", packetPanicCostsOne},
	{"PacketsOfAConnectedSocket", packetsOfAConnectedSocket},
	{"PacketToNobody", packetToNobody},
	{"PacketFailuresAreTold", packetFailuresAreTold},
	{"PacketOutputIsBounded", packetOutputIsBounded},
	{"PacketCloseSendsFirst", packetCloseSendsFirst},
	{"PacketClosedOnceAndLast", packetClosedOnceAndLast},
	{"PacketShutdown", packetShutdown},
	{"PacketPause", packetPause},
	{"PacketRefOfAClosedSocket", packetRefOfAClosedSocket},
	{"PacketUnbound", packetReplyComesFromWhereItCame},
	{"PacketReusePort", packetReusePort},
	{"PacketGroups", packetGroups},
	{"PacketStats", packetStats},
}

func packetsAreAnswered(w World) {
	server, client := replies(w), &packetHandler{w: w}
	s := w.ListenPacket(&rondo.Engine{NumLoops: 1}, "udp", "127.0.0.1:0", server)
	c := w.ListenPacket(&rondo.Engine{NumLoops: 1}, "udp4", "127.0.0.1:0", client)
	for i := range 100 {
		ask(w, c, addrOf(s), fmt.Sprint("question ", i), client)
	}
	server.mu.Lock()
	defer server.mu.Unlock()
	client.mu.Lock()
	defer client.mu.Unlock()
	for _, from := range server.from {
		if from != addrOf(c) {
			w.Fatalf("a question came from %v, not %v", from, addrOf(c))
		}
	}
	for _, from := range client.from {
		if from != addrOf(s) {
			w.Fatalf("an answer came from %v, not %v", from, addrOf(s))
		}
	}
}

// packetsOfAllSizes: no datagram is truncated, joined or mixed up, even if many are
// written in one turn.
func packetsOfAllSizes(w World) {
	server, client := replies(w), &packetHandler{w: w}
	s := w.ListenPacket(&rondo.Engine{NumLoops: 1}, "udp4", "127.0.0.1:0", server)
	c := w.ListenPacket(&rondo.Engine{NumLoops: 1}, "udp4", "127.0.0.1:0", client)
	for _, n := range []int{0, 1, 64, 1200, 1472, 9000, 65507} {
		p := string(pattern(n))
		ask(w, c, addrOf(s), p, client)
		// A system that joins datagrams of equal size must not mix up these sizes.
		want := []string{p, p, p[:n/2], p, string(pattern(n + 1)[:min(n+1, 65507)])}
		retry(w, "datagrams of mixed sizes", func() {
			onLoop(w, c, func(c *rondo.PacketConn) {
				for _, p := range want {
					if err := c.WriteTo([]byte(p), addrOf(s)); err != nil {
						w.Errorf("WriteTo: %v", err)
					}
				}
			})
		}, func() bool {
			for _, p := range want {
				if !client.has(p) {
					return false
				}
			}
			return true
		})
	}
	client.mu.Lock()
	defer client.mu.Unlock()
	for _, g := range client.got {
		if !bytes.Equal([]byte(g), pattern(len(g))) {
			w.Fatalf("a datagram of %d bytes was never sent: %.40q", len(g), g)
		}
	}
}

// packetPanicCostsOne: the other datagrams of the batch are handled, and the socket
// continues.
func packetPanicCostsOne(w World) {
	e := &rondo.Engine{NumLoops: 1, Logger: slog.New(slog.NewTextHandler(io.Discard, nil))}
	server := replies(w)
	answer := server.packet
	server.packet = func(c *rondo.PacketConn, p []byte, from netip.AddrPort) {
		if string(p) == "panic" {
			panic("handler's")
		}
		answer(c, p, from)
	}
	client := &packetHandler{w: w}
	s := w.ListenPacket(e, "udp4", "127.0.0.1:0", server)
	c := w.ListenPacket(&rondo.Engine{NumLoops: 1}, "udp4", "127.0.0.1:0", client)
	retry(w, "answers to what came with what panics", func() {
		onLoop(w, c, func(c *rondo.PacketConn) {
			for _, p := range []string{"before", "panic", "between", "panic", "after"} {
				c.WriteTo([]byte(p), addrOf(s))
			}
		})
	}, func() bool {
		return client.has("before") && client.has("between") && client.has("after") && server.has("panic")
	})
	w.Until("counted panics", func() bool { return e.Stats().Panics > 0 })
	if _, _, closed := server.state(); closed != 0 {
		w.Errorf("the socket was closed")
	}
}

// packetsOfAConnectedSocket: a connected socket receives only from its peer.
func packetsOfAConnectedSocket(w World) {
	server, client, other := replies(w), &packetHandler{w: w}, &packetHandler{w: w}
	s := w.ListenPacket(&rondo.Engine{NumLoops: 1}, "udp4", "127.0.0.1:0", server)
	e := &rondo.Engine{NumLoops: 1}
	c := w.DialPacket(e, "udp4", addrOf(s).String(), client)
	o := w.ListenPacket(&rondo.Engine{NumLoops: 1}, "udp4", "127.0.0.1:0", other)
	onLoop(w, o, func(o *rondo.PacketConn) { o.WriteTo([]byte("stranger's"), addrOf(c)) })
	ask(w, c, netip.AddrPort{}, "hello", client)
	ask(w, c, netip.AddrPort{}, "again", client)
	if client.has("stranger's") {
		w.Errorf("a connected socket received a stranger's datagram")
	}
}

// packetToNobody: a sender to a closed port gets the error, and continues.
func packetToNobody(w World) {
	gone := &packetHandler{w: w}
	g := w.ListenPacket(&rondo.Engine{NumLoops: 1}, "udp4", "127.0.0.1:0", gone)
	to := addrOf(g)
	g.Ref().Close()
	gone.untilClosed()
	h := &packetHandler{w: w}
	c := w.DialPacket(&rondo.Engine{NumLoops: 1}, "udp4", to.String(), h)
	for addrOf(c) == to { // the port is free, so the system may give it to the sender
		h = &packetHandler{w: w}
		c = w.DialPacket(&rondo.Engine{NumLoops: 1}, "udp4", to.String(), h)
	}
	retry(w, "an error", func() {
		c.Ref().WriteTo([]byte("anybody?"), netip.AddrPort{})
	}, func() bool {
		_, errs, _ := h.state()
		return errs > 0
	})
	h.mu.Lock()
	err := h.errs[0]
	h.mu.Unlock()
	if !errors.Is(err, syscall.ECONNREFUSED) {
		w.Errorf("sending to nobody: %v, want ECONNREFUSED", err)
	}
	back := replies(w)
	w.ListenPacket(&rondo.Engine{NumLoops: 1}, "udp4", to.String(), back)
	ask(w, c, netip.AddrPort{}, "somebody!", h)
}

// packetFailuresAreTold: a PacketFailed that fails costs none of the others.
func packetFailuresAreTold(w World) {
	for _, fail := range []func(){func() { panic("a goat") }, runtime.Goexit} {
		const many = 5
		h := &packetHandler{w: w, failed: fail}
		e := &rondo.Engine{NumLoops: 1, Logger: slog.New(slog.DiscardHandler)}
		c := w.ListenPacket(e, "udp4", "127.0.0.1:0", h)
		onLoop(w, c, func(c *rondo.PacketConn) {
			for range many {
				c.WriteTo(make([]byte, 66_000), addrOf(c)) // longer than a datagram may be
			}
		})
		w.Until("the errors", func() bool { _, errs, _ := h.state(); return errs >= many })
		w.Call(func() { e.Close() })
		if _, errs, _ := h.state(); errs != many || e.Stats().Panics != many {
			w.Errorf("%d errors were told of, and %d failures counted; want %d", errs, e.Stats().Panics, many)
		}
	}
}

// packetOutputIsBounded: what the system does not take waits up to MaxOutput.
func packetOutputIsBounded(w World) {
	sink := &packetHandler{w: w}
	s := w.ListenPacket(&rondo.Engine{NumLoops: 1}, "udp4", "127.0.0.1:0", sink)
	const limit = 100_000
	h := &packetHandler{w: w}
	e := &rondo.Engine{NumLoops: 1, MaxOutput: limit}
	c := w.ListenPacket(e, "udp4", "127.0.0.1:0", h)
	onLoop(w, c, func(c *rondo.PacketConn) {
		if err := c.WriteTo(make([]byte, limit), addrOf(s)); !errors.Is(err, rondo.ErrOutputFull) {
			w.Errorf("a datagram larger than MaxOutput: %v", err)
		}
		for range 1000 {
			c.WriteTo(make([]byte, 1000), addrOf(s))
			if n := c.Buffered(); n > limit {
				w.Errorf("%d bytes wait, MaxOutput is %d", n, limit)
				return
			}
		}
	})
	left := 1
	retry(w, "sent output", func() {
		onLoop(w, c, func(c *rondo.PacketConn) { left = c.Buffered() })
	}, func() bool { return left == 0 })
	w.Until("a count of what was not sent", func() bool { return e.Stats().PacketsUnsent > 0 })
	if err := c.Ref().WriteTo(make([]byte, limit), addrOf(s)); !errors.Is(err, rondo.ErrOutputFull) {
		w.Errorf("PacketRef.WriteTo of more than MaxOutput: %v", err)
	}
}

// packetCloseSendsFirst: Close sends the datagrams written before it.
func packetCloseSendsFirst(w World) {
	server := &packetHandler{w: w}
	s := w.ListenPacket(&rondo.Engine{NumLoops: 1}, "udp4", "127.0.0.1:0", server)
	retry(w, "what was written before Close", func() {
		h := &packetHandler{w: w}
		c := w.ListenPacket(&rondo.Engine{NumLoops: 1}, "udp4", "127.0.0.1:0", h)
		onLoop(w, c, func(c *rondo.PacketConn) {
			c.WriteTo([]byte("last words"), addrOf(s))
			c.Close()
			if err := c.WriteTo([]byte("too late"), addrOf(s)); !errors.Is(err, rondo.ErrClosed) {
				w.Errorf("WriteTo after Close: %v", err)
			}
		})
		if err := h.untilClosed(); err != nil {
			w.Errorf("Closed got %v", err)
		}
	}, func() bool { return server.has("last words") })
	if server.has("too late") {
		w.Errorf("a datagram written after Close arrived")
	}
}

func packetClosedOnceAndLast(w World) {
	h := replies(w)
	h.packet = func(c *rondo.PacketConn, p []byte, _ netip.AddrPort) {
		c.Reply(p)
		c.Close()
		c.Close()
	}
	e := &rondo.Engine{NumLoops: 2}
	s := w.ListenPacket(e, "udp4", "127.0.0.1:0", h)
	c := w.ListenPacket(&rondo.Engine{NumLoops: 1}, "udp4", "127.0.0.1:0", &packetHandler{w: w})
	retry(w, "Closed", func() {
		for range 10 {
			c.Ref().WriteTo([]byte("x"), addrOf(s))
		}
	}, func() bool {
		_, _, closed := h.state()
		return closed > 0
	})
	w.Sleep(10 * time.Millisecond)
	packets, _, closed := h.state()
	if packets != 1 || closed != 1 {
		w.Errorf("%d datagrams and %d times Closed, want 1 and 1", packets, closed)
	}
	w.Call(func() { e.Close() })
}

// packetShutdown: sockets close with their engine, in order or at once.
func packetShutdown(w World) {
	for _, end := range []struct {
		end  func(e *rondo.Engine) error
		want error
	}{
		{func(e *rondo.Engine) error { return e.Shutdown(context.Background()) }, nil},
		{(*rondo.Engine).Close, rondo.ErrClosed},
	} {
		h := &packetHandler{w: w}
		e := &rondo.Engine{NumLoops: 2}
		c := w.ListenPacket(e, "udp4", "127.0.0.1:0", h)
		w.Call(func() {
			if err := end.end(e); err != nil {
				w.Errorf("end of the engine: %v", err)
			}
		})
		if err := h.untilClosed(); !errors.Is(err, end.want) {
			w.Errorf("Closed got %v, want %v", err, end.want)
		}
		if err := c.Ref().WriteTo(nil, addrOf(c)); !errors.Is(err, rondo.ErrClosed) {
			w.Errorf("WriteTo after the engine's end: %v", err)
		}
	}
}

// packetPause: no datagram is handled while a socket is paused.
func packetPause(w World) {
	server, client := replies(w), &packetHandler{w: w}
	s := w.ListenPacket(&rondo.Engine{NumLoops: 1}, "udp4", "127.0.0.1:0", server)
	c := w.ListenPacket(&rondo.Engine{NumLoops: 1}, "udp4", "127.0.0.1:0", client)
	onLoop(w, s, func(s *rondo.PacketConn) { s.Pause() })
	came := 0
	for range 3 {
		before, _, _ := server.state()
		for range 5 {
			c.Ref().WriteTo([]byte("waits"), addrOf(s))
		}
		w.Sleep(20 * time.Millisecond)
		if n, _, _ := server.state(); n > before {
			came++
		}
	}
	if came > 1 { // a receive in flight may have got a datagram
		w.Errorf("datagrams were handled %d times during a pause", came)
	}
	onLoop(w, s, func(s *rondo.PacketConn) { s.Resume() })
	ask(w, c, addrOf(s), "goes on", client)
}

func packetRefOfAClosedSocket(w World) {
	h := &packetHandler{w: w}
	c := w.ListenPacket(&rondo.Engine{NumLoops: 1}, "udp4", "127.0.0.1:0", h)
	r := c.Ref()
	if r != c.Ref() || r.Closed() {
		w.Errorf("a new socket's Ref")
	}
	r.Close()
	h.untilClosed()
	if !r.Closed() || !errors.Is(r.Do(func(*rondo.PacketConn) {}), rondo.ErrClosed) {
		w.Errorf("a closed socket's Ref is not closed")
	}
	if (rondo.PacketRef{}).WriteTo(nil, netip.AddrPort{}) != rondo.ErrClosed {
		w.Errorf("the zero PacketRef is not closed")
	}
}

// packetReplyComesFromWhereItCame: on a host with many addresses, a reply comes from
// the address that the request was sent to. Systems that do not report that address
// reply from the route's, which is the same here.
func packetReplyComesFromWhereItCame(w World) {
	server, client := replies(w), &packetHandler{w: w}
	s := w.ListenPacket(&rondo.Engine{NumLoops: 1}, "udp", ":0", server)
	c := w.ListenPacket(&rondo.Engine{NumLoops: 1}, "udp4", "127.0.0.1:0", client)
	to := netip.AddrPortFrom(otherLoopback(), addrOf(s).Port())
	ask(w, c, to, "who are you?", client)
	client.mu.Lock()
	defer client.mu.Unlock()
	if client.from[0] != to {
		w.Errorf("the answer came from %v, the question went to %v", client.from[0], to)
	}
}

// packetReusePort: every loop has a socket, and each closes.
func packetReusePort(w World) {
	server, client := replies(w), &packetHandler{w: w}
	s := w.ListenPacket(&rondo.Engine{NumLoops: 2, Balance: rondo.ReusePort}, "udp4", "127.0.0.1:0", server)
	for i := range 20 {
		c := w.ListenPacket(&rondo.Engine{NumLoops: 1}, "udp4", "127.0.0.1:0", client)
		ask(w, c, addrOf(s), fmt.Sprint("from socket ", i), client)
	}
	s.Ref().Close()
	server.untilClosed()
	if slices.Contains([]string{"linux", "dragonfly", "freebsd"}, runtime.GOOS) {
		w.Until("Closed of both", func() bool { _, _, closed := server.state(); return closed == 2 })
	}
}

// packetGroups: members receive a group's datagrams until they leave, also while others
// on the machine are members.
func packetGroups(w World) {
	group := netip.MustParseAddr("224.0.0.223")
	lo, index := loopback()
	h := &packetHandler{w: w}
	s := w.ListenPacket(&rondo.Engine{NumLoops: 1}, "udp4", "0.0.0.0:0", h)
	c := w.ListenPacket(&rondo.Engine{NumLoops: 1}, "udp4", "0.0.0.0:0", &packetHandler{w: w})
	onLoop(w, s, func(s *rondo.PacketConn) {
		if err := s.JoinGroup(netip.MustParseAddr("127.0.0.1"), lo); err == nil {
			w.Errorf("JoinGroup of an address that is not a group succeeded")
		}
		if err := s.JoinGroup(group, lo); err != nil {
			w.Errorf("Join: %v", err)
		}
	})
	// On Wine a socket receives every group that the machine joined, which is Linux's
	// default. So nobody else joins there.
	if runtime.GOOS != "windows" {
		onLoop(w, c, func(c *rondo.PacketConn) {
			if err := c.JoinGroup(group, lo); err != nil {
				w.Errorf("Join: %v", err)
			}
		})
	}
	to := netip.AddrPortFrom(group, addrOf(s).Port())
	say := func(p string) {
		w.Helper()
		onLoop(w, c, func(c *rondo.PacketConn) {
			c.WriteVia([]byte(p), to, rondo.ControlMessage{Local: netip.MustParseAddr("127.0.0.1"), Interface: index})
		})
		w.Sleep(10 * time.Millisecond)
	}
	retry(w, "a datagram to the group", func() { say("all") }, func() bool { return h.has("all") })
	onLoop(w, s, func(s *rondo.PacketConn) {
		if err := s.LeaveGroup(group, lo); err != nil {
			w.Errorf("Leave: %v", err)
		}
	})
	say("nobody")
	say("nobody")
	if h.has("nobody") {
		w.Errorf("a socket that left a group got its datagram")
	}
}

func packetStats(w World) {
	server, client := replies(w), &packetHandler{w: w}
	e := &rondo.Engine{NumLoops: 1}
	s := w.ListenPacket(e, "udp4", "127.0.0.1:0", server)
	c := w.ListenPacket(&rondo.Engine{NumLoops: 1}, "udp4", "127.0.0.1:0", client)
	ask(w, c, addrOf(s), "count me", client)
	w.Until("counts", func() bool {
		n, _, _ := server.state()
		st := e.Stats()
		return int(st.PacketsIn) == n && int(st.PacketsOut) == n && int(st.BytesIn) == n*len("count me") && st.BytesOut == st.BytesIn
	})
}
