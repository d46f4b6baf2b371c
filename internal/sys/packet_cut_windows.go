package sys

import (
	"errors"

	"golang.org/x/sys/windows"
)

// cut reports whether a datagram was truncated, and returns the remaining error.
func cut(_ int, err error) (bool, error) {
	if errors.Is(err, windows.WSAEMSGSIZE) {
		return true, nil
	}
	return false, err
}
