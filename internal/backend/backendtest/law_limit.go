package backendtest

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net"
	"runtime"
	"strings"
	"sync"
	"time"

	"github.com/rondo-go/rondo"
)

// isServed dials, and reports whether the peer is served an echo. It returns what the
// peer read instead.
func isServed(w World, addr net.Addr) (p Peer, said string, served bool) {
	w.Helper()
	p = w.Dial(addr)
	p.SetReadDeadline(w.Now().Add(patience))
	p.Write([]byte("hello"))
	var got bytes.Buffer
	for b := make([]byte, 100); got.Len() < 5 || got.String() != "hello"; {
		n, err := p.Read(b)
		got.Write(b[:n])
		if err != nil {
			p.Close()
			return nil, got.String(), false
		}
	}
	return p, "", true
}

// mustServe is isServed, until somebody who has gone does not count any more.
func mustServe(w World, addr net.Addr) Peer {
	w.Helper()
	for range 1000 {
		if p, _, served := isServed(w, addr); served {
			return p
		}
		w.Sleep(5 * time.Millisecond)
	}
	w.Fatal("there is no place for a connection")
	return nil
}

// mustRefuse fails if a peer is served, and returns what it is told.
func mustRefuse(w World, addr net.Addr) (said string) {
	w.Helper()
	_, said, served := isServed(w, addr)
	if served {
		w.Error("one too many is served")
	}
	return said
}

func echoes(*rondo.Conn) rondo.Handler { return rondo.HandlerFunc((*rondo.Conn).Write) }

// sentence is an Engine's Refuse.
func sentence(c *rondo.Conn, limit string) { fmt.Fprintf(c, "too many: %s\n", limit) }

// connsAreBounded: no more than MaxConns are served, on all loops together. Others are
// told so, or closed at once. A place is free when somebody has gone.
func connsAreBounded(w World) {
	for _, refuse := range []func(*rondo.Conn, string){nil, sentence} {
		var log lockedLog
		e := &rondo.Engine{NumLoops: 2, MaxConns: 3, Refuse: refuse, Logger: slog.New(slog.NewTextHandler(&log, nil))}
		addr := w.Listen(e, echoes)
		var in []Peer
		for range 3 {
			in = append(in, mustServe(w, addr))
		}
		const times = 5
		want := ""
		if refuse != nil {
			want = "too many: MaxConns\n"
		}
		for range times {
			// A peer that was closed with its bytes unread may see a reset only.
			if said := mustRefuse(w, addr); said != want && said != "" {
				w.Errorf("the peer was told %q, want %q", said, want)
			}
		}
		w.Until("the counts", func() bool { return e.Stats().Refused == times })
		n, ends := strings.Count(log.String(), "refused, there are too many"), strings.Count(log.String(), "is refused any more")
		if n < 1 || n > ends+1 {
			w.Errorf("the log tells %d times that connections are refused, and %d times that this is over", n, ends)
		}
		in[1].Close()
		in[1] = mustServe(w, addr)
		mustRefuse(w, addr)
		for _, p := range in {
			send(w, p, []byte("still here"))
			expect(w, p, []byte("still here"))
		}
	}
}

// lockedLog is a log that several goroutines write.
type lockedLog struct {
	mu sync.Mutex
	b  bytes.Buffer
}

func (l *lockedLog) Write(p []byte) (int, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.b.Write(p)
}

func (l *lockedLog) String() string {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.b.String()
}

// connsOfAnAddressAreBounded: likewise for MaxConnsPerAddr.
func connsOfAnAddressAreBounded(w World) {
	e := &rondo.Engine{NumLoops: 2, MaxConnsPerAddr: 2, Logger: slog.New(slog.DiscardHandler)}
	addr := w.Listen(e, echoes)
	one := mustServe(w, addr)
	mustServe(w, addr)
	mustRefuse(w, addr)
	one.Reset()
	mustServe(w, addr)
	mustRefuse(w, addr)
}

// acceptRateIsBounded: as many connections as AcceptRate may come at once, then as many in
// each second.
func acceptRateIsBounded(w World) {
	e := &rondo.Engine{NumLoops: 2, AcceptRate: 2, Logger: slog.New(slog.DiscardHandler)}
	addr := w.Listen(e, echoes)
	served := 0
	begin := w.Now()
	for range 30 {
		if _, _, ok := isServed(w, addr); ok {
			served++
		}
	}
	passed := w.Now().Sub(begin)
	if most := 2 + int(2*passed.Seconds()+1); served < 2 || served > most {
		w.Errorf("%d connections were served in %v, want 2 to %d", served, passed, most)
	}
	w.Sleep(1100 * time.Millisecond)
	for range 2 {
		if _, _, ok := isServed(w, addr); !ok {
			w.Error("a connection is refused after a second without any")
		}
	}
}

