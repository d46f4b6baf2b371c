package evio

import (
	"context"
	"errors"
	"math"
	"net"
	"runtime"
	"sync"
	"syscall"

	"github.com/rondo-go/rondo"
	"github.com/rondo-go/rondo/compat/internal/address"
)

// server is one call of Serve.
type server struct {
	events  Events
	std     bool
	engine  rondo.Engine
	loops   []*loop // by the ID of the rondo.Loop
	addrs   []net.Addr
	streams []*rondo.Listener
	packets []rondo.PacketRef
	open    sync.WaitGroup // of packets

	stop func()        // closes stopped, once
	done chan struct{} // closed when an event has asked for Shutdown
}

// loop is a server's part on one loop, and belongs to that loop.
//
//	waiting --start--> serving --Shutdown by an event, or by another loop--> ended
type loop struct {
	*server
	loop   *rondo.Loop
	state  state
	early  []func() // events that arrived while waiting
	ticker *rondo.Timer
}

type state uint8

const (
	waiting state = iota // for the event Serving to return
	serving
	ended // no more events but Closed
)

// Serve listens on the addresses, and calls events until one of them returns
// Shutdown. It returns an error if it cannot listen on an address.
//
// An address is scheme://host:port, or scheme://path for the scheme unix;
// without a scheme it is tcp. The schemes are tcp, tcp4, tcp6, udp, udp4, udp6
// and unix. If any scheme has the suffix -net, as in tcp-net, package net
// serves all addresses. With ?reuseport=true after an address, other servers
// may listen on the same address (SO_REUSEPORT).
func Serve(events Events, addr ...string) error {
	s, err := listen(events, addr)
	if err != nil {
		return err
	}
	if events.Serving != nil && events.Serving(Server{s.addrs, len(s.loops)}) == Shutdown {
		return s.engine.Close()
	}
	s.each((*loop).start)
	<-s.done
	s.end()
	return nil
}

// listen starts the loops, and listens on all addresses.
func listen(events Events, addrs []string) (*server, error) {
	s := &server{events: events, done: make(chan struct{})}
	s.stop = sync.OnceFunc(func() { close(s.done) })
	var parsed []address.Address
	for _, a := range addrs {
		parsed = append(parsed, address.Parse(a))
		s.std = s.std || parsed[len(parsed)-1].Std
	}
	s.configure()
	if err := s.engine.Start(); err != nil {
		return nil, err
	}
	for l := range s.engine.Loops() {
		s.loops = append(s.loops, &loop{server: s, loop: l})
	}
	for i, a := range parsed {
		if err := s.listenOn(a, i); err != nil {
			s.engine.Close()
			return nil, err
		}
	}
	return s, nil
}

// configure makes the engine behave like the original.
func (s *server) configure() {
	e := &s.engine
	switch {
	case s.events.NumLoops < 0:
		e.NumLoops = runtime.NumCPU()
	default:
		e.NumLoops = max(1, s.events.NumLoops)
	}
	switch s.events.LoadBalance {
	case RoundRobin:
		e.Balance = rondo.RoundRobin
	case LeastConnections:
		e.Balance = rondo.LeastConns
	default:
		e.Balance = rondo.Random
	}
	if s.std {
		e.Backend = "std"
	}
	e.Repanic = true
	e.MaxOutput = math.MaxInt32 // the output of an event may have any size
}

// on returns the server's part on l.
func (s *server) on(l *rondo.Loop) *loop { return s.loops[l.ID()] }

func (s *server) listenOn(a address.Address, index int) error {
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
	ln, err := s.engine.Listen(a.Network, a.Host, socket, func(c *rondo.Conn) rondo.Handler {
		return s.on(c.Loop()).accepted(c, index)
	})
	if err != nil {
		return err
	}
	s.streams = append(s.streams, ln)
	s.addrs = append(s.addrs, ln.Addr())
	return nil
}

// each calls f on every loop, one after the other, and waits for each call.
func (s *server) each(f func(*loop)) {
	for _, l := range s.loops {
		done := make(chan struct{})
		if l.loop.Post(func() { defer close(done); f(l) }) == nil {
			<-done
		}
	}
}

// end ends the events of all loops before it closes anything, as the original
// does. Connections send their remaining output in the background.
func (s *server) end() {
	s.each(func(l *loop) { l.state = ended })
	for _, ln := range s.streams {
		ln.Close()
	}
	for _, c := range s.packets {
		c.Close()
	}
	s.open.Wait()
	lingering := false
	s.each(func(l *loop) { lingering = l.closeConns() || lingering })
	if !lingering {
		s.engine.Close()
		return
	}
	go func() {
		ctx, cancel := context.WithTimeout(context.Background(), rondo.DefaultLinger)
		defer cancel()
		s.engine.Shutdown(ctx)
	}()
}

// The functions from here on run on a loop.

// start begins to call events.
func (l *loop) start() {
	l.state = serving
	if l.loop.ID() == 0 && l.events.Tick != nil {
		l.tick()
	}
	for _, f := range l.early {
		f()
	}
	l.early = nil
}

func (l *loop) tick() {
	if l.state != serving {
		return
	}
	delay, action := l.events.Tick()
	l.after(action)
	// At least 1, so that other events get their turn.
	delay = max(1, delay)
	if l.ticker == nil {
		l.ticker = l.loop.AfterFunc(delay, l.tick)
	} else {
		l.ticker.Reset(delay)
	}
}

// before is called before the output of an event is sent.
func (l *loop) before(out []byte) {
	if len(out) > 0 && l.events.PreWrite != nil {
		l.events.PreWrite()
	}
}

// after carries out an event's action that concerns the server.
func (l *loop) after(action Action) {
	if action == Shutdown && l.state == serving {
		l.state = ended
		l.stop()
	}
}

// closeConns closes all connections, and reports whether there were any.
func (l *loop) closeConns() (any bool) {
	for rc := range l.loop.Conns() {
		any = true
		if c, ok := rc.Handler().(*conn); ok {
			c.ended(nil)
		}
		rc.Close()
	}
	return any
}

// cause returns err as the original reports it: with the -net suffix an error
// of package net, otherwise the system's error number.
func (s *server) cause(err error) error {
	var number syscall.Errno
	if !s.std && errors.As(err, &number) {
		return number
	}
	return err
}
