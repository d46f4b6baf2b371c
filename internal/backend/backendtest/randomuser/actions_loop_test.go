package randomuser

import (
	"context"
	"fmt"
	"net"
	"net/netip"
	"os"
	"runtime"
	"time"

	"github.com/rondo-go/rondo"
	"github.com/rondo-go/rondo/internal/bridge"
	"github.com/rondo-go/rondo/internal/mark"
	"github.com/rondo-go/rondo/rtls"
)

// heldTimer is a timer and the number of times that it must fire.
type heldTimer struct {
	t     *rondo.Timer
	name  string
	every bool
	due   bool // pending
}

var loopActions = []action{
	{"nothing", 10, nothing, func(*call) {}},
	{"panic", 4, nothing, func(x *call) {
		if !x.at.plain {
			x.boom()
		}
	}},
	{"runtime.Goexit", 2, nothing, func(x *call) {
		if !x.at.plain {
			x.mine("Goexit")
			x.w.exits.Add(1)
			runtime.Goexit()
		}
	}},
	{"Loop.Post", 5, nothing, post},
	{"Loop.Defer", 4, aLoop, func(x *call) { x.later("Loop.Defer", x.at.loop.Defer) }},
	{"Loop.Deliver", 2, aLoop, func(x *call) { x.later("Loop.Deliver", bridge.LoopOf(x.at.loop).Deliver) }},
	{"chain", 1, aLoop, chain},
	{"Loop.AfterFunc", 4, aLoop, func(x *call) { x.timer(false) }},
	{"Loop.Every", 1, aLoop, func(x *call) { x.timer(true) }},
	{"Timer.Stop", 2, aTimer, func(x *call) {
		h := choose(x, x.held.timers)
		if was := h.t.Stop(); was != h.due {
			x.w.failf("timer: %s: Stop returned %v, pending is %v", h.name, was, h.due)
		}
		h.due = false
	}},
	{"Timer.Reset", 2, aTimer, func(x *call) {
		h := choose(x, x.held.timers)
		h.t.Reset(x.duration() + time.Millisecond)
		h.due = true
	}},
	{"Loop.OnClose", 1, aLoop, func(x *call) {
		w, loop, name := x.w, x.at.loop, x.child("atend")
		t := w.promise(name, 1, 1)
		forget := loop.OnClose(func() {
			t.called(w)
			w.act(site{kind: "Loop.OnClose", who: name, loop: loop})
		})
		x.held.forgets = append(x.held.forgets, func() {
			t.void.Store(true)
			forget()
		})
		if x.one(4) {
			choose(x, x.held.forgets)()
		}
	}},
	{"Loop.Dial", 5, aLoop, dial},
	{"Dialing.Cancel", 2, aDialing, func(x *call) { choose(x, x.held.dialings).Cancel() }},
	{"Loop.Attach", 1, aLoop, func(x *call) {
		a, b := net.Pipe()
		defer b.Close()
		if _, err := x.at.loop.Attach(a, x.w.opener(x.child("attach"))); err != nil {
			a.Close()
		}
	}},
	{"Loop.AttachNow", 1, aLoop, func(x *call) {
		a, b := net.Pipe()
		defer b.Close()
		defer func() {
			if r := recover(); r != nil {
				a.Close()
				panic(r)
			}
		}()
		if err := bridge.LoopOf(x.at.loop).AttachNow(a, rondo.OpenFunc(x.w.opener(x.child("attach")))); err != nil {
			a.Close()
		}
	}},
	{"Loop.AttachSole", 1, aLoop, func(x *call) {
		a, b := net.Pipe()
		defer b.Close()
		defer func() {
			if r := recover(); r != nil {
				a.Close()
				panic(r)
			}
		}()
		if err := bridge.LoopOf(x.at.loop).AttachSole(a, rondo.OpenFunc(x.w.opener(x.child("attach")))); err != nil {
			a.Close()
		}
	}},
	{"Loop.Conns", 1, aLoop, func(x *call) {
		for c := range x.at.loop.Conns() {
			x.w.mu.Lock()
			k := x.w.byConn[c]
			x.w.mu.Unlock()
			if k != nil && x.one(4) {
				c.Close()
			}
		}
	}},
	{"Loop.Engine", 1, aLoop, func(x *call) { x.at.loop.Engine() }},
	{"Loop.ID", 1, aLoop, func(x *call) { x.at.loop.ID() }},
	{"Loop.Calling", 1, nothing, func(x *call) {
		for _, l := range x.w.loops {
			if calling := l.Calling(); calling != (l == x.at.loop) {
				x.w.failf("%s: Calling of loop %d is %v", x.name, l.ID(), calling)
			}
		}
	}},
	{"Loop.Now", 1, aLoop, func(x *call) { x.at.loop.Now() }},
	{"Loop.Poll", 1, aLoop, poll},
	{"Poll.Modify", 1, aPoll, func(x *call) { choose(x, x.held.polls).Modify(rondo.Events(x.intn(4))) }},
	{"Poll.Mask", 1, aPoll, func(x *call) { choose(x, x.held.polls).Mask() }},
	{"Poll.Err", 1, aPoll, func(x *call) { choose(x, x.held.polls).Err() }},
	{"Poll.Close", 1, aPoll, func(x *call) { choose(x, x.held.polls).Close() }},
	{"LoopLocal.Get", 1, aLoop, func(x *call) {
		x.at.loop.Engine()
		l := rondo.LoopLocal[int]{New: func(loop *rondo.Loop) int {
			x.w.act(site{kind: "LoopLocal.New", who: x.at.who, loop: x.at.loop, conn: x.owner()})
			return 1
		}}
		l.Get(x.at.loop)
	}},
	{"Loop.Pin", 1, aLoop, func(x *call) {
		if x.one(4) {
			x.at.loop.Pin(x.intn(2))
		}
	}},
	{"Watching.Mark", 1, aLoop, func(x *call) {
		x.held.marks++
		m := bridge.LoopOf(x.at.loop).Mark().(*mark.Mark)
		m.Peer(m.Sight())
	}},
	{"Watching.Unmark", 1, aLoop, func(x *call) {
		if x.held.marks > 0 {
			x.held.marks--
			bridge.LoopOf(x.at.loop).Unmark()
		}
	}},
	{"Measuring.Measure", 1, aLoop, func(x *call) {
		on := x.held.measures == 0 || x.one(2)
		if on {
			x.held.measures++
		} else {
			x.held.measures--
		}
		bridge.LoopOf(x.at.loop).Measure(on)
	}},
	{"Listing.List", 1, aLoop, func(x *call) {
		seen, from := make(map[any]bool), uint32(0)
		for more := true; more; {
			from, more = bridge.LoopOf(x.at.loop).List(from, 1+x.intn(300), func(c any, f bridge.Facts) {
				if seen[c] || f.Age < 0 || f.Unsent < 0 {
					x.w.failf("List: %v is there twice, or has %+v", c, f)
				}
				seen[c] = true
			})
		}
	}},
	{"Cond.Signal", 1, aLoop, func(x *call) { choose(x, x.held.conds[:]).Signal() }},
	{"Cond.Broadcast", 1, aLoop, func(x *call) { choose(x, x.held.conds[:]).Broadcast() }},
}

