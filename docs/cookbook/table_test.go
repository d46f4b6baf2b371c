package cookbook_test

import (
	"bytes"
	"fmt"
	"strings"
	"sync"

	"github.com/rondo-go/rondo"
)

// A table is shared by the connections of all loops.
type table struct {
	mu     sync.Mutex
	values map[string]string
}

func (t *table) open(*rondo.Conn) rondo.Handler {
	return rondo.HandlerFunc(func(c *rondo.Conn, in []byte) (n int, err error) {
		for {
			end := bytes.IndexByte(in[n:], '\n')
			if end < 0 {
				return n, nil
			}
			fmt.Fprintln(c, t.answer(string(in[n:n+end])))
			n += end + 1
		}
	})
}

// answer stores the value of "key=value", and returns that of "key".
func (t *table) answer(line string) string {
	t.mu.Lock()
	defer t.mu.Unlock() // soon: other loops wait
	key, value, set := strings.Cut(line, "=")
	if set {
		t.values[key] = value
	}
	return t.values[key]
}
