package sim

import (
	"os"
	"strconv"
	"testing"
)

// seeds returns how many seeds to try: RONDO_SEEDS, or else few.
func seeds(few int) uint64 {
	if n, err := strconv.ParseUint(os.Getenv("RONDO_SEEDS"), 10, 32); err == nil {
		return n
	}
	if testing.Short() {
		return uint64(few+9) / 10
	}
	return uint64(few)
}

// Seeds is seeds, for tests in package sim_test.
var Seeds = seeds
