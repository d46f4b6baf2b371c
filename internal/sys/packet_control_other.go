//go:build !linux

package sys

import (
	"net/netip"

	"github.com/rondo-go/rondo/internal/backend"
)

// ControlSize is the size of the memory for control messages. On these systems we
// request none.
const ControlSize = 0

func parseControl([]byte, *backend.Packet) {}

func pathControl([]byte, bool, netip.Addr, int) []byte { return nil }
