//go:build unix

package upgrade_test

import (
	"context"
	"errors"
	"net"
	"slices"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/rondo-go/rondo"
	"github.com/rondo-go/rondo/internal/testkit"
	"github.com/rondo-go/rondo/internal/upgrade"
)

// Clients that a listener has accepted, and that come to their loops late since a loop is busy, go
// to the new process like all others.
func TestLateClientsGo(t *testing.T) {
	eachBackend(t, func(t *testing.T, backend string) {
		s, next := newServer(t, backend, 0), newServer(t, backend, 0)
		given := []string{"tcp://127.0.0.1:0", "tcp4://127.0.0.1:0"}
		addresses, err := listen(s, given...) // which loops 0 and 1 accept
		if err != nil {
			t.Fatal(err)
		}
		ends := pair(t)
		gave := make(chan error, 1)
		go func() { gave <- s.HandOver(t.Context(), ends[0]) }()
		if err := next.TakeOver(t.Context(), ends[1]); err != nil {
			t.Fatal(err)
		}
		busy := make(chan struct{})
		slices.Collect(s.Engine.Loops())[1].Post(func() { <-busy })
		var clients []net.Conn
		for range 20 {
			clients = append(clients, dial(t, addresses[1]))
		}
		time.Sleep(50 * time.Millisecond) // they may be accepted now
		if _, err := listen(next, given...); err != nil {
			t.Fatal(err)
		}
		took := make(chan error, 1)
		go func() { took <- next.Receive() }()
		time.Sleep(200 * time.Millisecond) // in which the other loop finds that nothing comes
		close(busy)
		if err := errors.Join(<-gave, <-took); err != nil {
			t.Fatal(err)
		}
		if n := s.Engine.Stats().Open; n > 0 {
			t.Errorf("%d clients stay in the old process", n)
		}
		for _, c := range clients {
			testkit.Echoes(t, c, "a")
		}
	})
}

// HandOver returns when the loops have the clients that stay.
func TestHandOverAwaitsLateClients(t *testing.T) {
	eachBackend(t, func(t *testing.T, backend string) {
		s, next := newServer(t, backend, 0), newServer(t, backend, 0)
		s.Engine.Close()
		s.Engine = &rondo.Engine{Backend: backend, NumLoops: 3}
		if err := s.Engine.Start(); err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { s.Engine.Close() })
		s.Arrive, next.Arrive = nil, nil
		given := []string{"tcp://127.0.0.1:0", "tcp4://127.0.0.1:0"}
		addresses, err := listen(s, given...)
		if err != nil {
			t.Fatal(err)
		}
		ends := pair(t)
		gave := make(chan error, 1)
		go func() { gave <- s.HandOver(t.Context(), ends[0]) }()
		if err := next.TakeOver(t.Context(), ends[1]); err != nil {
			t.Fatal(err)
		}
		busy := make(chan struct{})
		slices.Collect(s.Engine.Loops())[2].Post(func() { <-busy })
		for range 3 { // loop 1 accepts them, one for each loop
			dial(t, addresses[1])
		}
		testkit.Until(t, "the other loops have theirs", func() bool { return s.Engine.Stats().Accepted == 2 })
		if _, err := listen(next, given...); err != nil {
			t.Fatal(err)
		}
		took := make(chan error, 1)
		go func() { took <- next.Receive() }()
		var goesOn atomic.Bool
		time.AfterFunc(200*time.Millisecond, func() { goesOn.Store(true); close(busy) })
		if err := errors.Join(<-gave, <-took); err != nil {
			t.Fatal(err)
		}
		if !goesOn.Load() {
			t.Error("HandOver has returned, and a client is on its way to a loop")
		}
		if n := s.Engine.Stats().Open; n != 3 {
			t.Errorf("HandOver has returned, and %d clients are here, want 3", n)
		}
	})
}

