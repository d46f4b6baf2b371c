package redis

import (
	"bytes"
	"fmt"
	"math/rand/v2"
	"strconv"
	"strings"
	"testing"

	"github.com/rondo-go/rondo/resp"
)

// bitsOf returns the bits of b as zeros and ones.
func bitsOf(b []byte) string {
	var s strings.Builder
	for _, x := range b {
		fmt.Fprintf(&s, "%08b", x)
	}
	return s.String()
}

// TestBitLoops compares the loops over words with texts of zeros and ones.
func TestBitLoops(t *testing.T) {
	r := rand.New(rand.NewPCG(1, 1))
	for range 3000 {
		b := make([]byte, 1+r.IntN(80))
		fill := []byte{0, 0xff}[r.IntN(2)]
		for i := range b {
			if b[i] = fill; r.IntN(30) == 0 {
				b[i] ^= 1 << r.IntN(8)
			}
		}
		text := bitsOf(b)
		first := r.IntN(len(text))
		last := first + r.IntN(len(text)-first)
		part := text[first : last+1]
		if got, want := countBitsFrom(b, int64(first), int64(last)), strings.Count(part, "1"); got != int64(want) {
			t.Fatalf("countBitsFrom(%s, %d, %d) = %d, want %d", text, first, last, got, want)
		}
		for bit := range byte(2) {
			want := strings.IndexByte(part, '0'+bit)
			if want >= 0 {
				want += first
			}
			if got := findBitFrom(b, bit, int64(first), int64(last)); got != int64(want) {
				t.Fatalf("findBitFrom(%s, %d, %d, %d) = %d, want %d", text, bit, first, last, got, want)
			}
		}
		width := 1 + r.IntN(64)
		at := r.IntN(len(text) + 20)
		padded := text + strings.Repeat("0", 100)
		want, _ := strconv.ParseUint(padded[at:at+width], 2, 64)
		if got := takeBits(b, uint64(at), uint(width)); got != want {
			t.Fatalf("takeBits(%s, %d, %d) = %b, want %b", text, at, width, got, want)
		}
		if at+width > len(text) {
			continue
		}
		v := r.Uint64()
		putBits(b, uint64(at), uint(width), v)
		if want := text[:at] + fmt.Sprintf("%064b", v)[64-width:] + text[at+width:]; bitsOf(b) != want {
			t.Fatalf("putBits(%s, %d, %d, %b) makes %s", text, at, width, v, bitsOf(b))
		}
	}
}

// TestCombine compares BITOP's loop with one that knows nothing of words and pieces.
func TestCombine(t *testing.T) {
	r := rand.New(rand.NewPCG(1, 2))
	for range 500 {
		sources := make([][]byte, 1+r.IntN(5))
		longest := 0
		for i := range sources {
			sources[i] = make([]byte, r.IntN(10)*r.IntN(500))
			for j := range sources[i] {
				sources[i][j] = byte(r.Uint32() | r.Uint32())
			}
			longest = max(longest, len(sources[i]))
		}
		op := r.IntN(4)
		if op == bitNot {
			sources = sources[:1]
			longest = len(sources[0])
		}
		want := make([]byte, longest)
		for i := range want {
			for j, src := range sources {
				x := byte(0)
				if i < len(src) {
					x = src[i]
				}
				switch {
				case op == bitNot:
					want[i] = ^x
				case j == 0:
					want[i] = x
				case op == bitAnd:
					want[i] &= x
				case op == bitOr:
					want[i] |= x
				case op == bitXor:
					want[i] ^= x
				}
			}
		}
		dst := make([]byte, longest)
		if i := r.IntN(len(sources) + 1); i < len(sources) { // the target is a source too
			copy(dst, sources[i])
			sources[i] = dst
		}
		if combine(op, dst, sources); !bytes.Equal(dst, want) {
			t.Fatalf("operation %d on %d strings of at most %d bytes is wrong", op, len(sources), longest)
		}
	}
}

// Values that grow from an integer to an embedded string, and to one with memory of its own,
// keep their bits.
func TestBitsOfAllForms(t *testing.T) {
	newBench(t, &Server{}).script(`
		SET k 12 => +OK
		SETBIT k 7 1 => :1
		BITCOUNT k => :6
		SETBIT k 262143 1 => :0
		STRLEN k => :32768
		SETBIT k 8388607 1 => :0
		STRLEN k => :1048576
		BITCOUNT k => :8
		BITPOS k 1 3 => :262143
		BITPOS k 1 262144 -1 BIT => :8388607
		BITOP NOT k k => :1048576
		BITCOUNT k => :8388600
		BITOP OR k k small none => :1048576
		SET small a EX 100 => +OK
		BITOP AND small k small => :1048576
		TTL small => :-1
		BITCOUNT small => :1
		BITFIELD k SET u8 1000000 77 GET u8 1000000 GET i64 8388600 => *3 :255 :77 :-144115188075855872
		LPUSH list x => :1
		BITOP OR list small => :1048576
		BITCOUNT list => :1
		BITOP XOR list list list => :1048576
		BITCOUNT list => :0
	`)
}

