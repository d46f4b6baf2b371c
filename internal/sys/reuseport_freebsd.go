package sys

import "golang.org/x/sys/unix"

// ReusePortBalances tells whether the system shares connections out among the
// listeners that have one address.
const ReusePortBalances = true

// reusePort is the option that does so: FreeBSD's SO_REUSEPORT gives them all to
// one listener.
const reusePort = unix.SO_REUSEPORT_LB
