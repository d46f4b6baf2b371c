//go:build unix && !freebsd

package sys

import "golang.org/x/sys/unix"

// reusePort lets several listeners have one address. Linux and DragonFly share
// connections out among them; macOS, NetBSD and OpenBSD give them all to one.
const reusePort = unix.SO_REUSEPORT
