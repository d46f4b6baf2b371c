package randomuser

import (
	"errors"
	"net"
	"os"
	"time"
	"unsafe"

	"github.com/rondo-go/rondo"
	"github.com/rondo-go/rondo/coro"
	"github.com/rondo-go/rondo/internal/bridge"
)

// connActions are the methods of Conn.
var connActions = []action{
	{"Conn.Write", 12, aConn, func(x *call) { x.write(sizes[x.intn(len(sizes))]) }},
	{"Conn.WriteOwned", 8, aConn, writeOwned},
	{"Conn.SendFile", 6, aConn, sendFile},
	{"Conn.AvailableBuffer", 2, aConn, availableBuffer},
	{"Conn.Flush", 3, aConn, func(x *call) { x.conn.c.Flush() }},
	{"Conn.Close", 3, aConn, func(x *call) { x.conn.c.Close() }},
	{"Conn.CloseWith", 1, aConn, func(x *call) { x.conn.c.CloseWith(errUser) }},
	{"IO.CloseWithin", 1, aConn, func(x *call) {
		bridge.Of(x.conn.c).CloseWithin(time.Duration(1+x.intn(1e6)), x.intn(10_000))
		// It does not bound the output: two such connections that are each other's peers, and
		// read no more, would wait for one another for ever.
		k := x.conn
		k.c.Loop().AfterFunc(5*time.Second, func() {
			if !k.c.Ref().Closed() {
				k.out.tear("Abort")
				k.c.Abort(nil)
			}
		})
	}},
	{"Conn.CloseWrite", 2, aConn, func(x *call) { x.conn.c.CloseWrite() }},
	{"Conn.Abort", 2, aConn, func(x *call) {
		x.conn.out.tear("Abort")
		x.conn.c.Abort([]error{nil, errUser}[x.intn(2)])
	}},
	{"Conn.Buffered", 1, aConn, func(x *call) { x.conn.c.Buffered() }},
	{"Conn.Limits", 1, aConn, func(x *call) { x.conn.c.Limits() }},
	{"Conn.Full", 1, aConn, func(x *call) { x.conn.c.Full() }},
	{"Conn.Control", 1, aConn, func(x *call) {
		x.conn.c.Control(func(uintptr) error {
			x.w.act(site{kind: "Conn.Control", who: x.conn.name, loop: x.at.loop, conn: x.at.conn})
			return nil
		})
	}},
	{"Conn.Detach", 3, aConn, detach},
	{"Conn.Move", 4, aConn, move},
	{"Passing.Rest", 4, aConn, rest},
	{"Passing.Stay", 1, aConn, func(x *call) { x.conn.stay() }},
	{"Served.Callback", 1, aConn, func(x *call) { bridge.Of(x.conn.c).Callback() }},
	{"Passing.CountAccepted", 1, aConn, func(x *call) { bridge.Of(x.conn.c).CountAccepted() }},
	{"IO.Direct", 1, aConn, func(x *call) { bridge.Of(x.conn.c).Direct() }},
	{"Conn.Filters", 1, aConn, func(x *call) { x.conn.hasFilters() }},
	{"Conn.Handler", 1, aConn, func(x *call) { x.conn.c.Handler() }},
	{"Conn.LocalAddr", 1, aConn, func(x *call) { x.conn.c.LocalAddr() }},
	{"Conn.RemoteAddr", 1, aConn, func(x *call) { x.conn.c.RemoteAddr() }},
	{"Conn.Loop", 1, aConn, func(x *call) {
		if x.conn.c.Loop() != x.conn.loop {
			x.w.failf("%s: Loop is another one", x.conn.name)
		}
	}},
	{"coro.NetConn", 1, aConn, func(x *call) {
		x.conn.given = true
		nc := coro.NetConn(x.conn.c)
		x.held.netConns = append(x.held.netConns, nc)
		if x.held.served == nil {
			x.held.served = make(map[net.Conn]*conn)
		}
		x.held.served[nc] = x.conn
	}},
	{"Conn.Pause", 3, aConn, func(x *call) { x.conn.c.Pause() }},
	{"Conn.Resume", 5, aConn, func(x *call) { x.conn.c.Resume() }},
	{"Conn.Reusable", 1, aConn, func(x *call) { x.conn.c.Reusable() }},
	{"IO.Recall", 2, aConn, func(x *call) {
		if x.conn.given {
			return // the count of a coroutine's Write would be unknown
		}
		if !x.conn.hasFilters() {
			x.conn.out.recalled()
		}
		bridge.Of(x.conn.c).Recall()
	}},
	{"IO.ReceiveInto", 2, aConn, func(x *call) {
		if !bridge.Of(x.conn.c).Receiving() {
			bridge.Of(x.conn.c).ReceiveInto(make([]byte, x.intn(2000)))
		}
	}},
	{"IO.Pipe", 3, aConn, func(x *call) { bridge.Of(x.conn.c).Pipe(!x.one(4)) }},
	{"IO.Receiving", 1, aConn, func(x *call) { bridge.Of(x.conn.c).Receiving() }},
	{"Conn.Ref", 1, aConn, func(x *call) { x.conn.c.Ref() }},
	{"Conn.SetHandler", 2, aConn, func(x *call) {
		if x.conn.over() {
			return // the old handler has been told the end
		}
		x.conn.c.SetHandler(x.conn.serve(x.step))
	}},
	{"Conn.SetLimits", 4, aConn, func(x *call) {
		l := x.conn.c.Limits()
		if x.one(2) {
			l.MaxInput = 1 + x.intn(5000)
		}
		if x.one(2) {
			l.MaxOutput = 1 + x.intn(50000)
		}
		if x.one(2) {
			l.HighWater, l.LowWater = x.intn(5000), x.intn(5000)
		}
		l.ReadWhenFull = x.one(3)
		x.conn.c.SetLimits(l)
		x.relimited()
	}},
	{"Conn.SetIdle", 1, aConn, func(x *call) { x.conn.c.SetIdle(x.duration()) }},
	{"Conn.CloseAt", 1, aConn, func(x *call) { x.conn.c.CloseAt(x.deadline()) }},
	{"Conn.AbortUnsentAt", 1, aConn, func(x *call) { x.conn.c.AbortUnsentAt(x.deadline()) }},
	{"IO.Acknowledge", 1, aConn, func(x *call) {
		bridge.Of(x.conn.c).Acknowledge()
	}},
	{"IO.NoOutputLimit", 1, aConn, func(x *call) {
		bridge.Of(x.conn.c).NoOutputLimit()
		x.relimited()
	}},
	{"Conn.Use", 3, aConn, use},
	{"Conn.Want", 2, aConn, func(x *call) {
		x.conn.wanted = true
		x.conn.c.Want(x.intn(3000))
	}},
}