// hotBits are requests that must not allocate once their keys are there.
var hotBits = []string{"SETBIT k 100 1", "SETBIT k 100 0", "GETBIT k 100", "BITCOUNT k", "BITCOUNT k 1 50 BIT", "BITPOS k 1",
	"BITPOS k 0 2 -1", "BITOP AND r k k none", "BITOP NOT r k", "BITFIELD k SET u8 4 1 GET i5 3 OVERFLOW SAT INCRBY u4 9 1",
	"BITFIELD_RO k GET u8 4", "PFADD h a b", "PFADD dense a b", "PFADD dense", "PFCOUNT h", "PFCOUNT h dense", "PFMERGE m h", "PFMERGE m2 h dense",
	"LCS k none LEN", "INCRBYFLOAT f 0.1", "HINCRBYFLOAT hash f 0.1"}

func hotBitsBench(t testing.TB) (*bench, *fakeConn) {
	b := newBench(t, &Server{})
	f := b.connect("a")
	b.do("a", "SETBIT", "k", "1000", "1")
	b.do("a", "PFADD", "dense", "x")
	b.do("a", "PFDEBUG", "TODENSE", "dense")
	f.out = make([]byte, 0, 64<<10)
	return b, f
}

func TestBitsDoNotAllocate(t *testing.T) {
	for _, line := range hotBits {
		b, f := hotBitsBench(t)
		b.allFast()
		in := resp.AppendRequest(nil, splitWords(line)...)
		run := func() {
			f.out = f.out[:0]
			b.send(f, in)
		}
		run()
		if strings.HasPrefix(string(f.out), "-") {
			t.Errorf("%s: %s", line, f.out)
		}
		if n := testing.AllocsPerRun(100, run); n != 0 {
			t.Errorf("%s allocates %v times", line, n)
		}
	}
}

func BenchmarkBits(b *testing.B) {
	for _, line := range append(hotBits, "SETBIT large 300000000 1", "BITCOUNT large", "BITPOS large 1", "BITOP NOT large large",
		"BITOP XOR r large large", "PFADD large-hll a") {
		b.Run(strings.ReplaceAll(line, " ", "_"), func(b *testing.B) {
			s, f := hotBitsBench(b)
			if strings.Contains(line, "large") {
				s.do("a", "SETBIT", "large", "300000000", "1")
				for i := range 700 {
					s.do("a", "PFADD", "large-hll", strconv.Itoa(i))
				}
			}
			f.out = make([]byte, 0, 64<<10)
			in := resp.AppendRequest(nil, splitWords(line)...)
			b.ReportAllocs()
			b.ResetTimer()
			for range b.N {
				f.out = f.out[:0]
				s.send(f, in)
			}
		})
	}
}

// A HyperLogLog's memory is its own: what a sparse one leaves in the buffer is not in the next.
func TestHyperLogLogs(t *testing.T) {
	b := newBench(t, &Server{})
	for i := range 3000 {
		b.do("a", "PFADD", fmt.Sprint("h", i%7), strconv.Itoa(i))
	}
	b.script(`
		PFCOUNT h0 => :427
		PFCOUNT h0 h1 h2 h3 h4 h5 h6 none => :3004
		PFDEBUG ENCODING h3 => +sparse
		PFMERGE h0 h1 h2 h3 h4 h5 h6 => +OK
		PFDEBUG ENCODING h0 => +dense
		PFCOUNT h0 => :3004
		PFADD h0 1 2 3 => :0
		PFCOUNT h1 => :433
		CONFIG SET hll-sparse-max-bytes 30 => +OK
		PFADD small a b c d e f g h i j => :1
		PFDEBUG ENCODING small => +dense
		PFCOUNT small => :10
		PFSELFTEST => -ERR TESTFAILED sparse encoding not used
		CONFIG SET hll-sparse-max-bytes 3000 => +OK
		PFSELFTEST => +OK
	`)
}

// A string that is too long for a HyperLogLog is not copied to find that out.
func TestEndlessHyperLogLog(t *testing.T) {
	b := newBench(t, &Server{})
	b.do("a", "SET", "h", "HYLL\x01"+strings.Repeat("\x00", 40000))
	b.script(`
		PFADD h a => -INVALIDOBJ Corrupted HLL object detected
		PFCOUNT h => :0
		PFCOUNT h none => -INVALIDOBJ Corrupted HLL object detected
		PFMERGE h none => -INVALIDOBJ Corrupted HLL object detected
		PFDEBUG DECODE h => -INVALIDOBJ Corrupted HLL object detected
		STRLEN h => :40005
	`)
}

// INCR changes an integer in place, also when its digits become more.
func TestDebugObject(t *testing.T) {
	b := newBench(t, &Server{Debug: DebugLocal})
	b.script(`
		DEBUG OBJECT none => -ERR no such key
		DEBUG OBJECT => -ERR unknown subcommand or wrong number of arguments for 'OBJECT'. Try DEBUG HELP.
		SET n 99999 => +OK
	`)
	before := b.do("a", "DEBUG", "OBJECT", "n")
	b.script("INCR n => :100000")
	if got := b.do("a", "DEBUG", "OBJECT", "n"); got != before {
		t.Errorf("%s, before %s", got, before)
	}
	if !strings.HasPrefix(before, "+Value at:0x") || !strings.Contains(before, " refcount:1 encoding:int serializedlength:") ||
		!strings.HasSuffix(before, " lru_seconds_idle:0") {
		t.Error(before)
	}
}
