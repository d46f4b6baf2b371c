//go:build !race

package sys

// Race tells whether the race detector is on.
const Race = false
