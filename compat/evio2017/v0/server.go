package evio

import (
	"context"
	"errors"
	"maps"
	"math"
	"net"
	"os"
	"slices"
	"sync"
	"syscall"
	"time"

	"github.com/rondo-go/rondo"
	"github.com/rondo-go/rondo/compat/internal/address"
)

// server is one call of Serve. Its events run on its loop.
//
//	begin: listens, Serving --> serving --Shutdown by an event--> over --> end: Closed
type server struct {
	events  Events
	std     bool
	engine  rondo.Engine
	loop    *rondo.Loop
	addrs   []net.Addr
	streams []*rondo.Listener
	packets []rondo.PacketRef
	open    sync.WaitGroup // of packets
	peers   peers
	ticker  *rondo.Timer
	over    bool          // no more events but Closed
	stopped chan struct{} // closed when over is set

	mu    sync.Mutex
	last  int           // the last id
	conns map[int]*conn // nil: the server has ended
}

// Serve listens on the addresses, and calls events until one of them returns
// Shutdown. It returns an error if it cannot listen on an address. Without an
// address it serves only the connections of Dial.
//
// An address is scheme://host:port, or scheme://path for the scheme unix;
// without a scheme it is tcp. The schemes are tcp, tcp4, tcp6, udp, udp4, udp6
// and unix. If any scheme has the suffix -net, as in tcp-net, package net
// serves all addresses. With ?reuseport=true after an address, other servers
// may listen on the same address (SO_REUSEPORT).
func Serve(events Events, addr ...string) error {
	s := &server{events: events, stopped: make(chan struct{}), conns: make(map[int]*conn)}
	var parsed []address.Address
	for _, a := range addr {
		one := address.Parse(a)
		if err := resolve(&one); err != nil {
			return err
		}
		parsed = append(parsed, one)
		s.std = s.std || one.Std
	}
	s.configure()
	if err := s.engine.Start(); err != nil {
		return err
	}
	for l := range s.engine.Loops() {
		s.loop = l
	}
	var err error
	s.wait(func() { err = s.begin(parsed) })
	if err != nil {
		s.engine.Close()
		return err
	}
	<-s.stopped
	s.end()
	return nil
}

// resolve looks up the names of an address, since begin listens on the loop.
func resolve(a *address.Address) error {
	var found net.Addr
	var err error
	switch a.Network {
	case "tcp", "tcp4", "tcp6":
		found, err = net.ResolveTCPAddr(a.Network, a.Host)
	case "udp", "udp4", "udp6":
		found, err = net.ResolveUDPAddr(a.Network, a.Host)
	default:
		return nil // Listen reports a wrong network
	}
	if err == nil {
		a.Host = found.String()
	}
	return err
}

// configure makes the engine behave like the original.
func (s *server) configure() {
	e := &s.engine
	e.NumLoops = 1
	if s.std {
		e.Backend = "std"
	}
	e.Repanic = true
	e.MaxOutput = math.MaxInt32 // the output of an event may have any size
	if s.events.Prewrite != nil || s.events.Postwrite != nil {
		e.Trace = &rondo.Trace{BeforeWrite: s.before, AfterWrite: s.written}
	}
}

// wait calls f on the loop, and waits for it.
func (s *server) wait(f func()) {
	done := make(chan struct{})
	if s.loop.Post(func() { defer close(done); f() }) == nil {
		<-done
	}
}

// end ends the events before it closes anything, as the original does.
// Connections send their remaining output in the background.
func (s *server) end() {
	for _, ln := range s.streams {
		ln.Close()
	}
	for _, c := range s.packets {
		c.Close()
	}
	s.open.Wait()
	left := false
	s.wait(func() {
		s.closeAll()
		for range s.loop.Conns() { // also those whose Closed was called, which end in order
			left = true
			break
		}
	})
	if !left {
		s.engine.Close()
		return
	}
	go func() {
		ctx, cancel := context.WithTimeout(context.Background(), rondo.DefaultLinger)
		defer cancel()
		s.engine.Shutdown(ctx)
	}()
}

// wake is Server.Wake.
func (s *server) wake(id int) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	c := s.conns[id]
	if c == nil {
		return false
	}
	if !c.woken {
		c.woken = true
		c.ref.Do(wake) // an error: it is being dialed, and opened does this
	}
	return true
}

