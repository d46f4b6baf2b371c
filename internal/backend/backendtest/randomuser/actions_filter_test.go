package randomuser

import (
	"net"
	"time"

	"github.com/rondo-go/rondo"
)

// A filter is the user's: it passes its data on, and acts.
type filter struct {
	w      *world
	name   string
	loop   *rondo.Loop
	c      *rondo.Conn
	closed int
	kept   []byte // output to send later
	above  []byte // input to deliver later
	// passes says that nothing may be kept: Remove or Unready was called. A filter that
	// is not ready is not asked for the rest when the connection closes.
	passes bool
}

// filter returns a FilterOpenFunc that makes filters.
func (w *world) filter(name string) rondo.FilterOpenFunc {
	return func(c *rondo.Conn) rondo.Filter {
		w.pair(c)
		w.holder(c).filters++
		f := &filter{w: w, name: w.child(name, "filter"), loop: c.Loop(), c: c}
		w.act(site{kind: "FilterOpenFunc", who: f.name, loop: f.loop, conn: f.conn()})
		return f
	}
}

func (f *filter) conn() *conn {
	f.w.mu.Lock()
	defer f.w.mu.Unlock()
	return f.w.byConn[f.c]
}

func (f *filter) act(kind string, s *rondo.FilterPort) {
	if f.closed > 0 && kind != "Filter.Closed" {
		f.w.failf("%s: %s after Closed", f.name, kind)
	}
	f.w.act(site{kind: kind, who: f.name, loop: f.loop, conn: f.conn(), stage: s})
}

func (f *filter) Start(s *rondo.FilterPort) error {
	h := &f.w.home(f.loop).held
	h.stages = append(h.stages, s)
	f.w.filters.Store(s, f)
	f.act("Filter.Start", s)
	s.Ready()
	return nil
}

func (f *filter) Inbound(s *rondo.FilterPort, in []byte) (int, error) {
	f.act("Filter.Inbound", s)
	f.raise(s)
	n := min(len(in), max(s.Room(), 0))
	st := f.w.src.step(f.name + ".passes")
	how := st.intn(8)
	if f.passes && how == 3 {
		how = 0
	}
	switch how {
	case 3:
		part := st.intn(n + 1)
		s.Deliver(in[:part])
		if f.passes { // it may have been set meanwhile
			s.Deliver(in[part:n])
			return n, nil
		}
		f.above = append(f.above, in[part:n]...)
		later := []time.Duration{0, 1, 20}[st.intn(3)] // output may raise it earlier
		f.c.Loop().AfterFunc(later*time.Millisecond, func() { f.raise(s) })
		return n, nil
	case 4:
		n = st.intn(n + 1)
		if st.one(4) {
			f.c.Loop().AfterFunc(time.Duration(st.intn(3))*time.Millisecond, func() { f.w.emptied(s).Remove() })
		}
	case 5, 6:
		part := st.intn(n + 1)
		s.Deliver(in[:part])
		f.act("Filter.Inbound", s)
		s.Deliver(in[part:n])
		return n, nil
	case 7:
		if st.one(8) {
			return n, f.fails()
		}
	}
	s.Deliver(in[:n])
	return n, nil
}

// fails returns an error for a method to return.
func (f *filter) fails() error {
	if k := f.conn(); k != nil {
		k.out.tear("a filter failed")
	}
	return errUser
}

func (f *filter) Outbound(s *rondo.FilterPort, out []byte) error {
	f.act("Filter.Outbound", s)
	st := f.w.src.step(f.name + ".sends")
	f.raise(s)
	f.flush(s)
	how := st.intn(6)
	if f.passes {
		how = 0
	}
	switch how {
	case 3:
		n := st.intn(len(out) + 1)
		s.Send(out[:n])
		f.kept = append(f.kept, out[n:]...)
		f.c.Loop().AfterFunc(time.Duration(st.intn(3))*time.Millisecond, func() { f.flush(s) })
		return nil
	case 4:
		n := st.intn(len(out) + 1)
		s.Send(out[:n])
		f.act("Filter.Outbound", s)
		s.Send(out[n:])
		return nil
	case 5:
		if st.one(8) {
			return f.fails()
		}
	}
	s.Send(out)
	return nil
}

// flush sends the kept output.
func (f *filter) flush(s *rondo.FilterPort) {
	kept := f.kept
	f.kept = nil
	s.Send(kept)
}

// raise delivers the kept input.
func (f *filter) raise(s *rondo.FilterPort) {
	above := f.above
	f.above = nil
	s.Deliver(above)
}

func (f *filter) EOF(s *rondo.FilterPort) error {
	f.act("Filter.EOF", s)
	f.raise(s)
	s.EOF()
	return nil
}

func (f *filter) CloseWrite(s *rondo.FilterPort) error {
	f.act("Filter.CloseWrite", s)
	f.flush(s)
	return nil
}

func (f *filter) Closed(s *rondo.FilterPort, err error) {
	if f.closed++; f.closed > 1 {
		f.w.failf("%s: Closed of a filter was called twice", f.name)
	}
	f.act("Filter.Closed", s)
}

// stage returns the current filter's port, or another one of the loop's.
func (x *call) stage() *rondo.FilterPort {
	if x.at.stage != nil && !(len(x.held.stages) > 0 && x.one(4)) {
		return x.at.stage
	}
	return choose(x, x.held.stages)
}

// emptied empties the stage's filter, because kept bytes would be lost.
func (w *world) emptied(s *rondo.FilterPort) *rondo.FilterPort {
	if f, ok := w.filters.Load(s); ok {
		f := f.(*filter)
		f.passes = true
		f.raise(s)
		f.flush(s)
	}
	return s
}

var stageActions = []action{
	{"FilterPort.AvailableBuffer", 1, aStage, func(x *call) { x.stage().AvailableBuffer() }},
	{"FilterPort.Conn", 1, aStage, func(x *call) { x.stage().Conn() }},
	{"FilterPort.Deliver", 1, aStage, func(x *call) { x.stage().Deliver(nil) }},
	{"FilterPort.EOF", 1, aStage, func(x *call) {
		s := x.stage()
		x.w.mu.Lock()
		k := x.w.byConn[s.Conn()]
		x.w.mu.Unlock()
		if k != nil { // otherwise nobody gets the end yet
			k.early = true
			s.EOF()
		}
	}},
	{"FilterPort.Fail", 1, aStage, func(x *call) { x.stage().Fail(errUser) }},
	{"FilterPort.Pause", 1, aStage, func(x *call) { x.stage().Pause() }},
	{"FilterPort.Resume", 2, aStage, func(x *call) { x.stage().Resume() }},
	{"FilterPort.Ready", 1, aStage, func(x *call) { x.stage().Ready() }},
	{"FilterPort.Unready", 1, aStage, func(x *call) { x.w.emptied(x.stage()).Unready() }},
	{"FilterPort.Remove", 1, aStage, func(x *call) { x.w.emptied(x.stage()).Remove() }},
	{"FilterPort.Room", 1, aStage, func(x *call) { x.stage().Room() }},
	{"FilterPort.Send", 1, aStage, func(x *call) { x.stage().Send(nil) }},
	{"FilterPort.SetAddrs", 1, aStage, func(x *call) {
		x.stage().SetAddrs(&net.TCPAddr{IP: net.IPv4(1, 2, 3, 4), Port: 5}, nil)
	}},
}
