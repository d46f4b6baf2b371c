package redis

import (
	"github.com/rondo-go/rondo"
	"github.com/rondo-go/rondo/internal/bridge"
	"github.com/rondo-go/rondo/resp"
)

// requestReader reads a connection's requests. It leaves a short request in the
// receive buffer, and copies a long one into the request's own memory, piece by
// piece.
type requestReader struct {
	partial resp.PartialRequest
	long    *resp.LongRequest // nil: the current request is short, as far as known
	copied  bool              // the last complete request was long
}

// read continues with in. It takes n bytes, even if the request is incomplete.
// Then want is the number of bytes that must follow them before read can
// continue; otherwise want is 0.
//
// The arguments of a short request alias in, and their list uses args. The
// arguments of a long request have their own memory.
func (r *requestReader) read(in []byte, args [][]byte, lim resp.Limits) (out [][]byte, n, want int, err error) {
	r.copied = false
	if r.long == nil {
		out, n, want, err = r.partial.Read(in, args, lim)
		if err != nil || n > 0 || !resp.IsLong(in, want) {
			return out, n, want, err
		}
		r.partial = resp.PartialRequest{}
		r.long = new(resp.LongRequest)
	}
	out, n, want, err = r.long.Read(in, lim)
	if err == nil && want == 0 {
		r.long, r.copied = nil, true
	}
	return out, n, want, err
}

// size returns the minimum memory of the current request, once as many bytes as
// read wants have arrived.
func (r *requestReader) size(want int) int {
	if r.long == nil {
		return want
	}
	return r.long.Size() + want
}

const (
	// minDirect is the least number of missing bytes of a long argument for
	// which a separate receive pays.
	minDirect = 64 << 10
	// maxDirect bounds what one connection receives in a turn.
	maxDirect = 512 << 10
)

// awaitMore makes conn receive the next bytes of a long argument straight into
// the argument's memory, if they are many. Call it in Data after Data has taken
// all input.
func (r *requestReader) awaitMore(conn *rondo.Conn) {
	if r.long == nil {
		return
	}
	wire := bridge.Of(conn)
	if room := r.long.Room(); len(room) >= minDirect && !wire.Receiving() {
		wire.ReceiveInto(room[:min(len(room), maxDirect)])
	}
}
