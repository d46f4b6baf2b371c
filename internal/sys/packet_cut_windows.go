package sys

import (
	"errors"

	"golang.org/x/sys/windows"
)

// cut tells whether a datagram was longer than the memory for it, and the error
// that is left then.
func cut(_ int, err error) (bool, error) {
	if errors.Is(err, windows.WSAEMSGSIZE) {
		return true, nil
	}
	return false, err
}
