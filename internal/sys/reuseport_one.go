//go:build darwin || netbsd || openbsd

package sys

import "golang.org/x/sys/unix"

// ReusePortBalances reports whether the system distributes connections among listeners
// that share an address. These systems give all connections to one listener.
const ReusePortBalances = false

const reusePort = unix.SO_REUSEPORT
