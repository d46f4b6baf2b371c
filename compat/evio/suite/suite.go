// Package suite names what evio's own test suite needs when it is run against
// rondo's compat/evio (see run.sh), and compares the two, event by event.
package suite

import (
	_ "github.com/rondo-go/rondo/compat/evio" // what is tested
	_ "github.com/tidwall/evio"               // whose tests test it, and with which it is compared
)
