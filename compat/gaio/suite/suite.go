// Package suite names what gaio's own test suite needs when it is run against
// rondo's compat/gaio: see run.sh.
package suite

import (
	_ "github.com/rondo-go/rondo/compat/gaio" // what is tested
	_ "github.com/xtaci/gaio"                 // whose tests test it
)
