// Package suite runs evio v0.1.0's own test suite and its examples on rondo's
// compat/evio2017/v0 (see run.sh).
package suite

import (
	_ "github.com/rondo-go/rondo/compat/evio2017/v0" // the package under test
	_ "github.com/tidwall/evio"                      // the tests and examples
	_ "github.com/tidwall/redcon"                    // for the example redis-server
)
