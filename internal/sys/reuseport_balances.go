//go:build linux || dragonfly

package sys

import "golang.org/x/sys/unix"

// ReusePortBalances reports whether the system distributes connections among listeners
// that share an address.
const ReusePortBalances = true

const reusePort = unix.SO_REUSEPORT