// relimited records that the connection's limits have changed.
func (x *call) relimited() { x.w.holder(x.conn.c).most.allow(x.conn.c.Limits()) }

// duration returns a short duration, or 0.
func (x *call) duration() time.Duration { return time.Duration(x.intn(20)) * time.Millisecond }

func (x *call) deadline() time.Time {
	switch x.intn(4) {
	case 0:
		return time.Time{}
	case 1:
		return time.Date(9999, 1, 1, 0, 0, 0, 0, time.UTC)
	}
	return x.at.loop.Now().Add(x.duration())
}

// size limits n to what may still be written in this world.
func (x *call) size(n int) int {
	if int(x.w.written.Add(int32(n))) > maxBytes {
		return 0
	}
	return n
}

// direct reports whether the connection's loop writes it, not another goroutine by
// Refs.
func (k *conn) direct() bool { return k.out.claim(k) }

func (x *call) write(n int) {
	if !x.conn.direct() || x.conn.given {
		n = 0
	}
	x.conn.out.write(x.size(n), func(p []byte) int {
		return x.written(p, func() (int, error) { return x.conn.c.Write(p) })
	})
}

// written makes f write p and returns how many bytes the reader may get. If the
// connection fails meanwhile, nobody knows how many of them a filter had sent on.
func (x *call) written(p []byte, f func() (int, error)) int {
	n, err := f()
	x.say("    %d: %d, %v", len(p), n, err)
	failed := false
	switch {
	case err == nil:
		if n < len(p) {
			x.w.failf("%s: a write took %d of %d bytes without an error", x.conn.name, n, len(p))
		}
	case errors.Is(err, rondo.ErrClosed):
		failed = x.conn.out.isTorn()
	case errors.Is(err, rondo.ErrOutputFull):
		_, err = x.conn.c.Write(nil)
		failed = err != nil && !errors.Is(err, rondo.ErrOutputFull)
	default:
		failed = true
	}
	if failed {
		x.conn.out.fail()
		return len(p)
	}
	return n
}

func writeOwned(x *call) {
	n := sizes[x.intn(len(sizes))]
	if !x.conn.direct() || x.conn.given {
		n = 0
	}
	k, w := x.conn, x.w
	name := x.child("release")
	t := w.promise(name, 1, 1)
	k.out.write(x.size(n), func(p []byte) int {
		return x.written(p, func() (int, error) {
			err := k.c.WriteOwned(p, func() {
				t.called(w)
				w.act(site{kind: "Conn.WriteOwned", who: name, loop: k.loop, conn: k})
			})
			if err != nil {
				return 0, err
			}
			return len(p), nil
		})
	})
}

// noiseFile holds the bytes of all streams. It is opened before worlds count open files.
var noiseFile = func() *os.File {
	f, err := os.CreateTemp("", "noise")
	if err == nil {
		os.Remove(f.Name()) // on Windows it stays
		_, err = f.Write(noise)
	}
	if err != nil {
		panic(err)
	}
	return f
}()

