package sys

// Consume removes the first n bytes of bufs, and empty buffers, from the front.
// SendVec's callers use it for the bytes sent. It clears removed buffers.
func Consume(bufs [][]byte, n int) [][]byte {
	for len(bufs) > 0 && n >= len(bufs[0]) {
		n -= len(bufs[0])
		bufs[0] = nil
		bufs = bufs[1:]
	}
	if n > 0 {
		bufs[0] = bufs[0][n:]
	}
	return bufs
}
