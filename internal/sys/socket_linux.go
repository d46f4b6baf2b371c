package sys

import (
	"net"
	"os"
	"syscall"
	"unsafe"

	"golang.org/x/sys/unix"
)

// The calls below do not block either, on sockets that do not linger, but take long:
// over loopback they also run the peer's side of the kernel, and its answer. In a
// Syscall that is long enough for the scheduler to take the goroutine's processor away
// and wake a thread for it.

func connect(fd int, to net.Addr) error {
	tcp, ok := to.(*net.TCPAddr)
	if !ok {
		sa, _, err := sockaddr(to)
		if err != nil {
			return err
		}
		return unix.Connect(fd, sa)
	}
	ip := ipOf(tcp)
	if ip.Is4() {
		sa := unix.RawSockaddrInet4{Family: unix.AF_INET, Addr: ip.As4()}
		setBigEndian(&sa.Port, uint16(tcp.Port))
		return rawConnect(fd, unsafe.Pointer(&sa), unix.SizeofSockaddrInet4)
	}
	sa := unix.RawSockaddrInet6{Family: unix.AF_INET6, Addr: ip.As16()}
	if tcp.Zone != "" {
		sa.Scope_id = zoneID(tcp.Zone)
	}
	setBigEndian(&sa.Port, uint16(tcp.Port))
	return rawConnect(fd, unsafe.Pointer(&sa), unix.SizeofSockaddrInet6)
}

func rawConnect(fd int, sa unsafe.Pointer, size uintptr) error {
	if _, _, e := syscall.RawSyscall(unix.SYS_CONNECT, uintptr(fd), uintptr(sa), size); e != 0 {
		return e
	}
	return nil
}

// ShutdownWrite closes fd's sending direction.
func ShutdownWrite(fd int) error {
	if _, _, e := syscall.RawSyscall(unix.SYS_SHUTDOWN, uintptr(fd), unix.SHUT_WR, 0); e != 0 {
		return os.NewSyscallError("shutdown", e)
	}
	return nil
}

// CloseReset closes fd so that a TCP peer sees a reset.
func CloseReset(fd int) error {
	linger := unix.Linger{Onoff: 1}
	// This fails if fd is not TCP, which has no reset; then Close is a plain close.
	syscall.RawSyscall6(unix.SYS_SETSOCKOPT, uintptr(fd), unix.SOL_SOCKET, unix.SO_LINGER, uintptr(unsafe.Pointer(&linger)), unix.SizeofLinger, 0)
	return Close(fd)
}

// Close closes fd.
func Close(fd int) error {
	if _, _, e := syscall.RawSyscall(unix.SYS_CLOSE, uintptr(fd), 0, 0); e != 0 {
		return os.NewSyscallError("close", e)
	}
	return nil
}
