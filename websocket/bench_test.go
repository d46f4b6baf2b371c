package websocket

import (
	"fmt"
	"io"
	"strings"
	"testing"

	"github.com/rondo-go/rondo"
	"github.com/rondo-go/rondo/internal/testkit"
)

// BenchmarkEcho has messages echoed over TCP, 64 in one write: the time of one is mostly
// that of this package.
func BenchmarkEcho(b *testing.B) {
	for _, size := range []int{16, 125, 1000, 16000} {
		b.Run(fmt.Sprint(size), func(b *testing.B) {
			const batch = 64
			address := testkit.Listen(b, &rondo.Engine{NumLoops: 1}, (&Server{Open: echo}).OpenFunc())
			p := upgradeTo(b, testkit.Dial(b, address))
			in := []byte(strings.Repeat(bin(strings.Repeat("x", size)), batch))
			out := make([]byte, len(in)-4*batch)
			b.SetBytes(int64(size))
			b.ReportAllocs()
			b.ResetTimer()
			for n := 0; n < b.N; n += batch {
				go p.c.Write(in)
				if _, err := io.ReadFull(p.c, out); err != nil {
					b.Fatal(err)
				}
			}
		})
	}
}

// BenchmarkDeflate compresses messages as connections do.
func BenchmarkDeflate(b *testing.B) {
	json := payloads()["12.1"]
	for _, size := range []int{300, 4000} {
		message := []byte(json(size))
		for name, window := range map[string][]byte{"alone": nil, "takeover": []byte(json(32 << 10))} {
			b.Run(fmt.Sprintf("%d %s", size, name), func(b *testing.B) {
				z := newDeflater(1, 15)
				b.SetBytes(int64(size))
				b.ReportAllocs()
				for range b.N {
					z.deflate(message, window)
				}
				b.ReportMetric(float64(len(z.out))/float64(size), "ratio")
			})
		}
	}
}
