package main

import "slices"

// median of values; the mean of the middle two for an even number, 0 for none.
func median(values []float64) float64 {
	if len(values) == 0 {
		return 0
	}
	v := slices.Sorted(slices.Values(values))
	mid := len(v) / 2
	if len(v)%2 == 0 {
		return (v[mid-1] + v[mid]) / 2
	}
	return v[mid]
}

// spread is how far values lie apart, as a share of their median.
func spread(values []float64) float64 {
	m := median(values)
	if m == 0 {
		return 0
	}
	return (slices.Max(values) - slices.Min(values)) / m
}

// pairedRatio is the median of the ratios of values to base in the same
// repetition, the key. Runs of one repetition are neighbours in time, so what
// slows the machine for a while slows both. It is 0 where nothing pairs.
func pairedRatio(values, base map[int]float64) float64 {
	var ratios []float64
	for repetition, v := range values {
		if b := base[repetition]; b > 0 && v > 0 {
			ratios = append(ratios, v/b)
		}
	}
	return median(ratios)
}
