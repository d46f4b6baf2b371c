package resp

import (
	"bytes"
	"testing"
)

// hot holds, by name, what a server and a client do for each command. None of it may
// allocate.
var hot = []struct {
	name string
	make func() func()
}{
	{"ReadRequest", func() func() {
		in := AppendRequest(nil, "SET", "key:000000000001", "xxx")
		var args [][]byte
		return func() { args, _, _, _ = ReadRequest(in, args, Limits{}) }
	}},
	{"ReadInline", func() func() {
		in := []byte("SET key:000000000001 xxx\r\n")
		var args [][]byte
		return func() { args, _, _, _ = ReadRequest(in, args, Limits{}) }
	}},
	{"PartialRequest", func() func() {
		in := AppendRequest(nil, "SET", "key:000000000001", "xxx")
		var p PartialRequest
		var args [][]byte
		return func() {
			args, _, _, _ = p.Read(in[:len(in)-10], args, Limits{})
			args, _, _, _ = p.Read(in, args, Limits{})
		}
	}},
	{"ReadValue", func() func() {
		in := AppendBulkString(nil, "xxx")
		return func() { _, _, _, _ = ReadValue(in) }
	}},
	{"Append", func() func() {
		var b []byte
		value := []byte("xxx")
		return func() {
			b = AppendSimple(b[:0], "OK")
			b = AppendError(b, "ERR syntax error")
			b = AppendInt(b, 12345)
			b = AppendBulk(b, value)
			b = AppendBulkString(b, "xxx")
			b = AppendBulkInt(b, -12345)
			b = AppendNull(AppendNullArray(AppendNull3(b)))
			b = AppendArray(AppendMap(AppendSet(AppendPush(AppendAttribute(b, 1), 2), 3), 4), 5)
			b = AppendDouble(b, 3.14)
			b = AppendBool(b, true)
			b = AppendBigNumber(b, "123")
			b = AppendVerbatim(b, "txt", "xxx")
			b = AppendBulkError(b, "ERR")
			b = AppendRequest(b, "SET", "k", "v")
		}
	}},
	{"Reply", func() func() {
		var two, three = Reply{Proto: 2}, Reply{Proto: 3}
		value := []byte("xxx")
		return func() {
			for _, r := range []*Reply{&two, &three} {
				r.B = r.B[:0]
				r.Simple("OK")
				r.Bulk(value)
				r.Null()
				r.NullArray()
				r.Map(2)
				r.Set(2)
				r.Push(3)
				r.Double(3.14)
				r.Bool(true)
				r.BigNumber("123")
				r.Verbatim("txt", "xxx")
			}
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

func BenchmarkPipeline32(b *testing.B) {
	in := bytes.Repeat(AppendRequest(nil, "GET", "key:000000000001"), 32)
	var args [][]byte
	b.SetBytes(int64(len(in)))
	b.ReportAllocs()
	for range b.N {
		for rest := in; len(rest) > 0; {
			var n int
			args, n, _, _ = ReadRequest(rest, args, Limits{})
			rest = rest[n:]
		}
	}
}
