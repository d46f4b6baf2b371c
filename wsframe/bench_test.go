package wsframe

import (
	"fmt"
	"strings"
	"testing"
)

// hot holds, by name, what a server and a client do for each message. None of it may
// allocate.
var hot = []struct {
	name string
	make func() func()
}{
	{"Read", func() func() {
		in := []byte(frame(0x82, strings.Repeat("x", 128)))
		var r Reader
		return func() { r.Read(in) }
	}},
	{"ReadPieces", func() func() {
		in := []byte(frame(0x82, strings.Repeat("x", 128)))
		var r Reader
		return func() {
			_, n, _, _ := r.Read(in[:50])
			r.Read(in[n:])
		}
	}},
	{"ReadPing", func() func() {
		in := []byte(frame(0x89, "ping"))
		var r Reader
		return func() { r.Read(in) }
	}},
	{"AppendFrame", func() func() {
		p := make([]byte, 128)
		var b []byte
		return func() { b = AppendFrame(b[:0], Binary, p) }
	}},
	{"AppendMasked", func() func() {
		p := make([]byte, 128)
		var b []byte
		return func() { b = AppendMasked(b[:0], Binary, p, [4]byte{1, 2, 3, 4}) }
	}},
	{"Close", func() func() {
		var b []byte
		return func() {
			b = AppendClose(b[:0], CodeNormal, "bye")
			ReadClose(b)
		}
	}},
	{"UTF8", func() func() {
		text := []byte(strings.Repeat("κόσμε", 20))
		return func() {
			var u UTF8
			u.Valid(text[:101])
			u.Valid(text[101:])
		}
	}},
}

func TestHotPathAllocatesNothing(t *testing.T) {
	for _, h := range hot {
		if n := testing.AllocsPerRun(100, h.make()); n != 0 {
			t.Errorf("%s: %v allocations, want 0", h.name, n)
		}
	}
}

func BenchmarkHot(b *testing.B) {
	for _, h := range hot {
		b.Run(h.name, func(b *testing.B) {
			f := h.make()
			b.ReportAllocs()
			for range b.N {
				f()
			}
		})
	}
}

func BenchmarkMask(b *testing.B) {
	for _, size := range []int{16, 128, 1024, 65536} {
		b.Run(fmt.Sprint(size), func(b *testing.B) {
			p := make([]byte, size)
			b.SetBytes(int64(size))
			for range b.N {
				Mask(p, [4]byte{1, 2, 3, 4}, 0)
			}
		})
	}
}
