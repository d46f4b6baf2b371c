//go:build unix

package sys

import (
	"errors"
	"os"
	"syscall"

	"golang.org/x/sys/unix"
)

// maxRights is how many descriptors a message can carry, on Linux, where it is most.
const maxRights = 253

// RightsRoom is how many bytes of control data a message may come with.
var RightsRoom = unix.CmsgSpace(maxRights * 4)

var (
	// ErrBusy is that the system takes no descriptors now: too many are on their way.
	ErrBusy = errors.New("too many descriptors are under way")
	// ErrRightsLost is that descriptors came for which this process had no room.
	ErrRightsLost = errors.New("descriptors were lost: the process may not open so many files (RLIMIT_NOFILE)")
)

// SendRights sends bytes, and with the first of them descriptors, over a unix
// socket. It does not wait: 0, nil: it would block.
func SendRights(fd int, p []byte, rights []int) (int, error) {
	var control []byte
	if len(rights) > 0 {
		control = unix.UnixRights(rights...)
	}
	for {
		n, err := unix.SendmsgN(fd, p, control, nil, rightsSendFlags|unix.MSG_DONTWAIT)
		switch err {
		case nil:
			return n, nil
		case unix.EINTR:
		case unix.EAGAIN:
			return 0, nil
		case unix.ETOOMANYREFS, unix.ENOBUFS, unix.ENOMEM:
			return 0, ErrBusy
		default:
			return 0, os.NewSyscallError("sendmsg", err)
		}
	}
}

// RecvRights receives bytes, and the descriptors that came with them, close-on-exec.
// control is room for RightsRoom bytes. again: it would block; else 0 bytes are the end.
func RecvRights(fd int, p, control []byte) (n int, rights []int, again bool, err error) {
	syscall.ForkLock.RLock() // where they are not close-on-exec from the beginning
	n, controlled, flags, _, err := unix.Recvmsg(fd, p, control, rightsFlags|unix.MSG_DONTWAIT)
	for err == unix.EINTR {
		n, controlled, flags, _, err = unix.Recvmsg(fd, p, control, rightsFlags|unix.MSG_DONTWAIT)
	}
	if err == nil {
		rights, err = readRights(control[:controlled])
	}
	if rightsFlags == 0 {
		for _, r := range rights {
			unix.CloseOnExec(r)
		}
	}
	syscall.ForkLock.RUnlock()
	switch {
	case err == unix.EAGAIN:
		return 0, nil, true, nil
	case err == nil && flags&unix.MSG_CTRUNC != 0:
		err = ErrRightsLost
	case err != nil:
		err = os.NewSyscallError("recvmsg", err)
	}
	return n, rights, false, err
}

func readRights(control []byte) (rights []int, err error) {
	messages, err := unix.ParseSocketControlMessage(control)
	for i := range messages {
		if m := &messages[i]; m.Header.Level == unix.SOL_SOCKET && m.Header.Type == unix.SCM_RIGHTS {
			some, failed := unix.ParseUnixRights(m)
			rights, err = append(rights, some...), errors.Join(err, failed)
		}
	}
	return rights, err
}
