package sys

import "golang.org/x/sys/unix"

// reusePort is the option that shares connections out among listeners:
// FreeBSD's SO_REUSEPORT gives them all to one.
const reusePort = unix.SO_REUSEPORT_LB
