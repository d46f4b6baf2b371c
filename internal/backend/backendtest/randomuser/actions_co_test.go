package randomuser

import (
	"context"
	"errors"
	"fmt"
	"net"
	"os"
	"slices"
	"time"

	"github.com/rondo-go/rondo"
	"github.com/rondo-go/rondo/coro"
)

// coroutine returns an OpenFunc whose connections the user's coroutines serve.
func (w *world) coroutine(name string) rondo.OpenFunc {
	n := 0
	return func(c *rondo.Conn) rondo.Handler {
		w.mu.Lock()
		id := fmt.Sprintf("%s#%d", name, n)
		n++
		w.mu.Unlock()
		k := w.conn(id, c, nil)
		w.act(site{kind: "OpenFunc", who: id, loop: k.loop, conn: k})
		k.given = true
		ends := w.promise(id+" (its coroutine ends)", 0, 1)
		return coro.Handler(func(co *coro.Co, nc net.Conn) error {
			ends.min = 1
			defer ends.called(w)
			return w.dialogue("Coroutine", k, co, nc)
		})(c)
	}
}

// dialogue is the body of a coroutine.
func (w *world) dialogue(kind string, k *conn, co *coro.Co, nc net.Conn) error {
	for i := 0; ; i++ {
		w.act(site{kind: kind, who: k.name, loop: k.loop, conn: k, co: co, nc: nc})
		st := w.src.step(k.name + ".talks")
		switch st.intn(8) {
		case 0, 1, 2, 3:
			if i > 30 {
				return nil
			}
			b := make([]byte, 1+st.intn(5000))
			n, err := nc.Read(b)
			k.look(b[:n], n)
			if err != nil {
				return nil
			}
		case 4, 5:
			if err := k.coWrite(nc, sizes[st.intn(len(sizes))]); err != nil {
				return err
			}
		case 6:
			if err := co.Sleep(time.Duration(st.intn(5)) * time.Millisecond); err != nil {
				return err
			}
		case 7:
			switch st.intn(12) {
			case 10:
				return nil
			case 11:
				return errUser
			}
		}
		if w.calm.Load() {
			return nil
		}
	}
}

func (k *conn) coWrite(nc net.Conn, n int) (err error) {
	if !k.direct() || int(k.w.written.Add(int32(n))) > maxBytes {
		n = 0
	}
	k.out.write(n, func(p []byte) int {
		if n, err = nc.Write(p); err == nil {
			return n
		}
		var op *net.OpError
		failed := !errors.Is(err, os.ErrDeadlineExceeded) && !errors.Is(err, coro.ErrDeadlock)
		if errors.As(err, &op) && op.Err == rondo.ErrClosed {
			failed = k.out.isTorn()
		}
		k.out.tear("a coroutine's write: " + err.Error())
		if failed { // see written
			k.out.fail()
			return len(p)
		}
		return n
	})
	return err
}

