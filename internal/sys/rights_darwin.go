package sys

// The runtime ignores the signals of sockets. macOS has no flag for close-on-exec.
const (
	rightsSendFlags = 0
	rightsFlags     = 0
)
