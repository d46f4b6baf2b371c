//go:build linux || darwin || freebsd || dragonfly

package sys

import (
	"io"
	"os"

	"golang.org/x/sys/unix"

	"github.com/rondo-go/rondo/internal/backend"
)

// sendFile is sendfile(2). done is false if the bytes must be read and sent instead. n is
// less than size with a nil err if the socket is full.
func sendFile(fd, from int, offset int64, size int) (n int, done bool, err error) {
	for {
		at := offset
		switch n, err = unix.Sendfile(fd, from, &at, size); {
		case n > 0: // macOS and FreeBSD may also return an error, which comes again
			return n, true, nil
		case err == unix.EINTR:
		case err == unix.EAGAIN:
			return 0, true, nil
		case err == nil:
			return 0, true, &backend.SourceError{Err: io.ErrUnexpectedEOF}
		case cannotSend(err):
			return 0, false, nil
		default:
			return 0, true, os.NewSyscallError("sendfile", err)
		}
	}
}
