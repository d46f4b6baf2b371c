package sys

// setKeepAliveIdle does nothing: OpenBSD has no such option for one socket.
func setKeepAliveIdle(fd, seconds int) error { return nil }

// keepAliveOptions are none: see setKeepAliveIdle.
var keepAliveOptions []option
