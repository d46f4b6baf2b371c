package coro

import (
	"io"
	"os"

	"github.com/rondo-go/rondo/internal/buf"
)

// Read implements net.Conn. A Read that waits when input arrives copies straight from the
// loop's receive buffer to p.
func (s *netConn) Read(p []byte) (int, error) {
	co := s.sched.caller()
	if co == nil {
		return 0, s.stranger("read")
	}
	if len(p) == 0 && !s.ended {
		return 0, nil
	}
	for {
		ok, err := s.offered(co)
		switch {
		case err != nil:
			return 0, s.refuse(co, "read", err)
		case ok:
			n := copy(p, s.in)
			s.in = s.in[n:]
			return n, nil
		}
		co.yield(struct{}{})
		co.unpark(&s.readers)
	}
}

// offered reports whether s.in holds input, which is valid until co next waits. If
// offered returns false and no error, the caller must yield co, then unpark it from
// s.readers.
func (s *netConn) offered(co *Co) (bool, error) {
	if err := s.readable(); err != nil {
		return false, err
	}
	if len(s.in) > 0 {
		return true, nil
	}
	if s.writing != nil && s.sharesTLS() {
		return false, ErrDeadlock
	}
	s.unpause()
	return false, co.park(&s.readers)
}

func (s *netConn) readable() error {
	switch {
	case s.ended:
		return s.closedError()
	case s.timed && s.times.read.passed(s.sched.now()):
		return os.ErrDeadlineExceeded
	case s.eof:
		return io.EOF
	}
	return nil
}

// took notes that n bytes of in, which was s.in before a call of others' code, are read.
func (s *netConn) took(in []byte, n int) {
	hidden := len(s.in) < len(in) // by Filtered
	if s.in = in[n:]; hidden {
		s.Filtered()
	}
}

// WriteTo implements io.WriterTo, for io.Copy. To another connection of the same loop it
// copies nothing: the received bytes are sent from the receive buffer.
func (s *netConn) WriteTo(w io.Writer) (int64, error) {
	if dst, ok := w.(*netConn); ok && dst.sched == s.sched {
		return s.copyTo(dst, 1<<63-1)
	}
	return io.Copy(w, struct{ io.Reader }{s})
}

// ReadFrom implements io.ReaderFrom, for io.CopyN. It saves the copy as WriteTo does.
func (s *netConn) ReadFrom(r io.Reader) (int64, error) {
	limited, ok := r.(*io.LimitedReader)
	if !ok {
		return io.Copy(struct{ io.Writer }{s}, r)
	}
	src, ok := limited.R.(*netConn)
	if !ok || src.sched != s.sched {
		return io.Copy(struct{ io.Writer }{s}, r)
	}
	n, err := src.copyTo(s, limited.N)
	limited.N -= n
	return n, err
}

// copyTo writes up to limit bytes to dst, straight from s.in. The bytes there are valid
// only until the coroutine waits, so pass copies those that dst has no room for.
func (s *netConn) copyTo(dst *netConn, limit int64) (total int64, err error) {
	co := s.sched.caller()
	if co == nil {
		return 0, s.stranger("read")
	}
	for total < limit {
		ok, err := s.offered(co)
		switch {
		case err == io.EOF:
			return total, nil
		case err != nil:
			return total, s.refuse(co, "read", err)
		case !ok:
			co.yield(struct{}{})
			co.unpark(&s.readers)
			continue
		}
		n, err := s.pass(co, dst, int(min(int64(len(s.in)), limit-total)))
		if total += int64(n); err != nil {
			return total, err
		}
	}
	return total, nil
}

// pass writes up to n bytes of s.in to dst.
func (s *netConn) pass(co *Co, dst *netConn, n int) (int, error) {
	room, err := dst.room(co)
	if err != nil {
		return 0, dst.refuse(co, "write", err)
	}
	if room > 0 {
		in := s.in
		n, err = dst.conn.Write(in[:min(n, room)])
		s.took(in, n)
		if err != nil {
			return n, dst.refuse(co, "write", dst.writeError(err))
		}
		co.spend(n)
		return n, nil
	}
	p := append(s.sched.buffers.Get(min(n, buf.MaxPooled)), s.in[:min(n, buf.MaxPooled)]...)
	defer s.sched.buffers.Put(p)
	s.in = s.in[len(p):]
	return dst.Write(p)
}
