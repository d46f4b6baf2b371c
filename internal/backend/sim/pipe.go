package sim

import "github.com/rondo-go/rondo/internal/backend"

// A pipe carries bytes from src to dst. buf holds, in this order:
//
//	[0, head)                read; to be overwritten
//	[head, head+arrived)     readable by dst
//	[head+arrived, len(buf)) under way, cut into segs
//
// At most limit bytes are written and unread at a time: that is the backpressure.
type pipe struct {
	net      *Network
	src, dst *end
	limit    int
	rand     random

	buf     []byte
	head    int
	arrived int
	segs    []segment
	last    backend.Time // when the last segment arrives, to keep the order
	ended   bool         // the end of the stream has arrived

	armed   bool // an arrival is on the agenda
	wanted  bool // src waits for room
	opening bool // news of room is on its way to src
}

// A segment arrives as a whole.
type segment struct {
	at backend.Time
	n  int // bytes, or endOfStream
}

const endOfStream = -1

func (p *pipe) room() int { return p.limit - (len(p.buf) - p.head) }

// write takes as many bytes as there is room for.
func (p *pipe) write(b []byte) int {
	n := max(0, min(len(b), p.room()))
	p.buf = append(p.buf, b[:n]...)
	for rest := n; rest > 0; {
		size := p.cut(rest)
		p.post(size)
		rest -= size
	}
	return n
}

// finish ends the stream after the bytes written.
func (p *pipe) finish() { p.post(endOfStream) }

// cut decides how many of n bytes travel together: a few, some or all.
func (p *pipe) cut(n int) int {
	if !p.rand.chance(p.net.opt.Fragment) {
		return n
	}
	if p.rand.next()&1 == 0 {
		n = min(n, 8)
	}
	return 1 + p.rand.intn(n)
}

func (p *pipe) post(n int) {
	p.last = max(p.last, p.net.now.Add(p.net.latency(&p.rand)))
	p.segs = append(p.segs, segment{p.last, n})
	p.arm()
}

func (p *pipe) arm() {
	if !p.armed && len(p.segs) > 0 {
		p.armed = true
		p.net.agenda.add(p.segs[0].at, p)
	}
}

// fire delivers the segments that are due.
func (p *pipe) fire() {
	p.armed = false
	p.net.loopTurns = 0
	taken := 0
	for _, s := range p.segs {
		if s.at > p.net.now {
			break
		}
		taken++
		p.net.note(Event{What: "arrival", Socket: p.dst.id, N: s.n})
		switch {
		case s.n == endOfStream:
			p.ended = true
		case p.dst.closed:
			p.clear()
			p.dst.sendReset()
			return
		case p.rand.chance(p.net.opt.Faults.Reset):
			p.src.breakOff()
			p.dst.breakOff()
			return
		default:
			p.arrived += s.n
		}
	}
	p.segs = append(p.segs[:0], p.segs[taken:]...)
	p.arm()
	p.dst.changed()
}

// read returns arrived bytes.
func (p *pipe) read(b []byte) int {
	n := copy(b, p.buf[p.head:p.head+p.arrived])
	p.head += n
	p.arrived -= n
	switch {
	case p.head == len(p.buf):
		p.buf, p.head = p.buf[:0], 0
	case p.head >= 4096 && p.head >= len(p.buf)/2:
		p.buf = p.buf[:copy(p.buf, p.buf[p.head:])]
		p.head = 0
	}
	if n > 0 && p.wanted {
		p.announceRoom()
	}
	return n
}

// announceRoom tells src, after the latency back, to continue sending.
func (p *pipe) announceRoom() {
	if !p.opening {
		p.opening = true
		p.net.agenda.add(p.net.now.Add(p.net.latency(&p.rand)), (*roomNews)(p))
	}
}

// roomNews is a pipe as the event that src hears of room.
type roomNews pipe

func (r *roomNews) fire() {
	r.opening, r.wanted = false, false
	r.src.changed()
}

// drop discards the bytes under way.
func (p *pipe) drop() {
	p.buf = p.buf[:p.head+p.arrived]
	p.segs = p.segs[:0]
}

// clear discards everything.
func (p *pipe) clear() {
	p.buf, p.head, p.arrived, p.segs = nil, 0, 0, nil
}
