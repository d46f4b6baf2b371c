package main

import (
	"log/slog"
	"runtime/debug"
	"runtime/metrics"
	"time"
)

// Go collects garbage when the program has allocated as much as it uses, and otherwise every
// two minutes. It returns memory to the system slowly. A server that was busy and becomes idle
// would keep the memory of its clients for minutes. So the program collects garbage itself, and
// returns all free memory, if it has done something since the last collection and Go has not
// just collected.
const (
	// lookPause is the interval between looks at the memory.
	lookPause = time.Second
	// keepBytes is the amount of memory below which a collection is not worth
	// it.
	keepBytes = 32 << 20
	// pausePerWork is the minimum pause after a collection, as a multiple of
	// the collection's duration. It bounds the cost of collections.
	pausePerWork = 20
	// maxPause is the longest pause after useless collections.
	maxPause = 10 * time.Second
)

// returnMemory returns unused memory to the system, for ever, and keeps Go's memory within a
// container's limit. active returns a count that changes when the program does something.
func returnMemory(log *slog.Logger, active func() uint64) {
	r := returner{active: active, read: readMemory, collect: debug.FreeOSMemory, limit: newHeapLimit(log)}
	if r.limit != nil {
		r.limit.adjust(r.read().held)
	}
	for now := range time.Tick(lookPause) {
		r.look(now)
	}
}

// memory holds the Go runtime's figures.
type memory struct {
	held   uint64  // bytes taken from the system and not returned
	cycles uint64  // collections so far
	work   float64 // processor time of collections, in seconds
}

func readMemory() memory {
	samples := []metrics.Sample{
		{Name: "/memory/classes/total:bytes"}, {Name: "/memory/classes/heap/released:bytes"}, {Name: "/gc/cycles/total:gc-cycles"},
		{Name: "/cpu/classes/gc/total:cpu-seconds"},
	}
	metrics.Read(samples)
	return memory{
		held:   samples[0].Value.Uint64() - samples[1].Value.Uint64(),
		cycles: samples[2].Value.Uint64(),
		work:   samples[3].Value.Float64(),
	}
}

// returner decides when to collect.
type returner struct {
	active  func() uint64
	read    func() memory
	collect func()
	limit   *heapLimit // nil: there is none

	seen   uint64        // the result of active when the last collection began
	cycles uint64        // at the last look
	pause  time.Duration // after useless collections
	after  time.Time     // when the next collection may begin
}

// look collects if that may be worth it.
func (r *returner) look(now time.Time) {
	m := r.read()
	if r.limit != nil {
		r.limit.adjust(m.held)
	}
	busy := m.cycles != r.cycles // Go has just collected
	r.cycles = m.cycles
	active := r.active()
	if busy || m.held < keepBytes || active == r.seen || now.Before(r.after) {
		return
	}
	r.seen = active
	r.collect()
	left := r.read()
	took := time.Duration((left.work - m.work) * float64(time.Second))
	r.cycles = left.cycles
	if left.held > m.held-m.held/8 {
		r.pause = min(max(2*r.pause, lookPause), maxPause)
	} else {
		r.pause = 0
	}
	r.after = now.Add(max(r.pause, pausePerWork*took))
}
