package filter

import (
	"sync/atomic"

	"github.com/rondo-go/rondo"
)

// Count counts the bytes that pass its Filter, which may stand next to the wire or inside
// TLS. A Count serves one connection, or all of a server's. Any goroutine may read it.
type Count struct {
	In, Out atomic.Int64 // In: from the peer, Out: to the peer
}

// Filter is a rondo.FilterOpenFunc that counts into n.
func (n *Count) Filter(*rondo.Conn) rondo.Filter { return &counter{count: n} }

type counter struct {
	rondo.PassThrough
	count *Count
}

func (f *counter) Inbound(s *rondo.FilterPort, in []byte) (int, error) {
	f.count.In.Add(int64(len(in)))
	return f.PassThrough.Inbound(s, in)
}

func (f *counter) Outbound(s *rondo.FilterPort, out []byte) error {
	f.count.Out.Add(int64(len(out)))
	return f.PassThrough.Outbound(s, out)
}
