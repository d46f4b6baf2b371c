package websocket

import (
	"time"

	"github.com/rondo-go/rondo"
)

// shared is what the connections of a loop share.
type shared struct {
	loop      *rondo.Loop
	began     time.Time
	waits     map[time.Duration]*waits
	spare     [][]byte // for messages that arrive in pieces
	scratch   []byte   // for a frame that is being written
	inflater  inflater
	inflated  int // bytes of compressed messages in the present call of Data
	deflaters deflaters
}

var perLoop = rondo.LoopLocal[*shared]{New: func(l *rondo.Loop) *shared {
	return &shared{loop: l, began: l.Now(), waits: make(map[time.Duration]*waits)}
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

// wait is a Conn's place in a list.
type wait struct {
	list       *waits // nil: it waits for nothing
	next, prev *Conn
	due        time.Duration // since shared.began
}

// waits are the connections of a loop that wait for the same time. The one that began first
// is due first. So a list needs no order but that of coming, and one timer.
type waits struct {
	shared      *shared
	time        time.Duration
	first, last *Conn
	timer       *rondo.Timer
	armed       bool
}

// wait calls c.tick once, after d, in place of what c waited for. 0: never.
func (s *shared) wait(c *Conn, d time.Duration) {
	c.waits.leave(c)
	if d <= 0 {
		return
	}
	l := s.waits[d]
	if l == nil {
		l = &waits{shared: s, time: d}
		s.waits[d] = l
	}
	l.add(c)
}

func (s *shared) now() time.Duration { return s.loop.Now().Sub(s.began) }

func (l *waits) add(c *Conn) {
	w := &c.waits
	w.list, w.due, w.prev = l, l.shared.now()+l.time, l.last
	if l.last != nil {
		l.last.waits.next = c
	} else {
		l.first = c
	}
	l.last = c
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

func (w *wait) leave(c *Conn) {
	l := w.list
	if l == nil {
		return
	}
	if w.prev != nil {
		w.prev.waits.next = w.next
	} else {
		l.first = w.next
	}
	if w.next != nil {
		w.next.waits.prev = w.prev
	} else {
		l.last = w.prev
	}
	*w = wait{}
}

// ticksPerTurn bounds how many connections a turn may look at.
const ticksPerTurn = 1000

// fire calls tick of the connections that are due. They leave the list before.
func (l *waits) fire() {
	defer l.rearm() // even if a tick panics
	now := l.shared.now()
	for range ticksPerTurn {
		c := l.first
		if c == nil || c.waits.due > now {
			return
		}
		c.waits.leave(c)
		c.tick()
	}
}

// rearm sets the timer, which has fired, for the first connection.
func (l *waits) rearm() {
	if l.armed = l.first != nil; l.armed {
		l.timer.Reset(max(0, l.first.waits.due-l.shared.now()))
	}
}
