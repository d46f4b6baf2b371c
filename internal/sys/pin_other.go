//go:build !linux

package sys

import (
	"fmt"
	"runtime"
)

// PinThread fails: only Linux has it.
func PinThread(cpu int) error {
	return fmt.Errorf("threads cannot be pinned on %s", runtime.GOOS)
}
