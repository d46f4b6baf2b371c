// Package suite runs gaio's own test suite against rondo's compat/gaio: see
// run.sh.
package suite

import (
	_ "github.com/rondo-go/rondo/compat/gaio" // the package under test
	_ "github.com/xtaci/gaio"                 // the tests
)
