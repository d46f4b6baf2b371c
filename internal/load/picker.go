package load

import (
	"math/bits"
	"math/rand/v2"
)

// A picker chooses random numbers below n. Pickers with the same seed choose
// the same numbers. So a connection need not store what it asked for until the
// reply arrives.
type picker struct {
	random *rand.PCG
	n      uint64
	zipf   *rand.Zipf // nil: all numbers are equally likely
}

// newPicker makes a picker. With exponent s > 1 the k-th number is chosen in
// proportion to 1/(k+1)^s, by Zipf's law; with 0 all are equally likely.
func newPicker(seed, n int, s float64) *picker {
	p := &picker{random: rand.NewPCG(uint64(seed), 0x9e3779b97f4a7c15), n: uint64(n)}
	if s > 1 {
		p.zipf = rand.NewZipf(rand.New(p.random), s, 1, p.n-1)
	}
	return p
}

func (p *picker) next() int {
	if p.zipf != nil {
		return int(p.zipf.Uint64())
	}
	hi, _ := bits.Mul64(p.random.Uint64(), p.n)
	return int(hi)
}
