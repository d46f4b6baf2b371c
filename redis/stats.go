package redis

import (
	"strings"

	"github.com/rondo-go/rondo/redis/acl"
)

// stats holds the numbers that only INFO uses.
type stats struct {
	commands    int64
	connections int64
	rejected    int64
	errors      map[string]int64 // by error code
	totalErrors int64
	evicted     int64

	evictedClients int64

	denied [acl.DeniedChannel + 1]int64

	peakMemory  int64
	freedBefore int64 // values that were freed before the last CONFIG RESETSTAT
	ops         rate
	input       rate
	output      rate
}

func (s *stats) init() { s.errors = make(map[string]int64) }

const (
	// maxCodes is the number of error codes that are counted each by itself: commands of an
	// embedder may make codes of what a client sends.
	maxCodes = 128
	// maxCode is the most bytes of a code.
	maxCode = 30
	// otherCodes stands for all further ones.
	otherCodes = "ERRORSTATS_OVERFLOW"
)

// countError counts an error reply by its code. As in Redis, what does not begin with a short
// word counts as ERR: it may be a long text of a client.
func (s *stats) countError(text string) {
	code, _, ok := strings.Cut(text[:min(len(text), maxCode+1)], " ")
	if !ok {
		code = "ERR"
	}
	s.totalErrors++
	if _, known := s.errors[code]; !known {
		if code = strings.Clone(code); len(s.errors) >= maxCodes {
			code = otherCodes
		}
	}
	s.errors[code]++
}

// reset implements CONFIG RESETSTAT.
func (s *stats) reset() {
	*s = stats{peakMemory: s.peakMemory}
	s.init()
}

// rateSamples is the number of ticks over which a rate is averaged.
const rateSamples = 16

// rate is the recent growth of a count, per second.
type rate struct {
	last     int64              // the count at lastTime
	lastTime int64              // milliseconds
	samples  [rateSamples]int64 // growth per second
	next     int
}

func (r *rate) sample(count, now int64) {
	perSecond := int64(0)
	if elapsed := now - r.lastTime; elapsed > 0 && r.lastTime > 0 && count >= r.last {
		perSecond = (count - r.last) * 1000 / elapsed
	}
	r.last, r.lastTime = count, now
	r.samples[r.next] = perSecond
	r.next = (r.next + 1) % rateSamples
}

func (r *rate) average() int64 {
	sum := int64(0)
	for _, n := range r.samples {
		sum += n
	}
	return sum / rateSamples
}

// sample measures the rates. It reports whether a command has run since the
// last call.
func (s *stats) sample(server *Server) bool {
	now := server.space.now
	busy := s.commands != s.ops.last
	engine := server.Engine.Stats()
	s.ops.sample(s.commands, now)
	s.input.sample(int64(engine.BytesIn), now)
	s.output.sample(int64(engine.BytesOut), now)
	s.peakMemory = max(s.peakMemory, server.usedMemory())
	return busy
}
