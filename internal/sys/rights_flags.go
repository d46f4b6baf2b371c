//go:build dragonfly || freebsd || linux || netbsd || openbsd

package sys

import "golang.org/x/sys/unix"

const (
	rightsSendFlags = unix.MSG_NOSIGNAL
	rightsFlags     = unix.MSG_CMSG_CLOEXEC
)
