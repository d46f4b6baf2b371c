package sys

import "time"

// Traffic is what a TCP socket has carried since it was connected, as the system counts:
// whoever has sent and received.
type Traffic struct {
	In, Out uint64        // bytes; of Out those that the peer has acknowledged
	Idle    time.Duration // since the last byte in either direction
}
