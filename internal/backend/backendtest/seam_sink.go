package backendtest

// A sink receives what comes to a connection, with a Recv always in flight.
type sink struct {
	conn
	want  stream // checks what comes
	n     int    // bytes so far
	eof   bool
	err   error
	sizes []int // of the buffers, in turns; 0 is a lent one
	turn  int
	recv  *call
}

// drain starts a sink that takes buffers of the given sizes in turns, 0 being
// lent ones, or only lent ones.
func (c conn) drain(sizes ...int) *sink {
	s := &sink{conn: c, sizes: append(sizes, 0)[:max(1, len(sizes))]}
	s.next()
	return s
}

func (s *sink) next() {
	var buf []byte
	if n := s.sizes[s.turn%len(s.sizes)]; n > 0 {
		buf = make([]byte, n)
	}
	s.turn++
	s.recv = s.conn.recv(buf)
	s.recv.then = s.received
}

// received submits the next Recv inside the turn, with the lent buffer still
// out, as loops do.
func (s *sink) received() {
	s.l.Helper()
	s.want.check(s.l, s.recv.data)
	s.n += s.recv.n
	s.eof = s.recv.n == 0 && s.recv.err == nil
	s.err = s.recv.err
	if !s.eof && s.err == nil {
		s.next()
	}
}

// done reports whether the stream ended.
func (s *sink) done() bool { return s.eof || s.err != nil }
