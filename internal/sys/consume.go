package sys

// Consume drops the first n bytes of bufs, and empty buffers, from the front: what
// SendVec and its like have sent. What it drops it also forgets.
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
