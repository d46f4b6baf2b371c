//go:build darwin || netbsd || openbsd

package sys

import "golang.org/x/sys/unix"

// ReusePortBalances tells whether the system shares connections out among the
// listeners that have one address: these give them all to one listener.
const ReusePortBalances = false

const reusePort = unix.SO_REUSEPORT
