package sys

import (
	"errors"
	"fmt"

	"github.com/rondo-go/rondo/internal/backend"
)

// ReusePortBalances tells whether the system shares connections out among the
// listeners that have one address: here an address is one listener's.
const ReusePortBalances = false

func beforeBind(_ uintptr, _ string, s *backend.Socket) error {
	if s.ReusePort {
		return fmt.Errorf("SO_REUSEPORT on Windows: %w", errors.ErrUnsupported)
	}
	return nil
}
