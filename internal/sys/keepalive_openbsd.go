package sys

// setKeepAliveIdle does nothing: OpenBSD has no such option for a single socket.
func setKeepAliveIdle(fd, seconds int) error { return nil }

// keepAliveOptions is empty: see setKeepAliveIdle.
var keepAliveOptions []option