// dial is Server.Dial.
func (s *server) dial(addr string, timeout time.Duration) int {
	c := s.newConn()
	if c == nil {
		return 0
	}
	a := address.Parse(addr)
	if timeout < 0 {
		timeout = 1
	}
	// An error: the server ends, and closeAll reports that.
	s.loop.Post(func() { c.dial(a, timeout) })
	return c.id
}

// newConn makes a connection with an id, or nil if the server has ended.
func (s *server) newConn() *conn {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.conns == nil {
		return nil
	}
	s.last++
	c := &conn{server: s, id: s.last}
	s.conns[c.id] = c
	return c
}

// newID returns an id for a peer of datagrams.
func (s *server) newID() int {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.last++
	return s.last
}

// The functions from here on run on the loop.

// begin listens on all addresses and calls the first events. Since it is one
// event of the loop, no other comes before it returns.
func (s *server) begin(addrs []address.Address) error {
	for i, a := range addrs {
		if err := s.listen(a, i); err != nil {
			return err
		}
	}
	if s.events.Serving != nil {
		s.after(s.events.Serving(Server{Addrs: s.addrs, Wake: s.wake, Dial: s.dial}))
	}
	if s.events.Tick != nil {
		s.tick()
	}
	return nil
}

func (s *server) listen(a address.Address, index int) error {
	socket := rondo.SocketOptions{KeepAlive: -1, ReusePort: a.ReusePort}
	if a.Datagrams() {
		c, err := s.engine.ListenPacket(a.Network, a.Host, socket, &packetHandler{s, index})
		if err != nil {
			return err
		}
		s.open.Add(1)
		s.packets = append(s.packets, c.Ref())
		s.addrs = append(s.addrs, c.LocalAddr())
		return nil
	}
	ln, err := s.engine.Listen(a.Network, a.Host, socket, func(rc *rondo.Conn) rondo.Handler {
		if s.over {
			return nil
		}
		return s.newConn().open(rc, index)
	})
	if err != nil {
		return err
	}
	s.streams = append(s.streams, ln)
	s.addrs = append(s.addrs, ln.Addr())
	return nil
}

func (s *server) tick() {
	if s.over {
		return
	}
	delay, action := s.events.Tick()
	s.after(action)
	// At least 1, so that other events get their turn.
	delay = max(1, delay)
	if s.ticker == nil {
		s.ticker = s.loop.AfterFunc(delay, s.tick)
	} else {
		s.ticker.Reset(delay)
	}
}

// after carries out an event's action that concerns the server.
func (s *server) after(action Action) {
	if action == Shutdown && !s.over {
		s.over = true
		close(s.stopped)
	}
}

// before and written are the hooks around a write.

func (s *server) before(rc *rondo.Conn, n int) {
	if c, ok := rc.Handler().(*conn); ok && c.state == open && s.events.Prewrite != nil {
		s.after(s.events.Prewrite(c.id, n))
	}
}

func (s *server) written(rc *rondo.Conn, n int) {
	c, ok := rc.Handler().(*conn)
	if !ok || c.state != open {
		return
	}
	c.unsent -= n
	left := c.unsent // and not rc.Buffered: when a write has failed, that is what the loop has not dropped
	if len(c.translators) > 0 {
		left = rc.Buffered()
	}
	if s.events.Postwrite != nil {
		s.after(s.events.Postwrite(c.id, n, left))
	}
}

// closeAll ends all connections, the youngest first.
func (s *server) closeAll() {
	s.mu.Lock()
	conns := s.conns
	s.conns = nil
	s.mu.Unlock()
	for _, id := range slices.Backward(slices.Sorted(maps.Keys(conns))) {
		c := conns[id]
		c.ended(nil)
		if c.conn != nil {
			c.conn.Close()
		}
	}
	for _, id := range s.peers.all() {
		s.closed(id, nil)
	}
}

// closed calls the event Closed.
func (s *server) closed(id int, err error) {
	if s.events.Closed != nil {
		s.after(s.events.Closed(id, err))
	}
}

// cause returns err as the original reports it: with the -net suffix an error
// of package net, otherwise the system's error number.
func (s *server) cause(err error) error {
	var number syscall.Errno
	switch {
	case s.std:
	case errors.Is(err, os.ErrDeadlineExceeded): // of a Dial
		return syscall.ETIMEDOUT
	case errors.As(err, &number):
		return number
	}
	return err
}
