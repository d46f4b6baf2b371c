package load

import (
	"math/bits"
	"math/rand/v2"
)

// A picker chooses random numbers below n. Pickers with the same seed choose
// the same numbers. So a connection need not store what it asked for until the
// reply arrives.
type picker struct {
	random rand.PCG
	n      uint64
}

func newPicker(seed, n int) *picker {
	return &picker{*rand.NewPCG(uint64(seed), 0x9e3779b97f4a7c15), uint64(n)}
}

func (p *picker) next() int {
	hi, _ := bits.Mul64(p.random.Uint64(), p.n)
	return int(hi)
}
