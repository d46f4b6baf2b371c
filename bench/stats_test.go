package main

import (
	"math"
	"math/rand/v2"
	"testing"
)

// TestBootstrapCovers draws ratios whose median is known: about 95 of 100 intervals
// must hold it.
func TestBootstrapCovers(t *testing.T) {
	random := rand.New(rand.NewPCG(3, 4))
	const samples = 400
	held := 0
	for range samples {
		ratios := make([]float64, 12)
		for i := range ratios {
			ratios[i] = 1 + 0.1*random.NormFloat64()
		}
		if r := bootstrapped(ratios); r.Low <= 1 && 1 <= r.High {
			held++
		}
	}
	if share := float64(held) / samples; share < 0.90 || share > 0.99 {
		t.Errorf("%.3f of the intervals hold the median", share)
	}
}

func TestRatio(t *testing.T) {
	same := bootstrapped([]float64{1.02, 1.02, 1.02, 1.02, 1.02})
	if same.Median != 1.02 || same.Low != 1.02 || same.High != 1.02 || !same.differs() || same.vague() {
		t.Errorf("equal ratios: %+v", same)
	}
	vague := bootstrapped([]float64{0.7, 0.9, 1, 1.1, 1.3})
	if vague.differs() || !vague.vague() || vague.String()[0] != '~' {
		t.Errorf("ratios that differ: %v", vague)
	}
	if again := bootstrapped([]float64{0.7, 0.9, 1, 1.1, 1.3}); again != vague {
		t.Errorf("the same ratios give %v and %v", vague, again)
	}
	if none := bootstrapped(nil); none.String() != "-" {
		t.Errorf("no ratios: %v", none)
	}
	if m := median([]float64{4, 1, 3, 2}); m != 2.5 {
		t.Errorf("median %v, want 2.5", m)
	}
}

// TestBeside: high percentiles, which are skewed, favour neither side of a pair of servers that are the same.
func TestBeside(t *testing.T) {
	random := rand.New(rand.NewPCG(1, 2))
	one := func() timed {
		skewed := math.Exp(math.Exp(random.NormFloat64()))
		return timed{figures: figures{"p99": skewed}}
	}
	var inner, outer []float64
	for range 20_000 {
		inner = append(inner, one().figures["p99"])
		outer = append(outer, beside("p99", [2]timed{one(), one()})...)
	}
	if r := median(outer) / median(inner); math.Abs(r-1) > 0.05 {
		t.Errorf("the outer side's median is %.2f of the inner side's", r)
	}
	if b := beside("cpu", [2]timed{{figures: figures{"cpu": 2}}, {figures: figures{"cpu": 8}}}); len(b) != 1 || b[0] != 4 {
		t.Errorf("CPU time beside 2 and 8: %v", b)
	}
}