// mine records that the current action ends the callback's owner.
func (x *call) mine(why string) {
	if k := x.owner(); k != nil {
		k.out.tear(why)
		k.booms++
	}
}

// owner returns the connection that the callback belongs to. The OpenFunc of a filter's
// connection may have been called only now.
func (x *call) owner() *conn {
	if x.at.conn == nil && x.at.stage != nil {
		x.w.mu.Lock()
		defer x.w.mu.Unlock()
		return x.w.byConn[x.at.stage.Conn()]
	}
	return x.at.conn
}

func (x *call) boom() {
	x.mine("panic")
	owner := x.owner()
	x.w.mu.Lock()
	x.w.booms++
	b := boom{x.w.booms, x.at.who + "." + x.at.kind}
	x.w.blowers[b.n] = owner
	x.w.mu.Unlock()
	panic(b)
}

func post(x *call) {
	w, l, name := x.w, x.anyLoop(), x.child("post")
	t := w.promise(name, 0, 1)
	err := l.Post(func() {
		t.called(w)
		w.act(site{kind: "Loop.Post", who: name, loop: l})
	})
	if err == nil && !w.ending.Load() {
		t.min = 1
	}
}

// later makes a function run at the end of the turn.
func (x *call) later(kind string, by func(func())) {
	w, l, name := x.w, x.at.loop, x.child("defer")
	t := w.promise(name, 1, 1)
	by(func() {
		t.called(w)
		w.act(site{kind: kind, who: name, loop: l})
	})
}

