package main

import "slices"

// quantile of values that are in order, which are at least one, by linear
// interpolation between the nearest two (as R's default, type 7).
func quantile(ordered []float64, q float64) float64 {
	at := q * float64(len(ordered)-1)
	i := int(at)
	if i+1 >= len(ordered) {
		return ordered[len(ordered)-1]
	}
	return ordered[i] + (at-float64(i))*(ordered[i+1]-ordered[i])
}

// quartiles of values: half of them lie between low and high. All are 0 for none.
func quartiles(values []float64) (low, median, high float64) {
	if len(values) == 0 {
		return 0, 0, 0
	}
	v := slices.Sorted(slices.Values(values))
	return quantile(v, 0.25), quantile(v, 0.5), quantile(v, 0.75)
}

// pairedRatios are the ratios of values to base in the same repetition, the key.
// Runs of one repetition are neighbours in time, so what slows the machine for a
// while slows both.
func pairedRatios(values, base map[int]float64) []float64 {
	var ratios []float64
	for repetition, v := range values {
		if b := base[repetition]; b > 0 && v > 0 {
			ratios = append(ratios, v/b)
		}
	}
	return ratios
}