// coActions are the actions of coroutines.
var coActions = []action{
	{"Co.Calling", 1, aCo, func(x *call) {
		if !x.at.co.Calling() {
			x.w.failf("%s: Calling is false in the coroutine", x.name)
		}
	}},
	{"Co.Conn", 2, aCo, func(x *call) { x.at.co.Conn() }},
	{"Co.Context", 2, aCo, func(x *call) { x.at.co.Context() }},
	{"Co.Loop", 2, aCo, func(x *call) { x.at.co.Loop() }},
	{"Co.Sleep", 4, aCo, func(x *call) { x.at.co.Sleep(x.duration()) }},
	{"Co.Dial", 3, aCo, func(x *call) {
		_, a := x.address()
		x.hold(x.at.co.Dial("tcp", a))
	}},
	{"Co.DialTimeout", 3, aCo, func(x *call) {
		_, a := x.address()
		x.hold(x.at.co.DialTimeout("tcp", a, x.duration()))
	}},
	{"Co.DialContext", 3, aCo, func(x *call) {
		_, a := x.address()
		x.hold(x.at.co.DialContext(x.at.co.Context(), "tcp", a))
	}},
	{"Co.Go", 4, aCo, func(x *call) {
		w, k, nc, name := x.w, x.at.conn, x.at.nc, x.child("go")
		ends := w.promise(name+" (it ends)", 0, 1)
		x.at.co.Go(func(co *coro.Co) error {
			ends.min = 1
			defer ends.called(w)
			for range 1 + x.intn(3) {
				w.act(site{kind: "Co.Go", who: name, loop: k.loop, conn: k, co: co, nc: nc})
				if err := co.Sleep(time.Millisecond); err != nil {
					return err
				}
			}
			return nil
		})
	}},
	{"Co.Wait", 3, aCo, func(x *call) { x.at.co.Wait() }},
	{"coro.Await", 3, aCo, func(x *call) {
		w, name := x.w, x.child("await")
		coro.Await(x.at.co, func() (int, error) {
			w.act(site{kind: "Await", who: name, plain: true})
			return 0, nil
		})
	}},
	{"Cond.Wait", 4, aCo, func(x *call) { choose(x, x.held.conds[:]).Wait(x.at.co) }},
	{"net.Conn.Read", 4, aCo, func(x *call) {
		if nc := x.netConn(); nc != x.at.nc {
			nc.SetReadDeadline(x.at.loop.Now().Add(5 * time.Millisecond))
			b := make([]byte, 100)
			if n, _ := nc.Read(b); x.held.served[nc] != nil {
				x.held.served[nc].look(b[:n], n)
			}
		}
	}},
	{"net.Conn.Write", 4, aCo, func(x *call) { x.at.conn.coWrite(x.at.nc, sizes[x.intn(len(sizes))]) }},
	{"net.Conn.Close", 3, aCo, func(x *call) { x.netConn().Close() }},
	{"net.Conn.SetDeadline", 3, aCo, func(x *call) { x.netConn().SetDeadline(x.deadline()) }},
	{"net.Conn.SetReadDeadline", 3, aCo, func(x *call) { x.netConn().SetReadDeadline(x.deadline()) }},
	{"net.Conn.SetWriteDeadline", 3, aCo, func(x *call) { x.netConn().SetWriteDeadline(x.deadline()) }},
}

// hold keeps a connection for the loop's coroutines.
func (x *call) hold(nc net.Conn, err error) {
	if err == nil {
		x.held.netConns = append(x.held.netConns, nc)
	}
}

// netConn returns the coroutine's connection, or another one of the loop's.
func (x *call) netConn() net.Conn {
	if len(x.held.netConns) > 0 && x.one(2) {
		return choose(x, x.held.netConns)
	}
	return x.at.nc
}

// engineActions are the actions of engines, of their listeners, and of Refs. They work
// anywhere, or must report that they do not.
var engineActions = []action{
	{"Ref.Close", 2, anyWhere, func(x *call) { x.conn.c.Ref().Close() }},
	{"Ref.Closed", 1, anyWhere, func(x *call) { x.conn.c.Ref().Closed() }},
	{"Ref.Loop", 1, anyWhere, func(x *call) { x.conn.c.Ref().Loop() }},
	{"Ref.Do", 4, anyWhere, refDo},
	{"Ref.Write", 4, anyWhere, refWrite},
	{"Broadcast", 4, anyWhere, broadcast},
	{"Engine.Loops", 1, nothing, func(x *call) { x.engine().Loops() }},
	{"Engine.BackendName", 1, nothing, func(x *call) { x.engine().BackendName() }},
	{"Engine.Stats", 1, nothing, func(x *call) { x.engine().Stats() }},
	{"Engine.Start", 1, nothing, func(x *call) { x.engine().Start() }},
	{"Engine.Adopt", 1, aConn, func(x *call) {
		if x.conn.over() {
			return
		}
		x.engine().Adopt(x.w.openerFrom(x.child("take"), x.conn, nil))(x.conn.c)
	}},
	{"Engine.Listen", 1, nothing, func(x *call) {
		ln, err := x.engine().Listen("tcp", "127.0.0.1:0", rondo.SocketOptions{}, x.w.opener(x.child("listen")))
		if err == nil {
			x.w.mu.Lock()
			x.w.listeners = append(x.w.listeners, &listener{ln: ln, addr: ln.Addr().String()})
			x.w.mu.Unlock()
		}
	}},
	{"Engine.Dial", 2, nothing, func(x *call) {
		ln, address := x.address()
		if ln.tls {
			return
		}
		w, name := x.w, x.child("edial")
		ctx, cancel := context.WithCancel(context.Background())
		defer cancel()
		if x.one(4) {
			cancel()
		}
		_, err := x.engine().Dial(ctx, "tcp", address, rondo.SocketOptions{DialTimeout: x.duration()}, func(c *rondo.Conn) rondo.Handler {
			k := w.conn(name, c, nil)
			return w.opened(k, site{kind: "OpenFunc", who: name, loop: k.loop, conn: k})
		})
		x.say("    %v", err)
	}},
	{"Engine.Attach", 1, nothing, func(x *call) {
		a, b := net.Pipe()
		defer b.Close()
		attached := false
		defer func() {
			if !attached {
				a.Close()
			}
		}()
		_, err := x.engine().Attach(a, x.w.opener(x.child("attach")))
		attached = err == nil
	}},
	{"Engine.Wait", 1, aLoop, func(x *call) { x.engine().Wait() }},
	{"Engine.Close", 1, nothing, func(x *call) {
		if x.one(4) {
			x.w.ending.Store(true)
			x.engine().Close()
		}
	}},
	{"Engine.Shutdown", 1, nothing, func(x *call) {
		if x.one(4) {
			x.w.ending.Store(true)
			ctx, cancel := context.WithCancel(context.Background())
			if x.one(2) {
				cancel()
			}
			defer cancel()
			x.engine().Shutdown(ctx)
		}
	}},
	{"Listener.Addr", 1, aListener, func(x *call) { x.listener().Addr() }},
	{"Listener.Pause", 1, aListener, func(x *call) {
		ln := x.listener()
		ln.Pause()
		ln.Resume()
	}},
	{"Listener.Resume", 1, aListener, func(x *call) { x.listener().Resume() }},
	{"Listener.Close", 1, aListener, func(x *call) {
		if x.one(2) {
			x.listener().Close()
		}
	}},
}

