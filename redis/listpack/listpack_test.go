package listpack

import (
	"bytes"
	"encoding/hex"
	"fmt"
	"math"
	"math/rand/v2"
	"slices"
	"strconv"
	"strings"
	"testing"
)

// of returns a listpack of strings.
func of(elements ...string) []byte {
	lp := Init(nil)
	for _, e := range elements {
		lp = Append(lp, String([]byte(e)))
	}
	return lp
}

// texts returns the elements of a listpack.
func texts(lp []byte) []string {
	all := []string{}
	for _, v := range All(lp) {
		all = append(all, string(v.AppendTo(nil)))
	}
	return all
}

// The bytes are Redis's.
func TestBytes(t *testing.T) {
	for _, x := range []struct{ elements, want string }{
		{"", "07000000 0000 ff"},
		{"hello 1024", "11000000 0200 8568656c6c6f06 c40002 ff"},
		{"0 127 128 -1", "11000000 0400 0001 7f01 c08002 dfff02 ff"},
		{"4095 -4096 4096 -4097", "15000000 0400 cfff02 d00002 f1001003 f1ffef03 ff"},
		{"32767 -32768 32768 -32769", "19000000 0400 f1ff7f03 f1008003 f200800004 f2ff7fff04 ff"},
		{"8388607 -8388608 8388608 -8388609", "1d000000 0400 f2ffff7f04 f200008004 f30000800005 f3ffff7fff05 ff"},
		{"2147483647 -2147483648", "13000000 0200 f3ffffff7f05 f30000008005 ff"},
		{"2147483648 -2147483649", "1b000000 0200 f4000000800000000009 f4ffffff7fffffffff09 ff"},
		{"9223372036854775807 -9223372036854775808", "1b000000 0200 f4ffffffffffffff7f09 f4000000000000008009 ff"},
		{"9223372036854775808", "1c000000 0100 933932323333373230333638353437373538303814 ff"},
		{"01 -0 +1 -", "16000000 0400 82303103 822d3003 822b3103 812d02 ff"},
	} {
		var elements []string
		if x.elements != "" {
			elements = strings.Split(x.elements, " ")
		}
		lp := of(elements...)
		if want := strings.ReplaceAll(x.want, " ", ""); hex.EncodeToString(lp) != want {
			t.Errorf("%s:\n got %x\nwant %s", x.elements, lp, want)
		}
		if got := texts(lp); !slices.Equal(got, elements) {
			t.Errorf("%s: got back %q", x.elements, got)
		}
	}
}

// The sizes of elements, for the way back, take as many bytes as in Redis.
func TestSizes(t *testing.T) {
	for _, x := range []struct {
		length int
		head   string
		back   string
	}{
		{0, "80", "01"},
		{63, "bf", "40"},
		{64, "e040", "42"},
		{125, "e07d", "7f"},
		{126, "e07e", "0180"},
		{4095, "efff", "2081"},
		{4096, "f000100000", "2085"},
		{16377, "f0f93f0000", "7ffe"},
		{16378, "f0fa3f0000", "00ffff"},
		{16379, "f0fb3f0000", "018080"},
		{1<<21 - 7, "f0f9ff1f00", "7ffffe"},
		{1<<21 - 6, "f0faff1f00", "00ffffff"},
	} {
		s := bytes.Repeat([]byte("x"), x.length)
		lp := of(string(s))
		element := lp[headerSize:End(lp)]
		head := hex.EncodeToString(element[:len(x.head)/2])
		back := hex.EncodeToString(element[len(x.head)/2+len(s):])
		if head != x.head || back != x.back {
			t.Errorf("%d bytes: %s before and %s behind them, want %s and %s", x.length, head, back, x.head, x.back)
		}
		if at := Last(lp); at != headerSize || At(lp, at).Len() != x.length {
			t.Errorf("%d bytes: the last element is at %d, with %d bytes", x.length, at, At(lp, at).Len())
		}
		if n, ok := Valid(lp); n != 1 || !ok {
			t.Errorf("%d bytes: not valid", x.length)
		}
	}
}

