package randomuser

import (
	"fmt"
	"net"
	"slices"
	"time"

	"github.com/rondo-go/rondo"
	"github.com/rondo-go/rondo/coro"
)

// A site is a call of the user's code.
type site struct {
	kind   string            // the callback's name in the API
	who    string            // the owner's name in the script
	loop   *rondo.Loop       // the loop that it runs on; nil: none
	conn   *conn             // the connection that it belongs to, and a panic ends; nil: none
	stage  *rondo.FilterPort // of a filter's method
	packet *rondo.PacketConn
	co     *coro.Co
	nc     net.Conn // the coroutine's connection
	plain  bool     // no panic, no Goexit
}

// A call is an action being done.
type call struct {
	*step
	w    *world
	at   site
	conn *conn     // the connection that it uses: one of at.loop's
	held *holdings // of at.loop
}

// An action is one public method, or something else that a user does.
type action struct {
	name   string // as in go/types
	weight int
	need   need
	do     func(x *call)
}

// need is a requirement of an action.
type need uint8

const (
	nothing need = iota
	aLoop        // a loop to run on
	aConn        // a connection of that loop
	aStage       // a filter's method, or later
	aPacket
	aCo       // a coroutine
	offLoop   // no loop
	anyWhere  // the Ref of any connection
	aPoll     // a Poll of the loop
	aTimer    // a timer of the loop
	aDialing  // a dial of the loop
	aListener // a Listener
	aSocket   // a datagram socket of any loop
)

// holdings are the user's objects of a loop, used only on that loop.
type holdings struct {
	timers   []*heldTimer
	dialings []*rondo.Dialing
	polls    []*rondo.Poll
	stages   []*rondo.FilterPort
	forgets  []func()
	conds    [2]*coro.Cond
	netConns []net.Conn
	served   map[net.Conn]*conn // those by coro.NetConn
	marks    int                // for package watchdog
	measures int                // for package loopstats
}

// act does some actions, as the step decides.
func (w *world) act(at site) {
	w.entered(at)
	if w.calm.Load() || w.spent.Load() > maxActions || w.omits(at.kind) {
		return
	}
	st := w.src.step(at.who + "." + at.kind)
	x := &call{step: st, w: w, at: at}
	if at.loop != nil {
		x.held = &w.home(at.loop).held
	}
	n := [...]int{0, 0, 0, 0, 1, 1, 2, 3}[st.intn(8)]
	focused := w.focus.callback == at.kind && !st.one(4)
	maker := x.maker()
	switch {
	case focused:
		n = max(n, atOnce)
	case maker != nil:
		n = max(n, 1)
	}
	for i := range n {
		a := &deck[st.intn(len(deck))]
		switch {
		case focused:
			if wanted := st.choose(1+len(w.focus.actions), x.missing()); wanted > 0 {
				a = w.focus.actions[wanted-1]
			}
		case maker != nil && i == 0:
			a = maker
		}
		if w.omits(a.name) || w.omits(at.kind+":"+a.name) || !x.has(a.need) {
			continue
		}
		x.conn = x.pick(a.need)
		w.spent.Add(1)
		w.reached(at.kind, a.name)
		st.say("%s", a.name)
		if x.conn != nil {
			st.say("  of %s", x.conn.name)
		}
		a.do(x)
	}
}

// atOnce is how many actions of the focus the user tries in one call. Some callbacks
// are rare.
const atOnce = 4

// maker returns, from time to time, an action that leads to the focus.
func (x *call) maker() *action {
	f := x.w.focus
	if f.callback == x.at.kind || len(f.makers) == 0 || !x.one(3) {
		return nil
	}
	return f.makers[x.intn(len(f.makers))]
}

// missing returns the number, from 1, of the first action of the focus that can be done
// and was not done yet, or 0 if there is none.
func (x *call) missing() int {
	for i, a := range x.w.focus.actions {
		if x.has(a.need) && !x.w.done(x.at.kind, a.name) {
			return i + 1
		}
	}
	return 0
}

// omits reports whether a callback or an action is left out.
func (w *world) omits(name string) bool { return slices.Contains(w.src.script.Without, name) }

func (w *world) reached(callback, method string) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.cover[[2]string{callback, method}]++
}

func (w *world) done(callback, method string) bool {
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.cover[[2]string{callback, method}] > 0
}

