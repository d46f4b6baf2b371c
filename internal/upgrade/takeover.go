package upgrade

import (
	"context"
	"errors"
	"fmt"
	"net"
	"os"
	"slices"
	"sync/atomic"
	"time"

	"github.com/rondo-go/rondo"
	"github.com/rondo-go/rondo/fdpass"
	"github.com/rondo-go/rondo/internal/bridge"
)

// TakeOver begins to take the place of the Server of another process, whose HandOver has the other
// end of nc: it gets the sockets, which Listen and ListenPacket take. Then call Receive. TakeOver
// owns nc. After an error the other Server goes on. ctx bounds how long the other Server may take
// to answer.
func (s *Server) TakeOver(ctx context.Context, nc *net.UnixConn) error {
	t := &takeover{server: s, Channel: NewChannel(), passed: make(map[string][]*passed),
		all: make(chan struct{}), end: make(chan struct{}), back: make(chan struct{})}
	for l := range s.Engine.Loops() {
		t.loops = append(t.loops, l)
	}
	if err := t.Open(t.loops[0], nc, t); err != nil {
		nc.Close()
		return fmt.Errorf("take over: %w", err)
	}
	t.Send(Encode(&message{Kind: kindHello, Version: protocol, Name: s.Name}))
	if err := t.Wait(ctx, t.all, "does not send its sockets"); err != nil {
		if IsClosed(t.back) {
			err = t.goesOn()
		}
		t.abort(err)
		return fmt.Errorf("take over: %w", err)
	}
	s.mu.Lock()
	s.from = t
	s.mu.Unlock()
	return nil
}

// A takeover is the new process's side of an upgrade.
type takeover struct {
	*Channel
	server *Server
	loops  []*rondo.Loop
	passed map[string][]*passed // by keys; port 0 may have several of one key
	part   []*os.File           // of a socket, until its last files have come
	next   int                  // loop for a connection

	serves         atomic.Bool // ready was said
	all, end, back chan struct{}
	reason         string // of back
}

// passed is a socket that has come.
type passed struct {
	files []*os.File
	lent  bool
}

// take takes the files that have come for a socket.
func (t *takeover) take(k *socket) []*os.File {
	if t == nil || len(t.passed[k.key]) == 0 {
		return nil
	}
	p := t.passed[k.key][0]
	t.passed[k.key] = t.passed[k.key][1:]
	k.lent = p.lent
	return p.files
}

// forget closes the files that nobody has taken.
func (t *takeover) forget() {
	for _, all := range t.passed {
		for _, p := range all {
			closeFiles(p.files)
		}
	}
	t.passed = nil
	closeFiles(t.part)
	t.part = nil
}

// abort ends the Channel: the other process goes on.
func (t *takeover) abort(err error) {
	t.Do(func() {
		t.Pass.Abort(err)
		t.forget()
	})
}

// Abandon ends what TakeOver has begun: the other process goes on. It does nothing after Receive.
func (s *Server) Abandon() {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.from != nil {
		s.from.abort(errors.New("the new process cannot serve"))
		s.from = nil
	}
}

// Receive says that this process accepts clients, and gets the connections of the other one. It
// returns nil when this Server serves all that the other one could hand over, and the other one
// has closed its sockets or has died. If it returns an error the other Server goes on; this one
// listens no more, and may have got connections. Without TakeOver it does nothing.
func (s *Server) Receive() error {
	s.mu.Lock()
	t := s.from
	if t == nil {
		s.mu.Unlock()
		return nil
	}
	ready := &message{Kind: kindReady}
	for _, k := range s.sockets {
		if k.passed {
			ready.Kept = append(ready.Kept, k.key)
		}
	}
	t.forget()
	s.mu.Unlock()
	err := t.receive(ready)
	s.mu.Lock()
	s.from = nil
	if err == nil {
		for _, k := range s.sockets {
			k.own()
		}
	}
	s.mu.Unlock()
	if err != nil {
		s.Close()
		return fmt.Errorf("take over: %w", err)
	}
	return nil
}

func (t *takeover) receive(ready *message) error {
	t.serves.Store(true)
	t.Send(Encode(ready))
	err := t.Wait(context.Background(), t.end, "")
	if err == nil {
		t.Send(Encode(&message{Kind: kindDone}))
		// The other process closes its sockets, or has found that it took too long.
		select {
		case <-t.Gone:
		case <-time.After(patience):
			t.Do(t.Pass.Close)
		}
	}
	switch {
	case IsClosed(t.back):
		return t.goesOn()
	case err == nil:
		return nil
	case !IsPeers(err):
		return err
	}
	// The other process is dead, and this one has the sockets.
	t.server.Logger.Warn("upgrade: the old process has ended before it had handed over all connections", "error", err)
	return nil
}

// goesOn is the error of an upgrade that the other process has ended.
func (t *takeover) goesOn() error { return fmt.Errorf("%w: %s", errBack, t.reason) }

// Message implements fdpass.Handler.
func (t *takeover) Message(ch *fdpass.Channel, in *fdpass.Message) {
	var m message
	rest, err := Decode(in.Data, &m)
	if err == nil {
		err = t.handle(&m, rest, in)
	}
	if err != nil {
		ch.Abort(err)
	}
}

// handle does what a message says. The other process may be wrong in any way, and must not do
// more harm than to end the upgrade.
func (t *takeover) handle(m *message, rest []byte, in *fdpass.Message) error {
	listens, serves := !IsClosed(t.all), t.serves.Load() && !IsClosed(t.end)
	switch {
	case m.Kind == kindSocket && listens:
		return t.takeSocket(m, in)
	case m.Kind == kindSockets && listens && t.part == nil:
		close(t.all)
	case m.Kind == kindConn && serves && m.Unread >= 0 && m.Unread <= len(rest) && t.server.Arrive != nil:
		nc, err := in.ConnAt(0)
		if err != nil {
			return err
		}
		ResetAtClose(nc, false)
		rest = slices.Clone(rest)
		t.next++
		on := t.loops[t.next%len(t.loops)]
		if on.Post(func() { t.server.arrive(on, m, nc, rest[:m.Unread:m.Unread], rest[m.Unread:]) }) != nil {
			Reset(nc)
		}
	case m.Kind == kindEnd && serves:
		close(t.end)
	case m.Kind == kindBack && !IsClosed(t.back):
		t.reason = m.Why
		close(t.back)
	default:
		return ErrMessage
	}
	return nil
}

// takeSocket takes files of a socket.
func (t *takeover) takeSocket(m *message, in *fdpass.Message) error {
	for i := range in.Files() {
		f, err := in.File(i)
		if err != nil {
			return err
		}
		t.part = append(t.part, f)
	}
	if in.Files() == 0 {
		return ErrMessage
	}
	if !m.More {
		t.passed[m.Key] = append(t.passed[m.Key], &passed{t.part, m.Lent})
		t.part = nil
	}
	return nil
}

// arrive serves a connection that comes from another process, or back to this one.
func (s *Server) arrive(on *rondo.Loop, m *message, nc net.Conn, unread, unsent []byte) {
	whole := nc
	if len(unread) > 0 {
		whole = rondo.PrefixConn(nc, unread)
	}
	_, err := on.Attach(whole, func(c *rondo.Conn) rondo.Handler {
		w := bridge.Of(c)
		w.CountAccepted()
		h := s.Arrive(c)
		if p, ok := h.(bridge.Passer); ok {
			p.Arrived(m.State)
		}
		c.Write(unsent)
		if m.Ended {
			w.OutputEnded()
		}
		return h
	})
	if err != nil {
		Reset(nc)
	}
}