// chain repeats the same call from within, many times. Each call must have its own
// turn.
func chain(x *call) {
	w, l, n := x.w, x.at.loop, x.intn(300)
	turns, last := &w.home(l).turn.count, uint64(0)
	var again func()
	by := []func(func()){
		l.Defer, bridge.LoopOf(l).Deliver,
		func(f func()) { l.Post(f) },
		func(f func()) { l.AfterFunc(0, f) },
	}[x.intn(4)]
	again = func() {
		w.entered(site{kind: "chain", who: x.name, loop: l})
		now := turns.Load() + 1
		if now == last && !w.ending.Load() && w.exits.Load() == 0 { // Goexit starts a turn early
			w.failf("chain: %s goes on in the same turn", x.name)
		}
		last = now
		if n--; n > 0 && !w.calm.Load() {
			by(again)
		}
	}
	by(again)
}

func (x *call) timer(every bool) {
	w, l, name := x.w, x.at.loop, x.child("timer")
	h := &heldTimer{name: name, every: every, due: true}
	fire := func() {
		if !h.due {
			w.failf("timer: %s fired though it was stopped, or has fired", name)
		}
		h.due = every
		returned := false
		defer func() {
			if !returned {
				h.due = false // stopped
			}
		}()
		kind := "Loop.AfterFunc"
		if every {
			kind = "Loop.Every"
			if w.calm.Load() {
				h.due = false
				h.t.Stop()
			}
		}
		w.act(site{kind: kind, who: name, loop: l})
		returned = true
	}
	d := x.duration()
	if every {
		h.t = l.Every(d+time.Millisecond, fire)
	} else {
		h.t = l.AfterFunc(d, fire)
	}
	x.held.timers = append(x.held.timers, h)
}

// address returns an address to dial: of one of the user's listeners, or of nobody.
func (x *call) address() (*listener, string) {
	if x.one(6) {
		return &listener{}, []string{"127.0.0.1:1", "nowhere.test:80", "nonsense"}[x.intn(3)]
	}
	x.w.mu.Lock()
	ln := choose(x, x.w.listeners)
	x.w.mu.Unlock()
	return ln, ln.addr
}

func dial(x *call) {
	w, l, name := x.w, x.at.loop, x.child("dial")
	ln, address := x.address()
	t := w.promise(name, 1, 1)
	open := func(c *rondo.Conn, err error) rondo.Handler {
		t.called(w)
		if err != nil {
			w.act(site{kind: "Loop.Dial", who: name, loop: l})
			return nil
		}
		k := w.conn(name, c, nil)
		return w.opened(k, site{kind: "Loop.Dial", who: name, loop: l, conn: k})
	}
	if ln.tls {
		_, client := secrets()
		o := &rtls.Options{HandshakeTimeout: 300 * time.Millisecond}
		open = rondo.FilteredDial(open, o.Client(client))
	}
	x.held.dialings = append(x.held.dialings, l.Dial("tcp", address, rondo.SocketOptions{}, open))
}

func poll(x *call) {
	w, l, name := x.w, x.at.loop, x.child("poll")
	r, pw, err := os.Pipe()
	if err != nil {
		return
	}
	defer r.Close()
	if x.one(2) {
		pw.Close()
	} else {
		defer pw.Close()
	}
	n := 0
	var p *rondo.Poll
	p, err = l.Poll(int(r.Fd()), rondo.Readable, func(rondo.Events) {
		if n++; n > 3 || w.calm.Load() {
			p.Close()
			return
		}
		w.act(site{kind: "Loop.Poll", who: name, loop: l})
	})
	if err == nil {
		x.held.polls = append(x.held.polls, p)
	}
}

// LookupNetIP implements rondo.Resolver.
func (r resolver) LookupNetIP(ctx context.Context, network, host string) ([]netip.Addr, error) {
	return nil, fmt.Errorf("%s: %w", host, errNoName)
}
