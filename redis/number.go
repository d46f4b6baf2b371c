package redis

import (
	"math"
	"strconv"

	"github.com/rondo-go/rondo/resp"
)

func appendInt(b []byte, n int64) []byte { return strconv.AppendInt(b, n, 10) }

// addInt returns a+b; ok is false if that overflows.
func addInt(a, b int64) (sum int64, ok bool) {
	sum = a + b
	return sum, (sum < a) == (b < 0)
}

// intArg is int64Arg for arguments that have 32 bits in Redis.
func (c *client) intArg(arg []byte) (int, bool) {
	n, ok := resp.ParseInt(arg)
	if !ok {
		c.fail(errNotInteger)
		return 0, false
	}
	if n < math.MinInt32 || n > math.MaxInt32 {
		c.fail("ERR value is out of range, value must between -2147483648 and 2147483647")
		return 0, false
	}
	return int(n), true
}
