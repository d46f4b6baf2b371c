package main

import (
	"runtime/debug"
	"runtime/metrics"
	"time"
)

// Go collects garbage when the program has allocated as much as it uses, and
// otherwise every two minutes; and returns memory to the system slowly. A server
// that was busy and then is idle would keep what its clients took for minutes. So
// the program collects, and returns all that is free, when it has done something
// since the last collection and Go has not collected for a moment.
const (
	// lookPause is how often memory is looked at.
	lookPause = time.Second
	// keepBytes is how much memory is not worth the trouble.
	keepBytes = 32 << 20
	// pausePerWork is how many times as long as the last collection took there is
	// none: it bounds what they cost.
	pausePerWork = 20
	// maxPause is how long there is none after several that were of no use.
	maxPause = 10 * time.Second
)

// returnMemory has memory returned to the system that the program does not use
// any more, for ever. active is a count that changes when the program does
// something.
func returnMemory(active func() uint64) {
	r := returner{active: active, read: readMemory, collect: debug.FreeOSMemory}
	for now := range time.Tick(lookPause) {
		r.look(now)
	}
}

// memory is what the Go runtime tells.
type memory struct {
	held   uint64  // bytes taken from the system and not returned
	cycles uint64  // collections so far
	work   float64 // processor time they took, in seconds
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

	seen   uint64        // what active said when the last collection began
	cycles uint64        // at the last look
	pause  time.Duration // after a collection of no use
	after  time.Time     // there is no collection before
}

// look collects if that may be worth it.
func (r *returner) look(now time.Time) {
	m := r.read()
	busy := m.cycles != r.cycles // Go collects by itself
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
