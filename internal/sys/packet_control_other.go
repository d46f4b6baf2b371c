//go:build !linux

package sys

import (
	"net/netip"

	"github.com/rondo-go/rondo/internal/backend"
)

// ControlSize is the memory for control messages, of which these systems are
// asked for none.
const ControlSize = 0

func parseControl([]byte, *backend.Packet) {}

func pathControl([]byte, bool, netip.Addr, int) []byte { return nil }
