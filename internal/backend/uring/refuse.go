//go:build linux

package uring

import (
	"errors"
	"fmt"
	"os"
	"runtime"
	"strings"
	"sync"
	"syscall"

	"golang.org/x/sys/unix"
)

// minKernel is the first version with everything that is needed:
// IORING_SETUP_DEFER_TASKRUN is the latest of it.
const minKernel = "Linux 6.1"

// refused tells why the system would not do call.
func refused(call string, err error) error {
	var why string
	switch {
	case errors.Is(err, unix.ENOSYS):
		why = "the kernel has no io_uring, or a seccomp filter (as containers have) hides it"
	case errors.Is(err, unix.EPERM) || errors.Is(err, unix.EACCES):
		if why = disabledBySysctl(); why == "" {
			why = "a seccomp filter (as containers have) or a security module forbids io_uring"
		}
	case errors.Is(err, unix.EINVAL):
		why = "the kernel is too old, it takes " + minKernel
	case errors.Is(err, unix.ENOMEM):
		why = "there is no memory for it, or the limit of locked memory is too low (ulimit -l)"
	case errors.Is(err, unix.EMFILE) || errors.Is(err, unix.ENFILE):
		why = "there are too many open files (ulimit -n)"
	default:
		return fmt.Errorf("io_uring: %w", os.NewSyscallError(call, err))
	}
	return fmt.Errorf("io_uring: %w: %s", os.NewSyscallError(call, err), why)
}

// disabledBySysctl is empty if the system's settings are not the reason.
func disabledBySysctl() string {
	const path = "/proc/sys/kernel/io_uring_disabled"
	setting, err := os.ReadFile(path)
	if err != nil {
		return ""
	}
	switch strings.TrimSpace(string(setting)) {
	case "1":
		return "the setting kernel.io_uring_disabled is 1: only root and the group of kernel.io_uring_group may use it"
	case "2":
		return "the setting kernel.io_uring_disabled is 2: nobody may use it"
	}
	return ""
}

// usable tells whether the kernel has what is relied on.
func (r *ring) usable() error {
	const needed = featSingleMmap | featNoDrop | featSubmitStable | featExtArg | featCQESkip
	if r.features&needed != needed {
		return refused("io_uring_setup", unix.EINVAL)
	}
	// A filter may let the setup pass and forbid the rest. The ring is disabled:
	// if the call gets as far as the kernel, that is its answer.
	if err := r.enter(0); !errors.Is(err, unix.EBADFD) {
		return refused("io_uring_enter", errors.Unwrap(err))
	}
	return nil
}

// canLimit reports whether the kernel can limit what a multishot receive brings:
// Linux 6.17. Older ones take the field for another one, which must be zero.
var canLimit = sync.OnceValue(func() bool {
	runtime.LockOSThread()
	defer runtime.UnlockOSThread()
	r, err := newRing(1, 2)
	if err != nil {
		return false
	}
	defer r.close()
	s := r.next()
	s.opcode, s.flags, s.fd, s.ioprio, s.optLen = opRecv, sqeBufferSelect, -1, recvMultishot, 1
	if r.register(registerEnableRings, nil, 0) != nil || r.look() != nil || !r.completed() {
		return false
	}
	return syscall.Errno(-r.completion().res) == unix.EBADF
})
