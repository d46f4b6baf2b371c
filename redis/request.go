package redis

import (
	"github.com/rondo-go/rondo"
	"github.com/rondo-go/rondo/internal/bridge"
	"github.com/rondo-go/rondo/resp"
)

// requestReader reads a connection's requests: a short one where it was
// received, a long one into memory of its own, piece by piece.
type requestReader struct {
	partial resp.PartialRequest
	long    *resp.LongRequest // nil: the request at hand is short, as far as known
	copied  bool              // the last request that was complete was a long one
}

// read reads on. It takes n bytes of in, also if the request is not complete:
// then want, which is 0 otherwise, is how many bytes must follow those n for
// there to be more to read.
//
// The arguments of a short request alias in and have args for their list; those
// of a long one have memory of their own.
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

// size is how much memory the request at hand takes at least, when as many bytes
// as read wants have come.
func (r *requestReader) size(want int) int {
	if r.long == nil {
		return want
	}
	return r.long.Size() + want
}

const (
	// minDirect is how much of a long argument must be to come for it to be worth
	// a receive that brings nothing else.
	minDirect = 64 << 10
	// maxDirect bounds what one connection receives in a turn.
	maxDirect = 512 << 10
)

// awaitMore has conn receive the next bytes of a long argument to where they stay,
// if they are many. It is called in Data, which has taken all input.
func (r *requestReader) awaitMore(conn *rondo.Conn) {
	if r.long == nil {
		return
	}
	wire := bridge.Of(conn)
	if room := r.long.Room(); len(room) >= minDirect && !wire.Receiving() {
		wire.ReceiveInto(room[:min(len(room), maxDirect)])
	}
}