func (x *call) engine() *rondo.Engine { return choose(x, x.w.engines) }

func (x *call) listener() *rondo.Listener {
	x.w.mu.Lock()
	defer x.w.mu.Unlock()
	return choose(x, x.w.listeners).ln
}

func refDo(x *call) {
	k, w, name := x.conn, x.w, x.child("do")
	t := w.promise(name, 0, 1)
	k.c.Ref().Do(func(c *rondo.Conn) {
		t.called(w)
		w.act(site{kind: "Ref.Do", who: name, loop: k.loop, conn: k})
	})
}

// claims reports whether s is x's to write by Refs.
func (x *call) claims(s *stream) bool {
	var me any = outside
	if x.at.loop != nil {
		me = x.at.loop
	} else if x.at.who != "outsider" {
		me = x // one of many goroutines
	}
	return s.claim(me)
}

// broadcast writes to a connection that nobody writes otherwise, and nothing to all others:
// those that are full are told of. What a full one misses is dropped from its stream.
func broadcast(x *call) {
	w, name := x.w, x.child("broadcast")
	full := func(c *rondo.Conn) {
		w.mu.Lock()
		k := w.byConn[c]
		w.mu.Unlock()
		w.act(site{kind: "Broadcast", who: name, loop: c.Loop(), conn: k})
	}
	n, s := 0, x.conn.out
	if x.claims(s) {
		n = x.size(sizes[x.intn(len(sizes))])
	}
	s.write(n, func(p []byte) int {
		rondo.Broadcast(slices.Values([]rondo.Ref{{}, x.conn.c.Ref()}), p, full)
		return len(p)
	})
	if n > 0 {
		s.recalled()
	}
	var refs []rondo.Ref
	for _, k := range x.conns(nil) {
		refs = append(refs, k.c.Ref())
	}
	rondo.Broadcast(slices.Values(refs), nil, full)
}

// refWrite writes to a connection that nobody writes otherwise.
func refWrite(x *call) {
	s := x.conn.out
	mine := x.claims(s)
	for range 1 + x.intn(4) {
		n := 0
		if mine {
			n = x.size(sizes[x.intn(len(sizes))])
		}
		x.refWrite(s, n)
	}
}

func (x *call) refWrite(s *stream, n int) {
	s.write(n, func(p []byte) int {
		err := x.conn.c.Ref().Write(p)
		x.say("    %d: %v", len(p), err)
		if err != nil {
			if !errors.Is(err, rondo.ErrClosed) && !errors.Is(err, rondo.ErrOutputFull) {
				x.w.failf("%s: Ref.Write: %v", x.conn.name, err)
			}
			return 0
		}
		return n
	})
}
