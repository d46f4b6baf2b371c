package backendtest

// A sink receives a connection's bytes, with a Recv always in flight.
type sink struct {
	conn
	want  stream // checks the bytes
	n     int    // received so far
	eof   bool
	err   error
	sizes []int // of the buffers, used in turn; 0 means a lent one
	turn  int
	recv  *call
}

// drain starts a sink that uses buffers of the given sizes in turn; 0 means a lent
// buffer. Without sizes all buffers are lent.
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

// received submits the next Recv inside the turn, before Return of the lent buffer, as
// loops do.
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
