package rondo_test

import (
	"errors"
	"fmt"
	"log/slog"
	"net"
	"runtime"
	"slices"
	"sync/atomic"
	"testing"
	"time"

	"github.com/rondo-go/rondo"
	"github.com/rondo-go/rondo/internal/backend"
	"github.com/rondo-go/rondo/internal/bridge"
	"github.com/rondo-go/rondo/internal/pick"
	"github.com/rondo-go/rondo/internal/testkit"
)

// fails is a backend that cannot adopt one connection, of which it counts down.
type fails struct {
	backend.Backend
	until *atomic.Int32
}

func (f fails) Adopt(h backend.Handle) (backend.File, error) {
	if f.until.Add(-1) == 0 {
		f.Discard(h)
		return 0, errors.New("no room")
	}
	return f.Backend.Adopt(h)
}

// failing names a backend in which Adopt fails for the connection of a number, once that is set.
func failing(t *testing.T, name string) (string, *atomic.Int32) {
	t.Helper()
	open, _, err := pick.Find(name)
	if err != nil {
		t.Fatal(err)
	}
	until := new(atomic.Int32)
	t.Cleanup(pick.Register("failing "+name, func() (backend.Backend, error) {
		b, err := open()
		return fails{b, until}, err
	}))
	return "failing " + name, until
}

// resting serves connections of one loop, and brings them to rest.
type resting struct {
	*testing.T
	engine *rondo.Engine
	loop   *rondo.Loop
	conns  []bridge.Conn
	came   chan error
}

func newResting(t *testing.T, backend string) *resting {
	e := &rondo.Engine{Backend: backend, NumLoops: 1, Logger: slog.New(slog.DiscardHandler)}
	loop := loopsOf(t, e)[0]
	t.Cleanup(func() { stops(t, e) })
	return &resting{t, e, loop, nil, make(chan error, 1)}
}

// stops fails the test if Engine.Close does not return.
func stops(t *testing.T, e *rondo.Engine) {
	closed := make(chan bool)
	go func() { e.Close(); close(closed) }()
	select {
	case <-closed:
	case <-time.After(20 * time.Second):
		t.Errorf("Close hangs: %d connections are open", e.Stats().Open)
	}
}

// opens returns a connection's opener. awake: it does not come to rest.
func (r *resting) opens(h rondo.Handler, awake bool) rondo.OpenFunc {
	return func(c *rondo.Conn) rondo.Handler {
		b := bridge.Of(c)
		r.conns = append(r.conns, b)
		c.Loop().Defer(func() {
			if awake {
				r.came <- nil
			} else if err := b.Rest(func(err error) { r.came <- err }); err != nil {
				r.came <- err
			}
		})
		return h
	}
}

func (r *resting) await() {
	r.Helper()
	if err := <-r.came; err != nil {
		r.Fatal(err)
	}
}

// client returns the client of a new connection.
func (r *resting) client(h rondo.Handler, awake bool) net.Conn {
	r.Helper()
	nc := connTo(r.T, r.engine, r.opens(h, awake))
	r.await()
	return nc
}

// foreign attaches a connection that can fail, and returns its client.
func (r *resting) foreign(h rondo.Handler) (*fragile, net.Conn) {
	r.Helper()
	near, far := net.Pipe()
	r.Cleanup(func() { far.Close() })
	f := &fragile{Conn: near}
	if _, err := r.engine.Attach(f, r.opens(h, false)); err != nil {
		r.Fatal(err)
	}
	r.await()
	return f, far
}

// on runs f on the loop.
func (r *resting) on(f func()) {
	done := make(chan bool)
	r.loop.Post(func() {
		defer close(done)
		f()
	})
	<-done
}

// depart fails the test if the connections leave.
func (r *resting) depart() {
	r.Helper()
	var err error
	r.on(func() { _, err = bridge.LoopOf(r.loop).Depart(r.conns...) })
	if err == nil {
		r.Error("the connections leave")
	}
}

// fragile is a connection of a type that is not package net's.
type fragile struct {
	net.Conn
	from   atomic.Int32 // which SetDeadline is the first one that fails; 0: none
	panics bool         // SetDeadline panics
	closed atomic.Int32
	close  func() // what Close does first
}

func (f *fragile) SetDeadline(t time.Time) error {
	if f.from.Load() > 0 && f.from.Add(-1) == 0 {
		f.from.Store(1)
		if f.panics {
			panic("no deadlines")
		}
		return errors.New("no deadlines")
	}
	return f.Conn.SetDeadline(t)
}

