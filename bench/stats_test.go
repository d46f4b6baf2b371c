package main

import "testing"

func TestMedian(t *testing.T) {
	for _, c := range []struct {
		values []float64
		want   float64
	}{
		{nil, 0},
		{[]float64{7}, 7},
		{[]float64{9, 1, 5}, 5},
		{[]float64{4, 1, 3, 2}, 2.5},
	} {
		if got := median(c.values); got != c.want {
			t.Errorf("median(%v) = %v, want %v", c.values, got, c.want)
		}
	}
	values := []float64{3, 1, 2}
	if median(values); values[0] != 3 {
		t.Error("median reordered its argument")
	}
}

func TestSpread(t *testing.T) {
	if got := spread([]float64{90, 100, 120}); got != 0.3 {
		t.Errorf("spread = %v, want 0.3", got)
	}
	if got := spread(nil); got != 0 {
		t.Errorf("spread of nothing = %v, want 0", got)
	}
}

func TestPairedRatio(t *testing.T) {
	// The machine was half as fast in repetition 1. Ratios of medians would
	// say 1.4.
	base := map[int]float64{0: 100, 1: 50, 2: 100}
	values := map[int]float64{0: 140, 1: 60, 2: 120}
	if got := pairedRatio(values, base); got != 1.2 {
		t.Errorf("pairedRatio = %v, want 1.2", got)
	}
	if got := pairedRatio(map[int]float64{3: 1}, base); got != 0 {
		t.Errorf("without a common repetition: %v, want 0", got)
	}
	if got := pairedRatio(map[int]float64{0: 200, 3: 1}, base); got != 2 {
		t.Errorf("with one common repetition: %v, want 2", got)
	}
}
