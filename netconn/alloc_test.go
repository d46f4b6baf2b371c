package netconn_test

import (
	"io"
	"testing"

	"github.com/rondo-go/rondo"
	"github.com/rondo-go/rondo/internal/sys"
)

// TestAllocations: neither Read nor Write allocates in the steady state.
func TestAllocations(t *testing.T) {
	everywhere(t, func(t *testing.T, e *rondo.Engine, k kind) {
		c, peer := pair(t, e, k)
		go io.Copy(struct{ io.Writer }{peer}, struct{ io.Reader }{peer})
		for _, size := range []int{10, 100_000} {
			buf := make([]byte, size)
			round := func() {
				if _, err := c.Write(buf); err != nil {
					t.Error(err)
				}
				if _, err := io.ReadFull(c, buf); err != nil {
					t.Error(err)
				}
			}
			for range 100 {
				round()
			}
			most := 0.0
			if k.name == "tls" {
				most = float64(2 * (size/(16<<10) + 1)) // crypto/tls has one for each record that it reads
			}
			if sys.Race {
				// sync.Pool drops things at random under the race detector. CI also runs
				// this test without it, on 386.
				most += 20 + float64(size)/2048
			}
			if n := testing.AllocsPerRun(500, round); n > most {
				t.Errorf("%d bytes: %v allocations a round", size, n)
			}
		}
	})
}
