package redis

import (
	"math"
	"math/big"
	"math/rand/v2"
	"testing"
)

// bigSin returns the sine of x, or its cosine, with 300 bits.
func bigSin(x float64, cosine bool) *big.Float {
	number := func(f float64) *big.Float { return new(big.Float).SetPrec(300).SetFloat64(f) }
	square := new(big.Float).Mul(number(x), number(x))
	term, n := number(x), 1.0
	if cosine {
		term, n = number(1), 0
	}
	sum := new(big.Float).Copy(term)
	for ; n < 200; n += 2 {
		term.Mul(term, square)
		term.Quo(term, number(-(n+1)*(n+2)))
		sum.Add(sum, term)
	}
	return sum
}

// The precise functions return the nearest float64.
func TestPrecise(t *testing.T) {
	rng := rand.New(rand.NewPCG(1, 1))
	args := []float64{0, 1e-300, 1e-9, math.Pi / 4, math.Pi / 2, math.Pi, -math.Pi, 3 * math.Pi / 4}
	for range 1500 {
		args = append(args, (rng.Float64()*2-1)*math.Pi, math.Exp(-20*rng.Float64()))
	}
	for _, x := range args {
		if want, _ := bigSin(x, false).Float64(); preciseSin(x) != want {
			t.Errorf("sin(%v) is %v, want %v", x, preciseSin(x), want)
		}
		if want, _ := bigSin(x, true).Float64(); preciseCos(x) != want {
			t.Errorf("cos(%v) is %v, want %v", x, preciseCos(x), want)
		}
		if x >= 0 && x <= 1 {
			y := preciseAsin(x)
			miss := func(y float64) float64 {
				d, _ := new(big.Float).Sub(bigSin(y, false), big.NewFloat(x)).Float64()
				return math.Abs(d)
			}
			if miss(math.Nextafter(y, 2)) < miss(y) || miss(math.Nextafter(y, -1)) < miss(y) {
				t.Errorf("asin(%v) is %v: a neighbor is nearer", x, y)
			}
		}
	}
}

func BenchmarkPreciseDistance(b *testing.B) {
	p, q := geoPoint{13.361389, 38.115556}, geoPoint{15.087269, 37.502669}
	for range b.N {
		p.preciseDistance(q)
	}
}
