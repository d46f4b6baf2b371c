package upgrade

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net"
	"os"
	"sync/atomic"
	"time"

	"github.com/rondo-go/rondo"
	"github.com/rondo-go/rondo/fdpass"
)

// A Taking is the new process's side of an upgrade.
type Taking struct {
	*Channel
	loops  []*rondo.Loop
	conn   func(*Taking, *fdpass.Message) error
	log    *slog.Logger
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

var errBack = errors.New("the other process goes on")

// Take begins to take the place of the server of another process, whose HandOver has the other end
// of nc: it gets the sockets, for Socket.Open. Then Receive gets the connections, or Abort ends the
// upgrade. Take owns nc. After an error the other process goes on. ctx bounds how long that may
// take to answer. conn takes a connection that comes, on a loop. It checks what it gets: the other
// process may be wrong in any way, and must not do more harm than to end the upgrade.
func Take(ctx context.Context, nc *net.UnixConn, loops []*rondo.Loop, name string, log *slog.Logger, conn func(*Taking, *fdpass.Message) error) (*Taking, error) {
	t := &Taking{Channel: NewChannel(), loops: loops, conn: conn, log: log, passed: make(map[string][]*passed),
		all: make(chan struct{}), end: make(chan struct{}), back: make(chan struct{})}
	if err := t.Open(loops[0], nc, t); err != nil {
		nc.Close()
		return nil, err
	}
	t.Send(Encode(&message{Kind: kindHello, Version: protocol, Name: name}))
	if err := t.Wait(ctx, t.all, "does not send its sockets"); err != nil {
		return nil, t.Abort(err)
	}
	return t, nil
}

// HasPassed reports whether the other process has passed a socket that no Socket has taken.
func (t *Taking) HasPassed(network, address string) bool {
	return t != nil && len(t.passed[keyOf(network, address)]) > 0
}

// take takes the files that have come for a socket.
func (t *Taking) take(k *Socket) []*os.File {
	if !t.HasPassed(k.network, k.address) {
		return nil
	}
	all := t.passed[k.key()]
	t.passed[k.key()] = all[1:]
	k.Lent = all[0].lent
	return all[0].files
}

// forget closes the files that nobody has taken.
func (t *Taking) forget() {
	for _, all := range t.passed {
		for _, p := range all {
			closeFiles(p.files)
		}
	}
	t.passed = nil
	closeFiles(t.part)
	t.part = nil
}

// Abort ends the upgrade, for an error: the other process goes on. It returns the error, or what
// that process has said.
func (t *Taking) Abort(err error) error {
	if IsClosed(t.back) {
		err = t.goesOn()
	}
	t.Do(func() {
		t.Pass.Abort(err)
		t.forget()
	})
	return err
}

// goesOn is the error of an upgrade that the other process has ended.
func (t *Taking) goesOn() error { return fmt.Errorf("%w: %s", errBack, t.reason) }

// Receive says that this process accepts clients at sockets, and gets the connections of the other
// one. It returns nil when this one serves all that the other one could hand over, and the other
// one has closed its sockets or has died. If it returns an error the other process goes on, and
// this one may have got connections.
func (t *Taking) Receive(sockets []*Socket) error {
	t.forget()
	ready := &message{Kind: kindReady}
	for _, k := range sockets {
		if k.passed {
			ready.Kept = append(ready.Kept, k.key())
		}
	}
	t.serves.Store(true)
	t.Send(Encode(ready))
	err := t.Wait(context.Background(), t.end, "")
	if err == nil {
		t.Send(Encode(&message{Kind: kindDone}))
		// The other process closes its sockets, or has found that it took too long.
		select {
		case <-t.Gone:
		case <-time.After(Patience):
			t.Do(t.Pass.Close)
		}
	}
	switch {
	case IsClosed(t.back):
		return t.goesOn()
	case err != nil && !IsPeers(err):
		return err
	case err != nil: // the other process is dead, and this one has the sockets
		t.log.Warn("upgrade: the old process has ended before it had handed over all connections", "error", err)
	}
	return nil
}

// Choose chooses the loop of a connection. The function that takes connections calls it.
func (t *Taking) Choose() *rondo.Loop {
	t.next++
	return t.loops[t.next%len(t.loops)]
}

// Message implements fdpass.Handler.
func (t *Taking) Message(ch *fdpass.Channel, in *fdpass.Message) {
	var m message
	_, err := Decode(in.Data, &m)
	if err == nil {
		err = t.handle(&m, in)
	}
	if err != nil {
		ch.Abort(err)
	}
}

// handle does what a message says.
func (t *Taking) handle(m *message, in *fdpass.Message) error {
	listens, serves := !IsClosed(t.all), t.serves.Load() && !IsClosed(t.end)
	switch {
	case m.Kind == kindSocket && listens:
		return t.takeSocket(m, in)
	case m.Kind == kindSockets && listens && t.part == nil:
		close(t.all)
	case m.Kind == kindEnd && serves:
		close(t.end)
	case m.Kind == kindBack && !IsClosed(t.back):
		t.reason = m.Why
		close(t.back)
	case serves && t.conn != nil:
		return t.conn(t, in)
	default:
		return ErrMessage
	}
	return nil
}

// takeSocket takes files of a socket.
func (t *Taking) takeSocket(m *message, in *fdpass.Message) error {
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
