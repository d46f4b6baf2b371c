package websocket

import (
	"time"

	"github.com/rondo-go/rondo"
)

// shared is what the connections of a loop share.
type shared struct {
	loop      *rondo.Loop
	id        int // of loop
	began     time.Time
	waits     map[time.Duration]*waits
	spare     [][]byte // for messages that arrive in pieces
	spareRare []*rare
	scratch   []byte // for a frame that is being written
	inflater  inflater
	inflated  int     // bytes of compressed messages in the present turn
	held      []*Conn // until the end of the turn
	ending    bool    // endTurn will be called
	endTurn   func()
	deflaters deflaters
}

var perLoop = rondo.LoopLocal[*shared]{New: func(l *rondo.Loop) *shared {
	s := &shared{loop: l, id: l.ID(), began: l.Now(), waits: make(map[time.Duration]*waits)}
	s.endTurn = s.release
	return s
}}

const (
	maxSpare     = 8         // buffers
	maxSpareSize = 256 << 10 // of a buffer that is kept
	minMessage   = 512
)

// room returns an empty buffer for n bytes. It is valid until the next call.
func (s *shared) room(n int) []byte {
	if cap(s.scratch) >= n {
		return s.scratch[:0]
	}
	b := make([]byte, 0, n)
	if n <= maxSpareSize {
		s.scratch = b
	}
	return b
}

// extend appends p to a message that is kept. left more bytes were announced: the buffer
// grows to at most four times of what has arrived, whatever was announced.
func (s *shared) extend(message, p []byte, left int) []byte {
	size := len(message) + len(p)
	if cap(message) < size {
		room := max(minMessage, size)
		room = max(room, min(4*room, size+left), min(2*cap(message), maxGrowth))
		grown := s.take(room)
		grown = append(grown, message...)
		s.free(message)
		message = grown
	}
	return append(message, p...)
}

// maxGrowth bounds what doubling a buffer adds to it.
const maxGrowth = 16 << 20

// take returns an empty buffer for n bytes.
func (s *shared) take(n int) []byte {
	for i := len(s.spare) - 1; i >= 0; i-- {
		if b := s.spare[i]; cap(b) >= n && cap(b) <= 8*n {
			last := len(s.spare) - 1
			s.spare[i], s.spare[last] = s.spare[last], nil
			s.spare = s.spare[:last]
			return b
		}
	}
	return make([]byte, 0, n)
}

// free takes back a buffer of take or extend.
func (s *shared) free(b []byte) {
	if cap(b) >= minMessage && cap(b) <= maxSpareSize && len(s.spare) < maxSpare {
		s.spare = append(s.spare, b[:0])
	}
}

// takeRare returns an empty rare.
func (s *shared) takeRare() *rare {
	if n := len(s.spareRare); n > 0 {
		r := s.spareRare[n-1]
		s.spareRare = s.spareRare[:n-1]
		return r
	}
	return new(rare)
}

// freeRare takes back what takeRare returned.
func (s *shared) freeRare(r *rare) {
	if len(s.spareRare) < maxSpare {
		*r = rare{}
		s.spareRare = append(s.spareRare, r)
	}
}

// countInflated counts bytes of compressed messages until the end of the turn.
func (s *shared) countInflated(n int) {
	s.inflated += n
	s.awaitTurn()
}

// hold pauses c until the end of the turn: the next one offers what has arrived. It is not read
// meanwhile, or more and more would wait.
func (s *shared) hold(c *Conn) {
	c.raw.Pause()
	s.held = append(s.held, c)
	s.awaitTurn()
}

// awaitTurn has release called at the end of the turn.
func (s *shared) awaitTurn() {
	if !s.ending {
		s.ending = true
		s.loop.Defer(s.endTurn)
	}
}

// release ends a turn.
func (s *shared) release() {
	s.ending, s.inflated = false, 0
	for _, c := range s.held {
		if !c.paused {
			c.raw.Resume()
		}
	}
	clear(s.held)
	s.held = s.held[:0]
}

// wait is a Conn's place in a list.
type wait struct {
	conn       *Conn
	list       *waits
	next, prev *wait
	due        time.Duration // since shared.began
}

// waits are the connections of a loop that wait for the same time. The one that began first
// is due first. So a list needs no order but that of coming, and one timer.
type waits struct {
	shared      *shared
	time        time.Duration
	first, last *wait
	timer       *rondo.Timer
	armed       bool
}

// wait calls c.tick once, after d, in place of what c waited for. 0: never.
func (s *shared) wait(c *Conn, d time.Duration) {
	w := c.wait
	if w != nil {
		w.leave()
	}
	if d <= 0 {
		c.wait = nil
		return
	}
	l := s.waits[d]
	if l == nil {
		l = &waits{shared: s, time: d}
		s.waits[d] = l
	}
	if w == nil {
		w = &wait{conn: c}
		c.wait = w
	}
	l.add(w)
}

func (s *shared) now() time.Duration { return s.loop.Now().Sub(s.began) }

func (l *waits) add(w *wait) {
	w.list, w.due, w.prev = l, l.shared.now()+l.time, l.last
	if l.last != nil {
		l.last.next = w
	} else {
		l.first = w
	}
	l.last = w
	if l.armed {
		return
	}
	l.armed = true
	if l.timer == nil {
		l.timer = l.shared.loop.AfterFunc(l.time, l.fire)
	} else {
		l.timer.Reset(l.time)
	}
}

// leave takes w out of its list, if it is in one.
func (w *wait) leave() {
	l := w.list
	if l == nil {
		return
	}
	if w.prev != nil {
		w.prev.next = w.next
	} else {
		l.first = w.next
	}
	if w.next != nil {
		w.next.prev = w.prev
	} else {
		l.last = w.prev
	}
	w.list, w.next, w.prev = nil, nil, nil
}

// ticksPerTurn bounds how many connections a turn may look at.
const ticksPerTurn = 1000

// fire calls tick of the connections that are due. They leave the list before.
func (l *waits) fire() {
	defer l.rearm() // even if a tick panics
	now := l.shared.now()
	for range ticksPerTurn {
		w := l.first
		if w == nil || w.due > now {
			return
		}
		w.leave()
		w.conn.tick()
	}
}

// rearm sets the timer, which has fired, for the first connection.
func (l *waits) rearm() {
	if l.armed = l.first != nil; l.armed {
		l.timer.Reset(max(0, l.first.due-l.shared.now()))
	}
}
