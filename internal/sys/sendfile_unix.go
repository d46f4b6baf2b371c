//go:build unix

package sys

import (
	"os"
	"sync"

	"golang.org/x/sys/unix"

	"github.com/rondo-go/rondo/internal/backend"
)

// SendFile is Send for the bytes of a Source behind the first sent ones. It blocks while the
// system reads them from a disk. shared says that another holder of the socket may have made
// it blocking: sendfile(2) has no flag against that.
func SendFile(fd int, shared bool, s *backend.Source, sent int) (n int, err error) {
	if shared {
		keepNonblocking(fd)
	}
	raw, err := s.File.SyscallConn()
	if err != nil {
		return 0, &backend.SourceError{Err: err}
	}
	offset, done := s.Offset+int64(sent), false
	closed := raw.Control(func(from uintptr) { // which keeps the file from being closed
		n, done, err = sendFile(fd, int(from), offset, s.Count-sent)
	})
	switch {
	case closed != nil:
		return 0, &backend.SourceError{Err: os.ErrClosed}
	case done:
		return n, err
	}
	return copyFile(fd, s, sent)
}

// copyFile is SendFile where the system cannot send from this file.
func copyFile(fd int, s *backend.Source, sent int) (n int, err error) {
	p := pieces.Get().(*[backend.SourcePiece]byte)
	defer pieces.Put(p)
	k, err := s.Read(p[:], sent)
	if err != nil {
		return 0, err
	}
	return Send(fd, p[:k])
}

var pieces = sync.Pool{New: func() any { return new([backend.SourcePiece]byte) }}

// cannotSend reports whether an error of sendfile(2) says that it does not know such a file
// or socket. An error of the file itself shows again when it is read.
func cannotSend(err error) bool {
	switch err {
	case unix.EINVAL, unix.ENOSYS, unix.EOPNOTSUPP, unix.ENOTSOCK, unix.EIO, unix.EBADF, unix.EISDIR,
		unix.ESPIPE, unix.EOVERFLOW, unix.ENXIO, unix.EPERM, unix.EACCES:
		return true
	}
	return false
}
