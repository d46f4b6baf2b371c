//go:build unix

package sys

import (
	"errors"
	"os"
	"syscall"

	"golang.org/x/sys/unix"
)

// maxRights is the most descriptors in one message, on Linux, where it is highest.
const maxRights = 253

// RightsRoom is the most bytes of control data with a message.
var RightsRoom = unix.CmsgSpace(maxRights * 4)

var (
	// ErrBusy: the system accepts no descriptors now, because too many are in flight.
	ErrBusy = errors.New("too many descriptors are in flight: send again later")
	// ErrRightsLost: descriptors arrived that exceeded the process's limit.
	ErrRightsLost = errors.New("descriptors were lost because too many files are open: raise RLIMIT_NOFILE")
)

// SendRights sends bytes over a unix socket, and descriptors with the first byte. It
// does not block: it returns 0, nil if it would.
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

// RecvRights receives bytes and the descriptors that came with them, close-on-exec.
// control must have room for RightsRoom bytes. again says that it would block;
// otherwise 0 bytes are the end of the stream.
func RecvRights(fd int, p, control []byte) (n int, rights []int, again bool, err error) {
	syscall.ForkLock.RLock() // without MSG_CMSG_CLOEXEC a fork could inherit the descriptors
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