// has reports whether an action's requirement is met.
func (x *call) has(n need) bool {
	h := x.held
	switch n {
	case nothing:
		return true
	case offLoop:
		return x.at.loop == nil
	case anyWhere:
		return len(x.conns(nil)) > 0
	case aSocket, aListener:
		x.w.mu.Lock()
		defer x.w.mu.Unlock()
		return n == aSocket && len(x.w.sockets) > 0 || n == aListener && len(x.w.listeners) > 0
	}
	if x.at.loop == nil || h == nil {
		return false
	}
	switch n {
	case aConn:
		return x.at.conn != nil || len(x.conns(x.at.loop)) > 0
	case aStage:
		return x.at.stage != nil || len(h.stages) > 0
	case aPacket:
		return x.at.packet != nil || len(x.packetsHere()) > 0
	case aCo:
		return x.at.co != nil
	case aPoll:
		return len(h.polls) > 0
	case aTimer:
		return len(h.timers) > 0
	case aDialing:
		return len(h.dialings) > 0
	}
	return true
}

// pick chooses the connection for an action, or returns nil if it needs none.
func (x *call) pick(n need) *conn {
	switch {
	case n == anyWhere:
		return choose(x, x.conns(nil))
	case n != aConn:
		return nil
	case x.at.conn != nil && !x.one(4):
		return x.at.conn
	}
	of := x.conns(x.at.loop)
	if len(of) == 0 {
		return x.at.conn
	}
	return choose(x, of)
}

// conns lists the user's connections, of one loop or of all.
func (x *call) conns(of *rondo.Loop) (list []*conn) {
	x.w.mu.Lock()
	defer x.w.mu.Unlock()
	for _, k := range x.w.conns {
		if of == nil || k.loop == of {
			list = append(list, k)
		}
	}
	return list
}

func choose[T any](x *call, of []T) T { return of[x.intn(len(of))] }

// anyLoop returns a loop of any engine.
func (x *call) anyLoop() *rondo.Loop { return choose(x, x.w.loops) }

// child names an object that this call creates.
func (x *call) child(kind string) string { return x.w.child(x.name, kind) }

// opener returns an OpenFunc whose connections the random user serves. from is a
// connection's record on its previous loop.
func (w *world) opener(name string) rondo.OpenFunc { return w.openerFrom(name, nil, nil) }

func (w *world) openerFrom(name string, from *conn, once *thing) rondo.OpenFunc {
	n := 0
	return func(c *rondo.Conn) rondo.Handler {
		w.mu.Lock()
		id := name
		if from == nil {
			id = fmt.Sprintf("%s#%d", name, n)
		}
		n++
		w.mu.Unlock()
		if once != nil {
			once.called(w)
		}
		k := w.conn(id, c, from)
		return w.opened(k, site{kind: "OpenFunc", who: id, loop: k.loop, conn: k})
	}
}

// opened acts as an OpenFunc and then returns a handler, or none.
func (w *world) opened(k *conn, at site) rondo.Handler {
	w.act(at)
	st := w.src.step(k.name + ".serves")
	if k.given {
		return k.c.Handler()
	}
	if st.one(20) {
		k.out.tear(k.name + ": refused")
		return nil
	}
	return k.serve(st)
}

func (k *conn) hasFilters() bool {
	for range k.c.Filters() {
		return true
	}
	return false
}

// stuff makes the outsider write more to a connection than its peer reads, and
// continue.
func (w *world) stuff() {
	w.called("Ref.Write", func() {
		w.entered(site{kind: "goroutine"})
		st := w.src.step("outsider.stuffs")
		x := &call{step: st, w: w, at: site{kind: "goroutine", who: "outsider", plain: true}}
		if of := x.conns(nil); len(of) > 0 && !st.one(8) {
			x.conn = of[st.intn(min(len(of), 3))] // the same ones, most of the time
			st.say("Ref.Write  of %s", x.conn.name)
			refWrite(x)
			if st.one(2) {
				x.writeDeadline(st.one(2))
			}
		}
	})
}

// writeDeadline sets a deadline that has passed, so that writes fail, or clears it.
func (x *call) writeDeadline(passed bool) {
	x.say("SetWriteDeadline; passed: %v", passed)
	x.conn.c.Ref().Do(func(c *rondo.Conn) {
		var t time.Time
		if passed {
			t = c.Loop().Now().Add(-1)
		}
		c.AbortUnsentAt(t)
	})
}

// outsider acts on a goroutine that is not a loop's.
func (w *world) outsider() {
	w.called("what the outsider calls", func() { w.act(site{kind: "goroutine", who: "outsider", plain: true}) })
}
