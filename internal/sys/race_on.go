//go:build race

package sys

// Race reports whether the race detector is on.
const Race = true
