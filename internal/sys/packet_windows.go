package sys

import (
	"errors"
	"fmt"
	"syscall"

	"golang.org/x/sys/windows"

	"github.com/rondo-go/rondo/internal/backend"
)

// descriptor is package syscall's type of a descriptor.
type descriptor = syscall.Handle

func beforeBindPacket(_ uintptr, _ string, s *backend.Socket) error { return beforeBind(0, "", s) }

func packetOptions(fd uintptr, _ string, _ bool, s *backend.Socket) error { return SetBuffers(fd, s) }

// SetBuffers sets the sizes of a socket's buffers.
func SetBuffers(fd uintptr, s *backend.Socket) error {
	set := func(name string, option, value int) error {
		if value <= 0 {
			return nil
		}
		if err := windows.SetsockoptInt(windows.Handle(fd), windows.SOL_SOCKET, option, value); err != nil {
			return fmt.Errorf("setsockopt %s: %w", name, err)
		}
		return nil
	}
	return errors.Join(set("SO_RCVBUF", windows.SO_RCVBUF, s.RecvBuffer), set("SO_SNDBUF", windows.SO_SNDBUF, s.SendBuffer))
}
