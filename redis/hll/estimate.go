package hll

import "math"

// A histogram counts the registers of each rank.
type histogram [1 << rankBits]int

// topRank is the highest rank of Hash. A dense HyperLogLog of another source may have
// higher ones.
const topRank = 64 - indexBits + 1

// estimate is the estimator of Otmar Ertl, "New cardinality estimation algorithms for
// HyperLogLog sketches" (arXiv:1702.01284), in the order of operations that Redis has: all
// factors but that of tau's sum are powers of 2, so a fused multiplication and addition
// gives the same.
func (h *histogram) estimate() int64 {
	const (
		m     = Registers
		alpha = 0.721347520444481703680 // 0.5/ln(2)
	)
	z := m * tau(float64(m-h[topRank])/m)
	for rank := topRank - 1; rank >= 1; rank-- {
		z = (z + float64(h[rank])) * 0.5
	}
	z += m * sigma(float64(h[0])/m)
	e := math.Round(alpha * m * m / z)
	if !(e < 1<<63) {
		return math.MinInt64 // what C makes of it
	}
	return int64(e)
}

// sigma corrects the registers of rank 0.
func sigma(x float64) float64 {
	if x == 1 {
		return math.Inf(1)
	}
	y, z := 1.0, x
	for {
		x *= x
		old := z
		z += x * y
		y += y
		if z == old {
			return z
		}
	}
}

// tau corrects the registers of the top rank.
func tau(x float64) float64 {
	if x == 0 || x == 1 {
		return 0
	}
	y, z := 1.0, 1-x
	for {
		x = math.Sqrt(x)
		old := z
		y *= 0.5
		z -= float64((1-x)*(1-x)) * y
		if z == old {
			return z / 3
		}
	}
}
