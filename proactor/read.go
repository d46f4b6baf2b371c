package proactor

import (
	"io"

	"github.com/rondo-go/rondo"
)

// arm makes the connection read for the first op in line, or pauses it if there
// is none.
func (st *stream) arm() {
	for o := st.reads.first; o != nil; o = st.reads.first {
		switch {
		case st.eof && o.N > 0:
			st.finish(o, io.ErrUnexpectedEOF)
		case st.eof:
			st.finish(o, io.EOF)
		case o.Buf != nil && len(o.Buf) == o.N: // an empty Buf
			st.finish(o, nil)
		default:
			if st.reading != armed || o.N == 0 {
				o.watch(true)
			}
			st.wire.ReceiveInto(o.Buf[o.N:])
			st.reading = armed
			st.conn.Resume()
			return
		}
	}
	st.reading = idle
	st.conn.Pause()
	st.in.busy.Store(st.left || st.short || st.wire.Receiving())
	st.close()
}

// Data completes reads with the input. The input is already in place after
// ReceiveInto, or in the loop's memory. Data leaves input that no read wants
// yet.
func (st *stream) Data(_ *rondo.Conn, in []byte) (int, error) {
	done := 0
	for o := st.reads.first; o != nil && done < len(in); o = st.reads.first {
		n := o.take(in[done:])
		if n == 0 {
			st.reading, st.left = starving, true
			st.shard.waiting = append(st.shard.waiting, st)
			st.conn.Pause()
			return done, nil
		}
		done += n
		st.left, st.short = done < len(in), !o.Lent && o.N < len(o.Buf)
		switch {
		case o.Kind == Read || o.N == len(o.Buf):
			st.finish(o, nil)
		case o.why != nil:
			st.finish(o, o.why)
		}
	}
	st.arm()
	return done, nil
}

// take moves bytes of in to o's memory and returns their number.
func (o *op) take(in []byte) int {
	if o.Buf == nil {
		o.Buf, o.slab = o.stream.shard.lend(in)
		o.Lent = o.Buf != nil
		o.N = len(o.Buf)
		return o.N
	}
	rest := o.Buf[o.N:]
	n := min(len(rest), len(in))
	if &rest[0] != &in[0] {
		copy(rest, in)
	}
	o.N += n
	return n
}

// EOF ends the reads: the peer has closed its side, or a submitter's write has got the reset of the
// connection from the system.
func (st *stream) EOF(*rondo.Conn) {
	if err := st.out.cut(); err != nil {
		st.wire.Failed("write", err) // ends the connection, whose input has ended
		return
	}
	st.eof = true
	st.arm()
}

// Paused is called when the system has released the first op's memory.
func (st *stream) Paused() {
	if st.reading == stopping {
		st.stopped()
	}
}

// stopped completes the first op, which was to end.
func (st *stream) stopped() {
	st.reading = idle
	if o := st.reads.first; o != nil && o.why != nil {
		st.finish(o, o.why)
	}
	st.arm()
}
