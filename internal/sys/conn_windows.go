package sys

import (
	"errors"
	"fmt"
	"net"
)

// NetConn fails: no backend on Windows has descriptors.
func NetConn(fd int) (net.Conn, error) {
	return nil, fmt.Errorf("connection of descriptor %d: %w", fd, errors.ErrUnsupported)
}
