package httpd

import "sync/atomic"

// Stats counts what a Server has done.
type Stats struct {
	// Conns is how many connections the server has, without those that were hijacked.
	Conns int
	// Requests counts the requests that have begun, and InProgress is how many have not ended.
	Requests   uint64
	InProgress int
	// Answers counts the ended requests of HTTP/1 by the class of their status: Answers[2] those
	// of 200 to 299. Answers[0] counts those without a status, since the handler has panicked.
	Answers [6]uint64
	// Malformed counts connections that ended because what they sent is no request, or breaks a
	// limit. It is no part of Requests.
	Malformed uint64
	// Hijacked counts requests by which the connection was taken over, as by a WebSocket.
	Hijacked uint64
	// HTTP2 counts those of Requests that came by HTTP/2. Their status is net/http's alone.
	HTTP2 uint64
	// BytesIn and BytesOut count bytes of the bodies of HTTP/1, without their framing.
	BytesIn, BytesOut uint64
}

// counts are the counts of some loops.
type counts struct {
	begun, ended      atomic.Uint64
	answers           [6]atomic.Uint64
	malformed         atomic.Uint64
	hijacked, http2   atomic.Uint64
	bytesIn, bytesOut atomic.Uint64
}

// Stats returns the counts. Any goroutine may call it at any time. It does not wait for the loops
// and handlers; what happens meanwhile may be missing in some of the counts.
func (s *Server) Stats() (all Stats) {
	ended := uint64(0)
	s.counts.All(func(c *counts) {
		ended += c.ended.Load()
		for i := range c.answers {
			all.Answers[i] += c.answers[i].Load()
		}
		all.Malformed += c.malformed.Load()
		all.Hijacked += c.hijacked.Load()
		all.HTTP2 += c.http2.Load()
		all.BytesIn += c.bytesIn.Load()
		all.BytesOut += c.bytesOut.Load()
		all.Requests += c.begun.Load() // after ended, so that InProgress is not negative
	})
	all.InProgress = int(all.Requests - ended)
	all.Conns = int(s.open.Load())
	return all
}

// countEnd counts the end of a request, whose handler has returned.
func (x *exchange) countEnd() {
	n := x.conn.loop.counts
	n.ended.Add(1)
	if x.hijacked.Load() {
		n.hijacked.Add(1)
		return
	}
	n.answers[min(x.status/100, len(n.answers)-1)].Add(1)
	sent := x.written
	if x.length >= 0 {
		sent = min(sent, x.length) // a Write beyond it has failed
	}
	if sent > 0 && x.req.Method != "HEAD" {
		n.bytesOut.Add(uint64(sent))
	}
}
