package redis

import (
	"math"
	"testing"
)

func TestAddIntOverflow(t *testing.T) {
	for _, c := range []struct {
		a, b int64
		ok   bool
	}{
		{1, 2, true}, {1, -2, true}, {0, 0, true}, {5, 0, true}, {-5, 0, true},
		{math.MaxInt64, 1, false}, {math.MaxInt64, 0, true}, {math.MaxInt64 - 1, 1, true},
		{math.MinInt64, -1, false}, {math.MinInt64, 1, true}, {math.MinInt64, 0, true},
		{math.MinInt64, math.MaxInt64, true}, {-1, math.MinInt64, false},
		{math.MinInt64, math.MinInt64, false}, {math.MaxInt64, math.MaxInt64, false},
	} {
		if got, ok := addInt(c.a, c.b); ok != c.ok || ok && got != c.a+c.b {
			t.Errorf("addInt(%d, %d) = %d, %v", c.a, c.b, got, ok)
		}
	}
}