// A process that cannot take over is told why.
func TestRefusedIsTold(t *testing.T) {
	s := newServer(t, "", 0)
	if _, err := listen(s, "tcp://127.0.0.1:0"); err != nil {
		t.Fatal(err)
	}
	try := func(what, want string, s, next *upgrade.Server) {
		t.Helper()
		ends := pair(t)
		gave := make(chan error, 1)
		go func() { gave <- s.HandOver(t.Context(), ends[0]) }()
		if err := next.TakeOver(t.Context(), ends[1]); err == nil || !strings.Contains(err.Error(), "the other process goes on: ") || !strings.Contains(err.Error(), want) {
			t.Errorf("%s: TakeOver: %v, want that %s", what, err, want)
		}
		if err := <-gave; err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%s: HandOver: %v, want that %s", what, err, want)
		}
	}
	other := newServer(t, "", 0)
	other.Name = "other"
	try("another server", "is another server", s, other)

	ends := pair(t)
	gave := make(chan error, 1)
	ctx, cancel := context.WithCancel(t.Context())
	go func() { gave <- s.HandOver(ctx, ends[0]) }()
	first := newServer(t, "", 0)
	if err := first.TakeOver(t.Context(), ends[1]); err != nil {
		t.Fatal(err)
	}
	try("a third process", "an upgrade is under way", s, newServer(t, "", 0))
	cancel()
	if err := <-gave; !errors.Is(err, context.Canceled) {
		t.Errorf("HandOver: %v", err)
	}
	first.Abandon()
	s.Close()
	try("a closed server", "nothing listens any more", s, newServer(t, "", 0))
}

// One that connects and says nothing is in nobody's way, and Close ends the waiting for it.
func TestSilentOneBlocksNobody(t *testing.T) {
	s, next := newServer(t, "", 0), newServer(t, "", 0)
	if _, err := listen(s, "tcp://127.0.0.1:0"); err != nil {
		t.Fatal(err)
	}
	begin := func(s *upgrade.Server) (gave chan error, other *net.UnixConn) {
		ends := pair(t)
		gave = make(chan error, 1)
		go func() { gave <- s.HandOver(t.Context(), ends[0]) }()
		time.Sleep(20 * time.Millisecond) // most likely it waits
		return gave, ends[1]
	}
	late, other := begin(s)
	if err := replace(t, s, next, "tcp://127.0.0.1:0"); err != nil {
		t.Fatal(err)
	}
	third := newServer(t, "", 0)
	if err := third.TakeOver(t.Context(), other); err == nil || !strings.Contains(err.Error(), "nothing listens any more") {
		t.Errorf("TakeOver behind another upgrade: %v", err)
	}
	if err := <-late; err == nil {
		t.Error("HandOver succeeded twice")
	}
	silent, other := begin(next)
	defer other.Close()
	next.Close()
	if err := <-silent; !errors.Is(err, context.Canceled) {
		t.Errorf("HandOver behind Close: %v", err)
	}
}

// A process that says something wrong when it gets the connections is told that the old one goes
// on: it must not serve as well.
func TestWrongOneIsTold(t *testing.T) {
	s, other := newServer(t, "", 0), newServer(t, "", 0)
	addresses, err := listen(s, "tcp://127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	ends := pair(t)
	gave := make(chan error, 1)
	go func() { gave <- s.HandOver(t.Context(), ends[0]) }()
	str, ch := &stranger{said: make(map[string]chan struct{})}, upgrade.NewChannel()
	for l := range other.Engine.Loops() {
		if err := ch.Open(l, ends[1], str); err != nil {
			t.Fatal(err)
		}
		break
	}
	say := func(text string) { ch.Send(append([]byte{0, 0, 0, byte(len(text))}, text...)) }
	say(`{"Kind":"hello","Version":2,"Name":"test"}`)
	<-str.hears("sockets")
	say(`{"Kind":"ready"}`)
	say(`{"Kind":"ready"}`)
	select {
	case <-str.hears("back"):
	case <-time.After(20 * time.Second):
		t.Error("the other process does not hear that the old one goes on")
	}
	if err := <-gave; err == nil || !strings.Contains(err.Error(), "cannot be understood") {
		t.Errorf("HandOver: %v", err)
	}
	testkit.Echoes(t, dial(t, addresses[0]), "a")
}
