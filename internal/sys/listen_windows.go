package sys

import (
	"errors"

	"github.com/rondo-go/rondo/internal/backend"
)

func beforeBind(_ uintptr, _ string, s *backend.Socket) error {
	if s.ReusePort {
		return errors.New("SO_REUSEPORT does not exist on Windows: choose another Balance")
	}
	return nil
}
