package randomuser

import (
	"bytes"
	"fmt"
	"sync"
)

// A stream is one direction of a connection. The oracle knows what was written and
// checks what is read. The bytes are a pattern that shows their position. Recall drops
// an unknown part of them: then a new epoch starts, with another pattern.
type stream struct {
	mu      sync.Mutex
	name    string
	id      int
	written []int // bytes in each epoch
	byRef   any   // the goroutine that writes it by Refs; nil: the connection's loop writes
	writing bool  // a write is running
	failed  bool  // a write failed: where a later one would begin is not known
	ended   bool  // the writer closed its connection in order
	torn    bool  // or not: then the reader may miss the end
	why     string
	reading []place // possible positions of the reader
	read    int
}

// A place is a position in a stream.
type place struct{ epoch, at int }

const noiseLen = 1 << 20

var noise = func() []byte {
	b := make([]byte, 2*noiseLen)
	x := uint64(1)
	for i := range noiseLen {
		x = x*6364136223846793005 + 1442695040888963407
		b[i] = byte(x >> 56)
	}
	copy(b[noiseLen:], b)
	return b
}()

func newStream(name string, id int) *stream {
	return &stream{name: name, id: id, written: []int{0}, reading: []place{{0, 0}}}
}

// pattern returns n bytes of the pattern at a place. Do not write to them.
func (s *stream) pattern(p place, n int) []byte {
	i := (s.id*7919 + p.epoch*104729 + p.at) % noiseLen
	return noise[i : i+n : i+n]
}

// write makes f write n bytes, and returns how many were accepted. The reader may have
// them before f returns. A write inside another one's f, as in a release function,
// writes nothing: its position in the stream is not defined. Nor does one after a write that
// failed, as writes do from AbortUnsentAt's time on, until that is moved.
func (s *stream) write(n int, f func(p []byte) int) {
	s.mu.Lock()
	if s.writing || s.failed {
		n = 0
	}
	e := len(s.written) - 1
	p := s.pattern(place{e, s.written[e]}, n)
	if n > 0 {
		s.writing = true
		s.written[e] += n
	}
	s.mu.Unlock()
	accepted := -1
	defer func() {
		s.mu.Lock()
		defer s.mu.Unlock()
		switch {
		case n == 0:
			return
		case accepted < 0: // Goexit unwound it: the count is unknown, and it is the last write
			s.torn, s.why = true, "a write did not return"
		default:
			s.written[e] -= n - accepted
		}
		s.writing = false
	}()
	accepted = f(p)
}

// outside is the writer by Refs that is on no loop.
const outside = "outside"

// claim makes by the writer of the stream unless there is another one. It reports
// whether by is the writer.
func (s *stream) claim(by any) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.byRef == nil && len(s.written) == 1 && s.written[0] == 0 {
		s.byRef = by
	}
	return s.byRef == by
}

// recalled starts a new epoch.
func (s *stream) recalled() {
	s.mu.Lock()
	defer s.mu.Unlock()
	if e := len(s.written) - 1; s.written[e] > 0 {
		s.written = append(s.written, 0)
	}
}

// tear records that the reader may miss the end.
func (s *stream) tear(why string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if !s.torn {
		s.torn, s.why = true, why
	}
}

// fail records that a write failed, and nobody knows how much of it the reader gets.
func (s *stream) fail() {
	s.tear("a write failed")
	s.mu.Lock()
	defer s.mu.Unlock()
	s.failed = true
}

func (s *stream) isTorn() bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.torn
}

func (s *stream) end() {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.ended = true
}

// offered checks the bytes given to a reader, and takes the first n of them as read.
func (s *stream) offered(p []byte, n int) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	if _, err := s.match(p); err != nil {
		return err
	}
	if n > 0 {
		s.reading, _ = s.match(p[:n])
		s.read += n
	}
	return nil
}

// match returns the possible positions of the reader after p.
func (s *stream) match(p []byte) ([]place, error) {
	last := len(s.written) - 1
	if len(s.reading) == 1 && s.reading[0].epoch == last {
		at := s.reading[0]
		if at.at+len(p) > s.written[last] {
			return nil, fmt.Errorf("%s: the reader is given %d bytes from %d on, of %d that were written", s.name, len(p), at.at, s.written[last])
		}
		for q, base := p, at; len(q) > 0; {
			n := min(len(q), noiseLen)
			if want := s.pattern(base, n); !bytes.Equal(q[:n], want) {
				i := 0
				for q[i] == want[i] {
					i++
				}
				return nil, fmt.Errorf("%s: byte %d is not what was written there (%d were, the reader is at %d)", s.name, base.at+i, s.written[last], at.at)
			}
			q, base.at = q[n:], base.at+n
		}
		return []place{{at.epoch, at.at + len(p)}}, nil
	}
	return s.matchEpochs(p)
}

// matchEpochs is match where bytes at the end of an epoch may have been dropped.
func (s *stream) matchEpochs(p []byte) ([]place, error) {
	now := s.reading
	for i, b := range p {
		var next []place
		seen := make(map[place]bool)
		try := func(at place) {
			if at.at < s.written[at.epoch] && !seen[at] && s.pattern(at, 1)[0] == b {
				seen[at] = true
				next = append(next, place{at.epoch, at.at + 1})
			}
		}
		for _, at := range now {
			try(at)
			for e := at.epoch + 1; e < len(s.written); e++ {
				try(place{e, 0})
			}
		}
		if len(next) == 0 {
			return nil, fmt.Errorf("%s: byte %d of %d is nowhere in what was written (epochs %v, the reader is at %v)", s.name, i, len(p), s.written, s.reading)
		}
		now = next
	}
	return now, nil
}

// missing returns an error if a reader that saw the end lacks bytes of a stream that
// ended in order.
func (s *stream) missing() error {
	s.mu.Lock()
	defer s.mu.Unlock()
	if !s.ended || s.torn || len(s.written) > 1 || s.refs() || s.read == s.written[0] {
		return nil
	}
	return fmt.Errorf("%s: the connection was closed in order, and its peer got %d bytes of %d", s.name, s.read, s.written[0])
}

// refs reports whether the stream is written by Refs: then posted bytes may be lost at
// the end.
func (s *stream) refs() bool {
	_, loop := s.byRef.(*conn)
	return s.byRef != nil && !loop
}
