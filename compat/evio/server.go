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
)

// server is what one call of Serve runs.
type server struct {
	events  Events
	std     bool
	engine  rondo.Engine
	loops   []*loop // by their rondo.Loop's ID
	addrs   []net.Addr
	streams []*rondo.Listener
	packets []rondo.PacketRef
	open    sync.WaitGroup // of packets

	stop func()        // closes stopped, once
	done chan struct{} // an event has asked for Shutdown
}

// loop is what a server has on a loop. It belongs to that.
//
//	waiting --start--> serving --an event's Shutdown, or that of another loop--> ended
type loop struct {
	*server
	loop   *rondo.Loop
	state  state
	early  []func() // what happened while it was waiting
	ticker *rondo.Timer
}

type state uint8

const (
	waiting state = iota // for the event Serving to return
	serving
	ended // no more events but Closed
)

// Serve listens on the addresses, and calls events until one of them returns
// Shutdown. Its error is of an address that cannot be listened on.
//
// An address is scheme://host:port, or for the scheme unix scheme://path; without a
// scheme it is tcp. Schemes are tcp, tcp4, tcp6, udp, udp4, udp6 and unix. With the
// suffix -net, as in tcp-net, on any address package net serves all of them. With
// ?reuseport=true behind an address other servers may have the same (SO_REUSEPORT).
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
	var parsed []address
	for _, a := range addrs {
		parsed = append(parsed, parse(a))
		s.std = s.std || parsed[len(parsed)-1].std
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

// configure sets the engine up as the original behaves.
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
	e.MaxOutput = math.MaxInt32 // an event's output may have any size
}

// on is what the server has on l.
func (s *server) on(l *rondo.Loop) *loop { return s.loops[l.ID()] }

func (s *server) listenOn(a address, index int) error {
	socket := rondo.SocketOptions{KeepAlive: -1, ReusePort: a.reusePort}
	if a.datagrams() {
		c, err := s.engine.ListenPacket(a.network, a.host, socket, &packetHandler{s, index})
		if err != nil {
			return err
		}
		s.open.Add(1)
		s.packets = append(s.packets, c.Ref())
		s.addrs = append(s.addrs, c.LocalAddr())
		return nil
	}
	ln, err := s.engine.Listen(a.network, a.host, socket, func(c *rondo.Conn) rondo.Handler {
		return s.on(c.Loop()).accepted(c, index)
	})
	if err != nil {
		return err
	}
	s.streams = append(s.streams, ln)
	s.addrs = append(s.addrs, ln.Addr())
	return nil
}

// each calls f on every loop, one after the other, and waits for it.
func (s *server) each(f func(*loop)) {
	for _, l := range s.loops {
		done := make(chan struct{})
		if l.loop.Post(func() { defer close(done); f(l) }) == nil {
			<-done
		}
	}
}

// end ends all loops' events before it closes anything, as the original does. What
// connections have left to send they send in the background.
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

// The rest runs on a loop.

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
	// Not in this turn again: other events have their share.
	delay = max(1, delay)
	if l.ticker == nil {
		l.ticker = l.loop.AfterFunc(delay, l.tick)
	} else {
		l.ticker.Reset(delay)
	}
}

// before is called before an event's output is sent.
func (l *loop) before(out []byte) {
	if len(out) > 0 && l.events.PreWrite != nil {
		l.events.PreWrite()
	}
}

// after does what an event has asked for that concerns the server.
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

// cause is the error as the original has it: package net's with the -net suffix, and
// the system's number otherwise.
func (s *server) cause(err error) error {
	var number syscall.Errno
	if !s.std && errors.As(err, &number) {
		return number
	}
	return err
}
