package sys

import (
	"errors"
	"fmt"
	"os"
	"syscall"
)

// RightsRoom is 0: Windows passes no descriptors.
const RightsRoom = 0

var (
	ErrBusy      = errors.New("busy")
	errNoPassing = fmt.Errorf("descriptors cannot be passed on Windows: %w", errors.ErrUnsupported)
)

// SendRights fails.
func SendRights(int, []byte, []int) (int, error) { return 0, errNoPassing }

// RecvRights fails.
func RecvRights(int, []byte, []byte) (n int, rights []int, again bool, err error) {
	return 0, nil, false, errNoPassing
}

// Duplicate fails.
func Duplicate(syscall.Conn) (int, error) { return -1, errNoPassing }

// DuplicateFile fails.
func DuplicateFile(uintptr) (*os.File, error) { return nil, errNoPassing }
