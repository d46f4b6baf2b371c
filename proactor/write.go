package proactor

// write sends the first op in line, unless that is already being sent.
func (st *stream) write() {
	for o := st.writes.first; o != nil && !st.writing; o = st.writes.first {
		if o.total == 0 {
			st.finish(o, nil)
			continue
		}
		o.watch(true)
		if err := st.send(o); err != nil {
			if why := st.wire.Cause(); why != nil {
				err = why // of an earlier piece
			}
			st.outputFailed()
			st.finish(o, err)
			continue
		}
		st.writing = true
	}
	st.close()
}

// send passes o's bytes to the connection without a copy. The release function
// of the last piece reports the end.
func (st *stream) send(o *op) (err error) {
	if o.release == nil {
		o.release = newRelease(o)
	}
	defer func() {
		if err != nil {
			o.release.dead, o.release = true, nil // o may be recycled before the call
		}
	}()
	if o.Kind == Write {
		return st.conn.WriteOwned(o.Buf[o.N:], o.release.f) // the submitter has sent N bytes
	}
	last := len(o.Bufs) - 1
	for len(o.Bufs[last]) == 0 {
		last--
	}
	given := 0
	for i := range last {
		if err = st.conn.WriteOwned(o.Bufs[i], nil); err != nil {
			o.N = given - st.conn.Buffered()
			return err
		}
		given += len(o.Bufs[i])
	}
	if err = st.conn.WriteOwned(o.Bufs[last], o.release.f); err != nil {
		o.N = given - st.conn.Buffered()
	}
	return err
}

// A release is the release function that an op passes to WriteOwned. The op
// keeps it when it is recycled.
type release struct {
	op   *op
	dead bool   // WriteOwned failed, and send reports that
	f    func() // the method value call, created once
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

// sent is called when the system has released o's memory: o was sent, or Recall
// took back the rest, or the connection is about to call Closed.
func (o *op) sent() {
	st := o.stream
	rest := st.conn.Buffered()
	o.N = o.total - rest
	failed := rest > 0 && st.outputFailed()
	switch {
	case rest == 0:
		st.writing = false
		st.finish(o, nil)
	case o.why != nil:
		st.writing = false
		st.finish(o, o.why)
	case failed:
		st.writing = false
		st.finish(o, st.wire.Cause())
	default:
		return // Closed completes o with the error
	}
	st.write()
}

// outputFailed reports whether a write has failed and the connection is still read. Then
// it also stops submitters from sending: dropped bytes must not be followed by more.
func (st *stream) outputFailed() bool {
	if st.wire.IsClosing() || st.wire.Cause() == nil {
		return false
	}
	st.out.setDirect(nil)
	return true
}
