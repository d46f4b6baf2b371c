package sys

import "golang.org/x/sys/unix"

// ReusePortBalances reports whether the system distributes connections among listeners
// that share an address.
const ReusePortBalances = true

// reusePort is the option that distributes. FreeBSD's SO_REUSEPORT gives all
// connections to one listener.
const reusePort = unix.SO_REUSEPORT_LB
