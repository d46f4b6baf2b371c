//go:build linux || dragonfly

package sys

import "golang.org/x/sys/unix"

// ReusePortBalances tells whether the system shares connections out among the
// listeners that have one address.
const ReusePortBalances = true

const reusePort = unix.SO_REUSEPORT
