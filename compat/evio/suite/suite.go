// Package suite runs evio's own test suite against rondo's compat/evio (see
// run.sh), and compares the two, event by event.
package suite

import (
	_ "github.com/rondo-go/rondo/compat/evio" // the package under test
	_ "github.com/tidwall/evio"               // the tests, and the original to compare with
)