// countsOutliveNobody: a connection gives its place back however it ends.
func countsOutliveNobody(w World) {
	fail := func(at string) rondo.FilterOpenFunc {
		return func(*rondo.Conn) rondo.Filter { return failing{at: at} }
	}
	for name, open := range map[string]rondo.OpenFunc{
		"refused by its Opener": func(*rondo.Conn) rondo.Handler { return nil },
		"panic":                 func(*rondo.Conn) rondo.Handler { panic("an Opener's") },
		"Goexit":                func(*rondo.Conn) rondo.Handler { runtime.Goexit(); return nil },
		"Close":                 func(c *rondo.Conn) rondo.Handler { c.Close(); return echoes(c) },
		"Abort":                 func(c *rondo.Conn) rondo.Handler { c.Abort(nil); return echoes(c) },
		"no filter":             rondo.Filtered(echoes, func(*rondo.Conn) rondo.Filter { return nil }),
		"a filter's Start":      rondo.Filtered(echoes, fail("Start")),
		"a filter's Inbound":    rondo.Filtered(echoes, fail("Inbound")),
		"Data":                  func(*rondo.Conn) rondo.Handler { return rondo.HandlerFunc(refuses) },
		"Detach": func(c *rondo.Conn) rondo.Handler {
			c.Detach(func(nc net.Conn, err error) {
				if err == nil {
					c.Loop().Post(func() { c.Loop().Attach(nc, echoes) })
				} else {
					c.Abort(err) // a connection with filters cannot leave
				}
			})
			return nil
		},
	} {
		next := make(chan rondo.OpenFunc, 1)
		e := &rondo.Engine{NumLoops: 2, MaxConns: 1, MaxConnsPerAddr: 1, Linger: 20 * time.Millisecond, Logger: slog.New(slog.DiscardHandler)}
		addr := w.Listen(e, func(c *rondo.Conn) rondo.Handler {
			select {
			case open := <-next:
				return open(c)
			default:
				return echoes(c)
			}
		})
		for range 3 {
			next <- open
			for len(next) > 0 {
				before := e.Stats().Refused
				p := w.Dial(addr)
				p.Write([]byte("hello"))
				w.Until(name, func() bool { return len(next) == 0 || e.Stats().Refused > before })
				if len(next) > 0 {
					p.Close() // the one before had the place
				}
			}
			mustServe(w, addr).Close() // its place is free, and Attach takes none
		}
	}
}

func refuses(*rondo.Conn, []byte) (int, error) { return 0, errors.New("no") }

// failing is a filter one of whose methods fails.
type failing struct {
	rondo.PassThrough
	at string
}

func (f failing) Start(s *rondo.FilterPort) error {
	if f.at == "Start" {
		return errors.New("no start")
	}
	return f.PassThrough.Start(s)
}

func (f failing) Inbound(s *rondo.FilterPort, in []byte) (int, error) {
	if f.at == "Inbound" {
		return 0, errors.New("no input")
	}
	return f.PassThrough.Inbound(s, in)
}