func TestValue(t *testing.T) {
	for _, text := range []string{"", "a", "0", "-7", "007", "9223372036854775807", "9223372036854775808"} {
		v := String([]byte(text))
		n, err := strconv.ParseInt(text, 10, 64)
		isInt := err == nil && strconv.FormatInt(n, 10) == text
		if got, ok := v.Int(); ok != isInt || isInt && got != n {
			t.Errorf("%q: Int returned %d, %v", text, got, ok)
		}
		if string(v.Bytes(nil)) != text || string(v.AppendTo([]byte("x"))) != "x"+text || v.Len() != len(text) {
			t.Errorf("%q became %q of %d bytes", text, v.Bytes(nil), v.Len())
		}
		lp := Append(Init(nil), v)
		if v.Size() != len(lp)-MinSize {
			t.Errorf("%q: size %d, want %d", text, v.Size(), len(lp)-MinSize)
		}
		if isInt && (!v.Equal(Int(n)) || !Int(n).Equal(Value{s: []byte(text)}) || Int(n).Equal(Int(n+1))) {
			t.Errorf("%q is not equal to %d", text, n)
		}
		if got, ok := (Value{s: []byte(text)}).ParseInt(); ok != isInt || isInt && got != n {
			t.Errorf("%q: ParseInt returned %d, %v", text, got, ok)
		}
	}
}

// Find compares elements as text, also where another server has not used the shortest
// encoding.
func TestFind(t *testing.T) {
	lp := of("a", "1", "1", "x", "b", "a", "12345", "b")
	for _, x := range []struct {
		v          Value
		from, skip int
		want       int // index; -1: none
	}{
		{String([]byte("a")), 0, 0, 0},
		{String([]byte("a")), 1, 0, 5},
		{String([]byte("1")), 0, 0, 1},
		{String([]byte("1")), 0, 1, 2},
		{Int(12345), 0, 0, 6},
		{Int(12345), 0, 1, 6},
		{String([]byte("b")), 0, 2, -1},
		{String([]byte("x")), 0, 1, -1},
		{String([]byte("none")), 0, 0, -1},
	} {
		want := -1
		if x.want >= 0 {
			want = Seek(lp, x.want)
		}
		if at := Find(lp, Seek(lp, x.from), x.v, x.skip); at != want {
			t.Errorf("%q from %d, skipping %d: at %d, want %d", x.v.Bytes(nil), x.from, x.skip, at, want)
		}
	}
	if at := Find(Init(nil), First(Init(nil)), Int(1), 0); at != -1 {
		t.Errorf("found something in nothing at %d", at)
	}
	foreign := Insert(Init(nil), headerSize, Value{s: []byte("17")})
	if Find(foreign, First(foreign), Int(17), 0) < 0 || Find(foreign, First(foreign), String([]byte("17")), 0) < 0 {
		t.Error("17 as a string is not found")
	}
}

// A listpack of more than 65534 elements no longer knows how many it has.
func TestManyElements(t *testing.T) {
	lp := Init(nil)
	const n = many + 1000
	for i := range n {
		lp = Append(lp, Int(int64(i)))
	}
	if got := Len(lp); got != n || lp[4] != 0xFF || lp[5] != 0xFF {
		t.Fatalf("%d elements, header %x", got, lp[:headerSize])
	}
	for _, index := range []int{0, 1, 100, n - 1, n, -1, -2, -n, -n - 1} {
		at, want := Seek(lp, index), index
		if want < 0 {
			want += n
		}
		switch {
		case want < 0 || want >= n:
			if at != -1 {
				t.Errorf("index %d: found at %d", index, at)
			}
		case at < 0 || !At(lp, at).Equal(Int(int64(want))):
			t.Errorf("index %d: not found", index)
		}
	}
	if got, ok := Valid(lp); got != n || !ok {
		t.Errorf("Valid returned %d, %v", got, ok)
	}
	lp = DeleteRange(lp, First(lp), 2000)
	if got := Len(lp); got != n-2000 {
		t.Errorf("%d elements after DeleteRange", got)
	}
	half := of(slices.Repeat([]string{"1"}, 40000)...)
	if got := Concat(slices.Clone(half), half); Len(got) != 80000 {
		t.Errorf("%d elements after Concat", Len(got))
	}
}

// Changes of a listpack with enough capacity allocate nothing.
func TestInPlace(t *testing.T) {
	lp := Init(make([]byte, 0, 1000))
	first := &lp[0]
	allocs := testing.AllocsPerRun(100, func() {
		lp = Init(lp)
		for i := range int64(100) {
			lp = Prepend(lp, Int(i*1000))
		}
		lp = Replace(lp, Seek(lp, 50), String([]byte("hello, world")))
		lp = DeleteRange(lp, Seek(lp, 20), 30)
	})
	if allocs != 0 || &lp[0] != first || Len(lp) != 70 {
		t.Errorf("%v allocations, %d elements", allocs, Len(lp))
	}
}

