package load

import (
	"math"
	"testing"
)

// The numbers of a picker are as frequent as its law says.
func TestPicker(t *testing.T) {
	const n, draws = 1000, 400_000
	for _, s := range []float64{0, 1.01, 2} {
		p, again := newPicker(7, n, s), newPicker(7, n, s)
		counts := make([]int, n)
		for range draws {
			k := p.next()
			if other := again.next(); k != other {
				t.Fatalf("exponent %v: one picker chose %d, another with the same seed %d", s, k, other)
			}
			counts[k]++
		}
		sum := 0.0
		for k := range n {
			sum += math.Pow(float64(k+1), -s)
		}
		for _, k := range []int{0, 1, 9} {
			want := draws * math.Pow(float64(k+1), -s) / sum
			if math.Abs(float64(counts[k])-want) > 6*math.Sqrt(want) {
				t.Errorf("exponent %v: %d was chosen %d times of %d, want about %.0f", s, k, counts[k], draws, want)
			}
		}
	}
}