func sendFile(x *call) {
	k, w := x.conn, x.w
	n := sizes[x.intn(len(sizes))]
	if !k.direct() || k.given || k.over() || k.c.Buffered()+n > k.c.Limits().MaxOutput {
		n = 0
	}
	name := x.child("release")
	t := w.promise(name, 1, 1)
	k.out.write(x.size(n), func(p []byte) int {
		return x.written(p, func() (int, error) {
			offset := int64(0)
			if len(p) > 0 {
				offset = int64(uintptr(unsafe.Pointer(&p[0])) - uintptr(unsafe.Pointer(&noise[0])))
			}
			err := k.c.SendFile(noiseFile, offset, int64(len(p)), func() {
				t.called(w)
				w.act(site{kind: "Conn.SendFile", who: name, loop: k.loop, conn: k})
			})
			if err != nil {
				return 0, err
			}
			return len(p), nil
		})
	})
}

func availableBuffer(x *call) {
	n := sizes[x.intn(6)]
	if !x.conn.direct() || x.conn.given {
		n = 0
	}
	x.conn.out.write(x.size(n), func(p []byte) int {
		return x.written(p, func() (int, error) { return x.conn.c.Write(append(x.conn.c.AvailableBuffer(), p...)) })
	})
}

func use(x *call) {
	k, w := x.conn, x.w
	if k.over() {
		k.c.Use(nil, func(*rondo.Conn) rondo.Filter { return rondo.PassThrough{} })
		return
	}
	name := x.child("use")
	var open rondo.OpenFunc
	if x.one(2) {
		open = func(c *rondo.Conn) rondo.Handler {
			return w.opened(k, site{kind: "OpenFunc", who: name, loop: k.loop, conn: k})
		}
	}
	k.c.Use(open, w.filter(name))
}

func detach(x *call) {
	k, w := x.conn, x.w
	name := x.child("detach")
	t := w.promise(name, 0, 1)
	err := k.c.Detach(func(nc net.Conn, err error) {
		t.called(w)
		if err == nil {
			k.out.tear("detached")
			defer w.detached(name, k, nc)
		}
		w.act(site{kind: "Conn.Detach", who: name, loop: k.loop, conn: k})
	})
	if err == nil {
		t.min = 1
	}
	x.say("    %v", err)
}

// detached attaches the connection again, or closes it.
func (w *world) detached(name string, k *conn, nc net.Conn) {
	st := w.src.step(name + ".then")
	if st.one(2) {
		st.say("Attach")
		if _, err := k.loop.Attach(nc, w.openerFrom(name, k, nil)); err == nil {
			w.reached("Conn.Detach", "Loop.Attach")
			return
		}
	}
	w.mu.Lock()
	defer w.mu.Unlock()
	w.loose = append(w.loose, nc) // a simulated one cannot be closed on a loop
}

// rest brings the connection to rest. Then it stays, now or when something ends its rest, or it
// leaves, and comes back with the bytes that were under way.
func rest(x *call) {
	k, w := x.conn, x.w
	name := x.child("rest")
	t := w.promise(name, 0, 1)
	err := bridge.Of(k.c).Rest(func(err error) {
		t.called(w)
		w.act(site{kind: "Passing.Rest", who: name, loop: k.loop, conn: k})
		st := w.src.step(name + ".then")
		switch {
		case err != nil || st.one(8):
		case st.one(3):
			k.stay()
		default:
			w.departs(st, name, k)
		}
	})
	if err == nil {
		t.min, k.rest = 1, t
	}
	x.say("    %v", err)
}

// stay ends a Rest, whose function may not be called then.
func (k *conn) stay() {
	if t := k.rest; t != nil {
		t.void.Store(true)
	}
	bridge.Of(k.c).Stay()
}

// departs makes a connection leave its loop, and attaches it again.
func (w *world) departs(st *step, name string, k *conn) {
	st.say("Depart")
	gone, err := bridge.LoopOf(k.loop).Depart(bridge.Of(k.c))
	if err != nil { // something has ended its rest, or begun another one
		k.stay()
		return
	}
	d := gone[0]
	open := w.openerFrom(name, k, nil)
	nc := d.Conn
	if len(d.Unread) > 0 {
		nc = rondo.PrefixConn(nc, d.Unread)
	}
	_, err = k.loop.Attach(nc, func(c *rondo.Conn) rondo.Handler {
		if d.Ended {
			bridge.Of(c).OutputEnded()
		} else {
			bridge.Of(c).NoOutputLimit()
			c.WriteOwned(d.Unsent, nil)
		}
		return open(c)
	})
	if err == nil {
		w.reached("Loop.Depart", "Loop.Attach")
		return
	}
	k.out.tear("departed")
	w.mu.Lock()
	defer w.mu.Unlock()
	w.loose = append(w.loose, nc)
}

func move(x *call) {
	k, w := x.conn, x.w
	name := x.child("move")
	t := w.promise(name, 0, 1)
	err := k.c.Move(x.anyLoop(), w.openerFrom(name, k, t))
	x.say("    %v", err)
	if err != nil && !errors.Is(err, rondo.ErrClosed) && !k.hasFilters() {
		w.failf("%s: Move: %v", k.name, err)
	}
}
