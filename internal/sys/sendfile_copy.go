//go:build unix && !linux && !darwin && !freebsd && !dragonfly

package sys

// sendFile does nothing: the system has no sendfile(2), or x/sys/unix does not know it.
func sendFile(fd, from int, offset int64, size int) (n int, done bool, err error) {
	return 0, false, nil
}
