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

// minKernel is the first version with all required features. The latest of them is
// IORING_SETUP_DEFER_TASKRUN.
const minKernel = "Linux 6.1"

// refused adds to err the reason why the system refused call.
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
		why = "the kernel is too old: this backend needs " + minKernel + " or later"
	case errors.Is(err, unix.ENOMEM):
		why = "there is too little memory, or the limit of locked memory is too low: raise ulimit -l"
	case errors.Is(err, unix.EMFILE) || errors.Is(err, unix.ENFILE):
		why = "too many files are open: raise ulimit -n"
	default:
		return fmt.Errorf("io_uring: %w", os.NewSyscallError(call, err))
	}
	return fmt.Errorf("io_uring: %w: %s", os.NewSyscallError(call, err), why)
}

// disabledBySysctl explains a refusal by the system's settings. It returns "" if they
// allow io_uring.
func disabledBySysctl() string {
	const path = "/proc/sys/kernel/io_uring_disabled"
	setting, err := os.ReadFile(path)
	if err != nil {
		return ""
	}
	switch strings.TrimSpace(string(setting)) {
	case "1":
		return "the setting kernel.io_uring_disabled is 1: only root and members of kernel.io_uring_group may use io_uring"
	case "2":
		return "the setting kernel.io_uring_disabled is 2: nobody may use io_uring; set it to 0"
	}
	return ""
}

// usable returns an error if the kernel lacks a required feature.
func (r *ring) usable() error {
	const needed = featSingleMmap | featNoDrop | featSubmitStable | featExtArg | featCQESkip
	if r.features&needed != needed {
		return refused("io_uring_setup", unix.EINVAL)
	}
	// A filter may allow the setup and forbid the rest. The ring is still disabled, so
	// EBADFD shows that the call reached the kernel.
	if err := r.enter(0); !errors.Is(err, unix.EBADFD) {
		return refused("io_uring_enter", errors.Unwrap(err))
	}
	return nil
}

// canLimit reports whether the kernel can limit a multishot receive to a number of
// bytes (Linux 6.17). Older kernels require zero in that field.
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
