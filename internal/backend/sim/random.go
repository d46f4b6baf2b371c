package sim

import (
	"math/bits"
	"time"
)

// random is SplitMix64. The code is here, because a seed must give the same run on
// every platform and with every version of Go.
type random uint64

func (r *random) next() uint64 {
	*r += 0x9e3779b97f4a7c15
	return mix(uint64(*r))
}

// mix is SplitMix64's finalizer: every bit of x affects every bit of the result.
func mix(x uint64) uint64 {
	x = (x ^ x>>30) * 0xbf58476d1ce4e5b9
	x = (x ^ x>>27) * 0x94d049bb133111eb
	return x ^ x>>31
}

// fork returns an independent source, so that the calls of one part of the network do
// not change what another part gets.
func (r *random) fork() random { return random(r.next()) }

// below returns a number from 0 to n-1.
func (r *random) below(n uint64) uint64 {
	hi, _ := bits.Mul64(r.next(), n)
	return hi
}

// intn returns a number from 0 to n-1.
func (r *random) intn(n int) int { return int(r.below(uint64(n))) }

// chance returns true with probability p.
func (r *random) chance(p float64) bool {
	return p > 0 && float64(r.next()>>11) < p*(1<<53)
}

// between returns a duration from lo to hi.
func (r *random) between(lo, hi time.Duration) time.Duration {
	if hi <= lo {
		return lo
	}
	return lo + time.Duration(r.below(uint64(hi-lo)+1))
}
