//go:build !linux

package sys

import (
	"fmt"
	"runtime"
)

// PinThread fails: it exists on Linux only.
func PinThread(cpu int) error {
	return fmt.Errorf("threads cannot be pinned on %s", runtime.GOOS)
}