func (f *fragile) Close() error {
	f.closed.Add(1)
	if f.close != nil {
		f.close()
	}
	return f.Conn.Close()
}

// TestDepartTakesBack: connections that cannot leave together are all there afterwards, in the same
// places. One that cannot come back ends alone.
func TestDepartTakesBack(t *testing.T) {
	const together = 3 // and one more, which is not at rest
	for _, name := range backends() {
		for lost := range together + 1 { // the number of the one that cannot come back; 0: none
			t.Run(fmt.Sprint(name, "/", lost), func(t *testing.T) {
				name, until := failing(t, name)
				r := newResting(t, name)
				var clients []net.Conn
				for i := range together + 1 {
					clients = append(clients, r.client(rondo.HandlerFunc((*rondo.Conn).Write), i == together))
				}
				var before, after []*rondo.Conn
				r.on(func() { before = slices.Collect(r.loop.Conns()) })
				until.Store(int32(lost))
				r.depart()
				want := len(clients)
				if lost > 0 {
					want--
					testkit.Until(t, "it ends", func() bool { return r.engine.Stats().Closed == 1 })
				}
				r.on(func() { after = slices.Collect(r.loop.Conns()) })
				if n := r.engine.Stats().Open; len(after) != want || n != want {
					t.Errorf("the loop has %d connections and counts %d, want %d", len(after), n, want)
				}
				if lost == 0 && !slices.Equal(before, after) {
					t.Errorf("the order was %v, and is %v", before, after)
				}
				for i, nc := range clients {
					if lost == 0 || i != together-lost { // the last comes back first
						echoes(t, nc, "a")
					}
				}
			})
		}
	}
}

// TestDepartTakesBackAge: a connection that comes back is as old as it was.
func TestDepartTakesBackAge(t *testing.T) {
	for _, name := range backends() {
		t.Run(name, func(t *testing.T) {
			r := newResting(t, name)
			r.client(echo(nil), false)
			r.client(echo(nil), true)
			youngest := func() (age time.Duration) {
				r.on(func() {
					age = time.Hour
					bridge.LoopOf(r.loop).List(0, 1000, func(_ any, f bridge.Facts) { age = min(age, f.Age) })
				})
				return age
			}
			until(t, "they get older", func() bool { return youngest() > 0 })
			was := youngest()
			r.depart()
			if is := youngest(); is < was {
				t.Errorf("a connection was at least %v old, and is %v", was, is)
			}
		})
	}
}

// TestDepartExportFails: a connection that cannot leave by itself, because its type refuses or
// panics, ends, paused or not. Its Close is called once.
func TestDepartExportFails(t *testing.T) {
	for _, name := range backends() {
		for _, paused := range []bool{false, true} {
			t.Run(fmt.Sprint(name, "/paused ", paused), func(t *testing.T) { departExportFails(t, name, paused, false) })
			t.Run(fmt.Sprint(name, "/panics, paused ", paused), func(t *testing.T) { departExportFails(t, name, paused, true) })
		}
	}
}

func departExportFails(t *testing.T, name string, paused, panics bool) {
	r := newResting(t, name)
	ended := make(chan error, 1)
	f, far := r.foreign(hearer{(*rondo.Conn).Write, ended})
	if paused {
		r.on(func() {
			for c := range r.loop.Conns() {
				c.Pause()
			}
		})
	}
	f.from.Store(1)
	f.panics = panics
	r.depart()
	err := <-ended
	var panicked *rondo.PanicError
	if op := (*net.OpError)(nil); errors.As(err, &panicked) != panics || errors.As(err, &op) == panics {
		t.Errorf("it ends with %v", err)
	}
	if n, err := far.Read(make([]byte, 1)); err == nil {
		t.Errorf("the peer reads %d bytes", n)
	}
	stops(t, r.engine) // no other Close comes after it
	if n, all := f.closed.Load(), r.engine.Stats(); n != 1 || all.Open != 0 || (all.Panics == 1) != panics {
		t.Errorf("Close was called %d times, %d connections are open, and %d panics counted", n, all.Open, all.Panics)
	}
}

var oddCloses = []string{"panics", "blocks", "goexits"}

// oddly is what Close does in one of these ways. It blocks until release.
func oddly(way string, release <-chan bool) func() {
	switch way {
	case "panics":
		return func() { panic("Close") }
	case "blocks":
		return func() { <-release }
	}
	return runtime.Goexit
}