func TestValid(t *testing.T) {
	good := of("hello", "1024", strings.Repeat("x", 100), "-5000000000")
	if n, ok := Valid(good); n != 4 || !ok {
		t.Fatal("not valid")
	}
	for i := range good {
		if _, ok := Valid(good[:i]); ok {
			t.Errorf("valid when cut to %d bytes", i)
		}
	}
	for _, x := range []string{
		"",
		"07000000 0000 00",                       // no end
		"08000000 0000 ff",                       // size
		"07000000 0100 ff",                       // count
		"09000000 0200 0001 ff",                  // count
		"09000000 0100 0002 ff",                  // wrong way back
		"0a000000 0100 000180 ff",                // wrong way back
		"09000000 0100 8501 ff",                  // string beyond the end
		"08000000 0100 e0 ff",                    // half a length
		"0b000000 0100 f0ffffff ff",              // half a length
		"0d000000 0100 f0ffffffff05 ff",          // string beyond the end
		"09000000 0100 f501 ff",                  // no encoding
		"09000000 0100 ff01 ff",                  // the end before the end
		"0f000000 0100 f400000000000000 ff",      // half an integer
		"11000000 0200 85414141414106 84ff05 ff", // the end within a string
	} {
		b, err := hex.DecodeString(strings.ReplaceAll(x, " ", ""))
		if err != nil {
			t.Fatal(err)
		}
		if _, ok := Valid(b); ok {
			t.Errorf("%s is valid", x)
		}
	}
	loose, _ := hex.DecodeString("0b000000010" + "0f1010003ff")
	if n, ok := Valid(loose); n != 1 || !ok {
		t.Error("an integer in a larger encoding is not valid")
	}
}

// FuzzModel makes random changes to a listpack and to a slice of strings.
func FuzzModel(f *testing.F) {
	for seed := range uint64(20) {
		f.Add(seed, uint16(300))
	}
	f.Fuzz(func(t *testing.T, seed uint64, steps uint16) {
		rng := rand.New(rand.NewPCG(seed, 0))
		lp, model := Init(nil), []string{}
		for step := range steps % 1000 {
			lp, model = change(rng, lp, model)
			if err := check(rng, lp, model); err != nil {
				t.Fatalf("seed %d, step %d: %v", seed, step, err)
			}
		}
	})
}

// text returns a random element, often one that is there already.
func text(rng *rand.Rand, model []string) string {
	switch rng.IntN(6) {
	case 0:
		return strconv.Itoa(rng.IntN(300) - 100)
	case 1:
		return strconv.FormatInt(int64(rng.Uint64())>>rng.IntN(64), 10)
	case 2:
		return strings.Repeat("y", rng.IntN(300))
	case 3:
		if len(model) > 0 {
			return model[rng.IntN(len(model))]
		}
	case 4:
		if rng.IntN(50) == 0 {
			return strings.Repeat("z", rng.IntN(20000))
		}
	}
	return string([]byte{byte(rng.Uint32())})
}

// change makes one random change to both.
func change(rng *rand.Rand, lp []byte, model []string) ([]byte, []string) {
	s := text(rng, model)
	v := String([]byte(s))
	n := len(model)
	switch op := rng.IntN(12); {
	case op == 0:
		return Append(lp, v), append(model, s)
	case op == 1:
		return Prepend(lp, v), slices.Insert(model, 0, s)
	case op < 6 || n == 0:
		i := rng.IntN(n + 1)
		at := End(lp)
		if i < n {
			at = Seek(lp, i)
		}
		return Insert(lp, at, v), slices.Insert(model, i, s)
	case op == 6:
		i := rng.IntN(n)
		model[i] = s
		return Replace(lp, Seek(lp, i-n), v), model
	case op == 7:
		i := rng.IntN(n)
		return Delete(lp, Seek(lp, i)), slices.Delete(model, i, i+1)
	case op == 8:
		i, k := rng.IntN(n), rng.IntN(8)
		return DeleteRange(lp, Seek(lp, i), k), slices.Delete(model, i, min(n, i+k))
	}
	if rng.IntN(3) == 0 {
		k := rng.IntN(5) - 2
		lp, removed := Remove(lp, v, k)
		left := removeFrom(model, s, k)
		if removed != n-len(left) {
			return nil, left
		}
		return lp, left
	}
	if i := rng.IntN(n + 1); i < n && rng.IntN(4) == 0 {
		tail := Tail(nil, lp, Seek(lp, i))
		return Concat(Cut(lp, Seek(lp, i), End(lp), n-i), tail), model
	}
	other := model[rng.IntN(n):]
	other = other[:min(len(other), 5)]
	return Concat(lp, of(other...)), append(model, other...)
}