// countsMove: a connection that moves within its engine keeps its place, all the way. One
// that moves to another engine gives its place back, and takes one there, or is refused.
func countsMove(w World) {
	quiet := slog.New(slog.DiscardHandler)
	second := &rondo.Engine{NumLoops: 1, MaxConns: 1, Refuse: sentence, Logger: quiet}
	w.Listen(second, echoes)
	first := &rondo.Engine{NumLoops: 2, MaxConns: 2, Logger: quiet}
	var loops []*rondo.Loop
	var mu sync.Mutex
	var last rondo.Ref
	addr := w.Listen(first, func(c *rondo.Conn) rondo.Handler {
		mu.Lock()
		defer mu.Unlock()
		last = c.Ref()
		return echoes(c)
	})
	for l := range first.Loops() {
		loops = append(loops, l)
	}
	move := func(ref rondo.Ref, to *rondo.Loop) (there rondo.Ref) {
		w.Helper()
		opened := make(chan rondo.Ref, 1)
		ref.Do(func(c *rondo.Conn) {
			if err := c.Move(to, func(c *rondo.Conn) rondo.Handler { opened <- c.Ref(); return echoes(c) }); err != nil {
				w.Errorf("Move: %v", err)
			}
		})
		w.Until("the move", func() bool { return len(opened) > 0 || second.Stats().Refused > 0 })
		if len(opened) > 0 {
			there = <-opened
		}
		return there
	}
	lastRef := func() rondo.Ref {
		mu.Lock()
		defer mu.Unlock()
		return last
	}
	a := mustServe(w, addr)
	refA := lastRef()
	b := mustServe(w, addr)
	refB := lastRef()
	for i := range 6 {
		refA = move(refA, loops[i%2])
		mustRefuse(w, addr)
	}
	move(refA, firstLoop(second))
	c := mustServe(w, addr) // in a's place
	mustRefuse(w, addr)
	move(refB, firstLoop(second)) // where a is
	w.Until("the count", func() bool { return second.Stats().Refused == 1 })
	told, _ := io.ReadAll(b) // b's hello was read
	if len(told) > 0 && string(told) != "too many: MaxConns\n" {
		w.Errorf("the peer was told %q", told)
	}
	b.Close()
	d := mustServe(w, addr) // in b's place
	mustRefuse(w, addr)
	for _, p := range []Peer{a, c, d} {
		send(w, p, []byte("still here"))
		expect(w, p, []byte("still here"))
		p.Close()
	}
	w.Until("no connection", func() bool { return first.Stats().Open+second.Stats().Open == 0 })
	mustServe(w, addr)
	mustServe(w, addr)
	mustRefuse(w, addr)
}

// refusedAreFew: connections that are told that they are too many and do not go are cut
// off when there are more than a few, and hold nothing up.
func refusedAreFew(w World) {
	e := &rondo.Engine{NumLoops: 1, MaxConns: 1, Refuse: sentence, Linger: time.Minute, Logger: slog.New(slog.DiscardHandler)}
	addr := w.Listen(e, echoes)
	one := mustServe(w, addr)
	const flood = 40
	for range flood {
		expectSaid(w, w.Dial(addr), "too many: MaxConns\n")
	}
	w.Until("the counts", func() bool {
		s := e.Stats()
		return s.Refused == flood && s.Open <= 17 && s.Accepted == s.Closed+uint64(s.Open)
	})
	send(w, one, []byte("still here"))
	expect(w, one, []byte("still here"))
	one.Close()
	mustServe(w, addr)
}

// expectSaid reads a sentence, and not the end of the stream.
func expectSaid(w World, p Peer, want string) {
	w.Helper()
	if _, ok := p.(gone); !ok {
		expect(w, p, []byte(want))
	}
}

// refuseFails: a Refuse that panics, calls runtime.Goexit, ends the connection itself, has
// it leave or gives it a Handler costs nobody a place.
func refuseFails(w World) {
	for name, refuse := range map[string]func(*rondo.Conn){
		"panic":  func(*rondo.Conn) { panic("a Refuse's") },
		"Goexit": func(*rondo.Conn) { runtime.Goexit() },
		"Abort":  func(c *rondo.Conn) { c.Abort(nil) },
		"Close":  func(c *rondo.Conn) { c.Close(); c.Write([]byte("late")) },
		"Detach": func(c *rondo.Conn) {
			c.Detach(func(nc net.Conn, err error) {
				if err == nil {
					c.Loop().Post(func() { c.Loop().Attach(nc, func(*rondo.Conn) rondo.Handler { return nil }) })
				}
			})
		},
		"SetHandler": func(c *rondo.Conn) {
			c.SetHandler(&handler{w: w})
			c.Write([]byte("bye"))
		},
		"Use": func(c *rondo.Conn) {
			c.Use(nil, func(*rondo.Conn) rondo.Filter { return rondo.PassThrough{} })
			c.Write([]byte("bye"))
		},
	} {
		e := &rondo.Engine{NumLoops: 1, MaxConns: 1, Linger: time.Second, Logger: slog.New(slog.DiscardHandler)}
		e.Refuse = func(c *rondo.Conn, _ string) { refuse(c) }
		addr := w.Listen(e, echoes)
		one := mustServe(w, addr)
		for range 20 {
			p := w.Dial(addr)
			p.SetReadDeadline(w.Now().Add(patience))
			io.ReadAll(p)
			p.Close()
		}
		w.Until(name+": the end", func() bool { s := e.Stats(); return s.Refused == 20 && s.Open == 1 })
		one.Close()
		mustServe(w, addr)
	}
}
