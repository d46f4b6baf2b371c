package main

import (
	"slices"
	"testing"
)

func TestQuartiles(t *testing.T) {
	for _, c := range []struct {
		values            []float64
		low, median, high float64
	}{
		{nil, 0, 0, 0},
		{[]float64{7}, 7, 7, 7},
		{[]float64{9, 1, 5}, 3, 5, 7},
		{[]float64{4, 1, 3, 2}, 1.75, 2.5, 3.25},
		{[]float64{50, 10, 40, 20, 30}, 20, 30, 40},
	} {
		if low, median, high := quartiles(c.values); low != c.low || median != c.median || high != c.high {
			t.Errorf("quartiles(%v) = %v, %v, %v, want %v, %v, %v", c.values, low, median, high, c.low, c.median, c.high)
		}
	}
	values := []float64{3, 1, 2}
	if quartiles(values); values[0] != 3 {
		t.Error("quartiles reordered its argument")
	}
}

func TestPairedRatios(t *testing.T) {
	// The machine was half as fast in repetition 1. Ratios of medians would
	// say 1.4.
	base := map[int]float64{0: 100, 1: 50, 2: 100}
	got := slices.Sorted(slices.Values(pairedRatios(map[int]float64{0: 140, 1: 60, 2: 120}, base)))
	if want := []float64{1.2, 1.2, 1.4}; !slices.Equal(got, want) {
		t.Errorf("pairedRatios = %v, want %v", got, want)
	}
	if got := pairedRatios(map[int]float64{3: 1}, base); len(got) != 0 {
		t.Errorf("without a common repetition: %v, want none", got)
	}
	if got := pairedRatios(map[int]float64{0: 200, 3: 1}, base); !slices.Equal(got, []float64{2}) {
		t.Errorf("with one common repetition: %v, want 2", got)
	}
}

func TestEven(t *testing.T) {
	for _, c := range []struct {
		ratios []float64
		want   bool
	}{
		{[]float64{0.98, 1.01, 1.03}, true},
		{[]float64{1.01, 1.02, 1.03}, false},
		{[]float64{0.9, 0.91, 0.92, 0.93, 1.3}, false},
	} {
		var m middle
		m.set(cpu, c.ratios)
		if got := m.even(cpu); got != c.want {
			t.Errorf("ratios %v: even = %v", c.ratios, got)
		}
	}
}
