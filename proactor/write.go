package proactor

// write sends the first in line, unless it is on its way.
func (st *stream) write() {
	for o := st.writes.first; o != nil && !st.writing; o = st.writes.first {
		if o.total == 0 {
			st.finish(o, nil)
			continue
		}
		o.watch(true)
		if err := st.send(o); err != nil {
			st.finish(o, err)
			continue
		}
		st.writing = true
	}
	st.close()
}

// send gives o's bytes to the connection, from where they are. The last piece's
// release tells of the end.
func (st *stream) send(o *op) (err error) {
	if o.release == nil {
		o.release = newRelease(o)
	}
	defer func() {
		if err != nil {
			o.release.dead, o.release = true, nil // o may be somebody else's when it is called
		}
	}()
	if o.Kind == Write {
		return st.conn.WriteOwned(o.Buf[o.N:], o.release.f) // from where the submitter came to
	}
	last := len(o.Bufs) - 1
	for len(o.Bufs[last]) == 0 {
		last--
	}
	for i := range last {
		if err = st.conn.WriteOwned(o.Bufs[i], nil); err != nil {
			return err
		}
	}
	return st.conn.WriteOwned(o.Bufs[last], o.release.f)
}

// A release is what WriteOwned calls for an op, again and again as the op is used.
type release struct {
	op   *op
	dead bool   // WriteOwned has failed: send tells so itself
	f    func() // call, made once
}

func newRelease(o *op) *release {
	r := &release{op: o}
	r.f = r.call
	return r
}

func (r *release) call() {
	if !r.dead {
		r.op.sent()
	}
}

// sent is called when the system has let go of o's memory: it is sent, or Recall has
// taken back what is left, or the connection is about to be Closed.
func (o *op) sent() {
	st := o.stream
	rest := st.conn.Buffered()
	o.N = o.total - rest
	switch {
	case rest == 0:
		st.writing = false
		st.finish(o, nil)
	case o.why != nil:
		st.writing = false
		st.finish(o, o.why)
	case !st.wire.IsClosing() && st.wire.Cause() != nil: // a write has failed, and reads go on
		st.writing = false
		st.out.give(nil) // what was dropped must not be followed by more
		st.finish(o, st.wire.Cause())
	default:
		return // Closed knows why
	}
	st.write()
}
