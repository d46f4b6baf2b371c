package sys

import (
	"errors"
	"fmt"

	"github.com/rondo-go/rondo/internal/backend"
)

// ReusePortBalances reports whether the system distributes connections among listeners
// that share an address. Windows lets only one listener have an address.
const ReusePortBalances = false

func beforeBind(_ uintptr, _ string, s *backend.Socket) error {
	if s.ReusePort {
		return fmt.Errorf("SO_REUSEPORT on Windows: %w", errors.ErrUnsupported)
	}
	return nil
}