// TestDepartImportFails: a connection that cannot come back, because its type refuses, ends alone,
// whatever its Close does: the loop goes on, and so do the others.
func TestDepartImportFails(t *testing.T) {
	for _, name := range backends() {
		for _, way := range oddCloses {
			t.Run(name+"/"+way, func(t *testing.T) {
				release := make(chan bool)
				r := newResting(t, name)
				ended := make(chan error, 1)
				first, _ := r.foreign(hearer{(*rondo.Conn).Write, ended})
				_, far := r.foreign(rondo.HandlerFunc((*rondo.Conn).Write))
				last, _ := r.foreign(rondo.HandlerFunc((*rondo.Conn).Write))
				first.from.Store(2) // it leaves, and does not come back
				first.close = oddly(way, release)
				last.from.Store(1) // it does not leave
				r.depart()
				if err := <-ended; err == nil {
					t.Error("it ends without an error")
				}
				far.SetDeadline(time.Now().Add(20 * time.Second))
				echoes(t, far, "a")
				close(release)
				stops(t, r.engine)
				if n, all := first.closed.Load(), r.engine.Stats(); n != 1 || all.Open != 0 {
					t.Errorf("Close was called %d times, and %d connections are open", n, all.Open)
				}
			})
		}
	}
}

// keeper ends another connection when its own has ended, which no Keeper should.
type keeper struct {
	bridge.Ours
	rondo.HandlerFunc
	closing func()
}

func (k *keeper) Installed() {}
func (k *keeper) Replaced()  {}
func (k *keeper) Closing()   { k.closing() }

// TestDepartTellsKeepers: a Keeper hears of the end of one connection when no other is between the
// loop and its net.Conn.
func TestDepartTellsKeepers(t *testing.T) {
	for _, name := range backends() {
		for _, stay := range []bool{false, true} {
			t.Run(fmt.Sprint(name, "/stay ", stay), func(t *testing.T) {
				name, until := failing(t, name)
				r := newResting(t, name)
				var conns []*rondo.Conn
				told, tells := 0, 0 // tells: the one that ends first, and aborts the other
				if stay {
					tells = 1 // the first that comes back
				}
				var clients [2]net.Conn
				for i := range clients {
					clients[i] = r.client(&keeper{HandlerFunc: (*rondo.Conn).Write, closing: func() {
						if i == tells {
							told++
							conns[1-i].Abort(nil)
						}
					}}, false)
				}
				r.on(func() { conns = slices.Collect(r.loop.Conns()) })
				if stay {
					r.client(echo(nil), true)
					until.Store(1)
					r.depart()
					if _, err := clients[0].Read(make([]byte, 1)); err == nil {
						t.Error("the other connection has not ended")
					}
					testkit.Until(t, "they end", func() bool { return r.engine.Stats().Open == 1 })
				} else {
					r.on(func() {
						gone, err := bridge.LoopOf(r.loop).Depart(r.conns...)
						if err != nil {
							t.Error(err)
						}
						for _, d := range gone {
							d.Conn.Close()
						}
					})
				}
				stops(t, r.engine)
				if n := r.engine.Stats().Open; n != 0 || told != 1 {
					t.Errorf("%d connections are open, and the Keeper was told %d times", n, told)
				}
			})
		}
	}
}

// TestMoveImportFails: a connection that the other loop cannot serve, because its type refuses,
// ends there, whatever its Close does: that loop goes on.
func TestMoveImportFails(t *testing.T) {
	for _, name := range backends() {
		for _, way := range oddCloses {
			t.Run(name+"/"+way, func(t *testing.T) {
				release := make(chan bool)
				e := &rondo.Engine{Backend: name, NumLoops: 2, Logger: slog.New(slog.DiscardHandler)}
				loops := loopsOf(t, e)
				defer stops(t, e)
				near, far := net.Pipe()
				defer far.Close()
				nc := &fragile{Conn: near, close: oddly(way, release)}
				var to *rondo.Loop
				if _, err := e.Attach(nc, func(c *rondo.Conn) rondo.Handler {
					nc.from.Store(1)
					to = loops[1-c.Loop().ID()]
					if err := c.Move(to, echo); err != nil {
						t.Error(err)
					}
					return nil
				}); err != nil {
					t.Fatal(err)
				}
				until(t, "its Close", func() bool { return nc.closed.Load() > 0 })
				turned := make(chan bool)
				to.Post(func() { close(turned) })
				<-turned
				close(release)
				stops(t, e)
				if n, all := nc.closed.Load(), e.Stats(); n != 1 || all.Open != 0 {
					t.Errorf("Close was called %d times, and %d connections are open", n, all.Open)
				}
			})
		}
	}
}