// removeFrom is Remove for the model.
func removeFrom(model []string, s string, n int) (left []string) {
	skip := 0
	if n < 0 {
		for _, x := range model {
			if x == s {
				skip++
			}
		}
		skip, n = max(0, skip+n), -n
	}
	removed := 0
	for _, x := range model {
		if x == s && skip == 0 && (n == 0 || removed < n) {
			removed++
			continue
		}
		if x == s && skip > 0 {
			skip--
		}
		left = append(left, x)
	}
	return append([]string{}, left...)
}

// check compares a listpack with the model.
func check(rng *rand.Rand, lp []byte, model []string) error {
	if want := of(model...); !bytes.Equal(lp, want) {
		return fmt.Errorf("got %x, want %x", lp, want)
	}
	if n, ok := Valid(lp); n != len(model) || !ok || Len(lp) != n {
		return fmt.Errorf("Valid returned %d, %v, and Len %d; want %d", n, ok, Len(lp), len(model))
	}
	if got := texts(lp); !slices.Equal(got, model) {
		return fmt.Errorf("got %q, want %q", got, model)
	}
	i := len(model)
	for at := Last(lp); at >= 0; at = Prev(lp, at) {
		if i--; i < 0 || string(At(lp, at).Bytes(nil)) != model[i] {
			return fmt.Errorf("element %d from behind is wrong", i)
		}
	}
	if i != 0 {
		return fmt.Errorf("the way back missed %d elements", i)
	}
	wanted := text(rng, model)
	from := 0
	if len(model) > 0 {
		from = rng.IntN(len(model))
	}
	want := -1
	if i := slices.Index(model[from:], wanted); i >= 0 {
		want = Seek(lp, from+i)
	}
	if at := Find(lp, Seek(lp, from), String([]byte(wanted)), 0); at != want {
		return fmt.Errorf("found %q at %d, want %d", wanted, at, want)
	}
	return nil
}

// FuzzValid reads every listpack that is valid.
func FuzzValid(f *testing.F) {
	f.Add(of())
	f.Add(of("hello", "1024", strings.Repeat("x", 100), "-5000000000"))
	f.Add(of(strings.Repeat("x", 5000), "70000", "5000000"))
	f.Fuzz(func(t *testing.T, b []byte) {
		n, ok := Valid(b)
		if !ok {
			return
		}
		forth := texts(b)
		var back []string
		for at := Last(b); at >= 0; at = Prev(b, at) {
			back = append(back, string(At(b, at).Bytes(nil)))
		}
		slices.Reverse(back)
		if len(forth) != n || !slices.Equal(forth, back) {
			t.Fatalf("%d elements, %q forth and %q back", n, forth, back)
		}
		for i, s := range forth {
			if at := Find(b, Seek(b, i), String([]byte(s)), 0); at != Seek(b, i) {
				t.Fatalf("element %d is not found", i)
			}
		}
		lp := slices.Clone(b)
		for i := range forth {
			lp = Replace(lp, Seek(lp, i), String([]byte(forth[i])))
		}
		if _, ok := Valid(lp); !ok || !slices.Equal(texts(lp), forth) {
			t.Fatalf("rewritten: %x", lp)
		}
	})
}

func BenchmarkListpack(b *testing.B) {
	var elements []string
	for i := range 128 {
		elements = append(elements, "field:"+strconv.Itoa(i))
	}
	lp := of(elements...)
	last := String([]byte(elements[127]))
	b.Run("append", func(b *testing.B) {
		values := make([]Value, len(elements))
		for i, e := range elements {
			values[i] = String([]byte(e))
		}
		buf := make([]byte, 0, len(lp))
		for b.Loop() {
			buf = Init(buf)
			for _, v := range values {
				buf = Append(buf, v)
			}
		}
	})
	b.Run("find", func(b *testing.B) {
		for b.Loop() {
			if Find(lp, First(lp), last, 0) < 0 {
				b.Fatal("not found")
			}
		}
	})
	b.Run("seek", func(b *testing.B) {
		for b.Loop() {
			if Seek(lp, 60) < 0 {
				b.Fatal("not found")
			}
		}
	})
	b.Run("read", func(b *testing.B) {
		for b.Loop() {
			sum := 0
			for _, v := range All(lp) {
				sum += v.Len()
			}
			if sum == math.MaxInt {
				b.Fatal(sum)
			}
		}
	})
	b.Run("valid", func(b *testing.B) {
		for b.Loop() {
			Valid(lp)
		}
	})
}
