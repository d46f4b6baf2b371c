package rdb

import (
	"bytes"
	"encoding/binary"
	"encoding/hex"
	"math"
	"math/rand/v2"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/rondo-go/rondo/redis/intset"
	"github.com/rondo-go/rondo/redis/listpack"
)

const limit = 1 << 20

// texts returns the elements of a value, or the string that it is, and the scores.
func texts(v *Value) (all []string, scores []float64) {
	switch v.Kind {
	case String:
		return []string{string(v.Bytes())}, nil
	case ZSet:
		for member, score := range v.Scored {
			all = append(all, string(member))
			scores = append(scores, score)
		}
	default:
		for e := range v.Elements {
			all = append(all, string(e))
		}
	}
	return all, scores
}

func mustParse(t testing.TB, b []byte) *Value {
	t.Helper()
	v, err := Parse(b, limit)
	if err != nil {
		t.Fatalf("%x: %v", b, err)
	}
	return v
}

func unhex(t testing.TB, s string) []byte {
	t.Helper()
	b, err := hex.DecodeString(strings.ReplaceAll(s, " ", ""))
	if err != nil {
		t.Fatal(err)
	}
	return b
}

// The bytes are Redis's.
func TestStrings(t *testing.T) {
	for _, x := range []struct{ s, want string }{
		{"", "00"},
		{"hello", "05 68656c6c6f"},
		{"0", "c000"},
		{"-128", "c080"},
		{"128", "c18000"},
		{"-32769", "c2ff7fffff"},
		{"2147483647", "c2ffffff7f"},
		{"-2147483648", "c200000080"},
		{"2147483648", "0a 32313437343833363438"},
		{"007", "03 303037"},
		{strings.Repeat("a", 20), "14" + strings.Repeat("61", 20)},
		{strings.Repeat("a", 21), "c3 06 15 016161 e00a00"},
	} {
		e := Encoder{Compress: true}
		e.Type(TypeString)
		e.String([]byte(x.s))
		want := strings.ReplaceAll("00"+x.want, " ", "")
		if got := hex.EncodeToString(e.B); got != want {
			t.Errorf("%q: %s, want %s", x.s, got, want)
		}
		if got, _ := texts(mustParse(t, e.B)); got[0] != x.s {
			t.Errorf("%q became %q", x.s, got[0])
		}
	}
	e := Encoder{}
	e.Int(5000000000)
	if got := hex.EncodeToString(e.B); got != "0a35303030303030303030" {
		t.Errorf("5000000000: %s", got)
	}
}

func TestLengths(t *testing.T) {
	for _, n := range []uint64{0, 63, 64, 16383, 16384, math.MaxUint32, math.MaxUint32 + 1, math.MaxUint64} {
		r := reader{b: append(appendLen(nil, n), 1)}
		got, ok := r.length()
		if got != n || !ok || len(r.b) != 1 {
			t.Errorf("%d became %d, %v, with %d bytes left", n, got, ok, len(r.b))
		}
	}
}

func TestChecksum(t *testing.T) {
	if got := checksum(0, []byte("123456789")); got != 0xE9C6D914C4B8D9CA {
		t.Errorf("checksum %x", got)
	}
	e := Encoder{}
	e.Type(TypeString)
	e.String([]byte("x"))
	e.Seal()
	value, ok := Unseal(e.B)
	if !ok || string(value) != "\x00\x01x" {
		t.Errorf("Unseal returned %q, %v", value, ok)
	}
	for i := range e.B {
		b := slices.Clone(e.B)
		b[i]++
		if _, ok := Unseal(b); ok {
			t.Errorf("byte %d may be wrong", i)
		}
		if _, ok := Unseal(e.B[:i]); ok {
			t.Errorf("%d bytes are enough", i)
		}
	}
	newer := binary.LittleEndian.AppendUint16([]byte("\x00\x01x"), Version+1)
	newer = binary.LittleEndian.AppendUint64(newer, checksum(0, newer))
	if _, ok := Unseal(newer); ok {
		t.Error("a newer version is accepted")
	}
}

// Strings come back from compression, and the compressor's memory of earlier ones does not
// change the result.
func TestCompression(t *testing.T) {
	rng := rand.New(rand.NewPCG(1, 2))
	var z compressor
	z.begin(0)
	z.base = math.MaxUint32 - 20000 // it begins again soon
	shorter := 0
	for i := range 3000 {
		s := make([]byte, rng.IntN(1<<rng.IntN(12)))
		letters := 1 + rng.IntN(1<<rng.IntN(8))
		for j := range s {
			s[j] = byte(rng.IntN(letters))
			if j > 10 && rng.IntN(3) > 0 {
				s[j] = s[j-1-rng.IntN(10)]
			}
		}
		packed, ok := z.compress([]byte("before"), s)
		var fresh compressor
		again, okAgain := fresh.compress([]byte("before"), s)
		if ok != okAgain || ok && !bytes.Equal(packed, again) {
			t.Fatalf("string %d is compressed in another way with a fresh memory", i)
		}
		if !ok {
			continue
		}
		shorter++
		packed = packed[len("before"):]
		if n, ok := expandedSize(packed, len(s)); n != len(s) || !ok || len(packed) > len(s)-4 {
			t.Fatalf("string %d of %d bytes: %d compressed, expanded size %d, %v", i, len(s), len(packed), n, ok)
		}
		if got := expand([]byte("x"), packed); string(got[1:]) != string(s) {
			t.Fatalf("string %d: %q became %q", i, s, got[1:])
		}
		if _, ok := expandedSize(packed, len(s)-1); ok {
			t.Fatal("the limit is ignored")
		}
	}
	if shorter < 500 {
		t.Errorf("only %d strings were compressed", shorter)
	}
}

func TestHostileCompression(t *testing.T) {
	for _, x := range []string{"1f", "20", "2000", "e0", "e000", "0061 2001", "0061 e00001", "0061 3f00"} {
		if _, ok := expandedSize(unhex(t, x), limit); ok {
			t.Errorf("%s is valid", x)
		}
	}
	// A length is announced that the bytes do not have.
	for _, size := range []uint64{0, 1, 3, 1 << 40, math.MaxUint64} {
		e := Encoder{B: []byte{byte(TypeString), specialLZF}}
		e.Len(3)
		e.Len(size)
		e.B = append(e.B, "\x01ab"...)
		if _, err := Parse(e.B, limit); err == nil {
			t.Errorf("2 bytes are accepted as %d", size)
		}
	}
	bomb := Encoder{Compress: true}
	bomb.Type(TypeString)
	bomb.String(make([]byte, limit+1))
	if _, err := Parse(bomb.B, limit); err == nil {
		t.Error("a string above the limit is accepted")
	}
}

// packed returns a listpack of strings.
func packed(elements ...string) []byte {
	lp := listpack.Init(nil)
	for _, e := range elements {
		lp = listpack.Append(lp, listpack.String([]byte(e)))
	}
	return lp
}

// many encodes a number of strings, or of members and scores.
func many(typ Type, elements []string, scores []float64) []byte {
	e := Encoder{Compress: true}
	e.Type(typ)
	n := len(elements)
	if typ == TypeHash {
		n /= 2
	}
	e.Len(uint64(n))
	for i, s := range elements {
		e.String([]byte(s))
		if scores != nil {
			e.Score(scores[i])
		}
	}
	return e.B
}

// whole encodes a value that is one string.
func whole(typ Type, s []byte) []byte {
	e := Encoder{Compress: true}
	e.Type(typ)
	e.String(s)
	return e.B
}

func ints(all ...int64) []byte {
	s := intset.Init(nil)
	for _, n := range all {
		s, _ = intset.Add(s, n)
	}
	return s
}

const ziplist = "18000000 15000000 0300 00 0568656c6c6f 07 c00004 04 f3 ff" // hello 1024 2

// seal notes size, last element and end of a ziplist that is written down without them.
func seal(z []byte, last int) []byte {
	z = append(z, 255)
	binary.LittleEndian.PutUint32(z, uint32(len(z)))
	binary.LittleEndian.PutUint32(z[4:], uint32(last))
	return z
}

func TestValues(t *testing.T) {
	long := strings.Repeat("long", 100)
	quicklist := Encoder{Compress: true}
	quicklist.Type(TypeListQuicklist2)
	quicklist.Len(4)
	quicklist.Node(packed("a", "1", long))
	quicklist.Node(packed())
	quicklist.Len(nodePlain)
	quicklist.String([]byte("12"))
	quicklist.Node(packed("b"))
	zip := unhex(t, ziplist)
	old := Encoder{}
	old.Type(TypeListQuicklist)
	old.Len(2)
	old.String(zip)
	old.String(zip)
	oldScores := append([]byte{byte(TypeZSet), 4}, "\x01a\x031.5\x01b\xfe\x01c\xff\x01d\x02-7"...)
	inf := math.Inf(1)
	for _, x := range []struct {
		name     string
		b        []byte
		kind     Kind
		compact  bool
		elements []string
		scores   []float64
	}{
		{"list", many(TypeList, []string{"a", "1", long}, nil), List, false, []string{"a", "1", long}, nil},
		{"quicklist", quicklist.B, List, false, []string{"a", "1", long, "12", "b"}, nil},
		{"ziplist", whole(TypeListZiplist, zip), List, false, []string{"hello", "1024", "2"}, nil},
		{"quicklist of ziplists", old.B, List, false, []string{"hello", "1024", "2", "hello", "1024", "2"}, nil},
		{"set", many(TypeSet, []string{"a", "1", long}, nil), Set, false, []string{"a", "1", long}, nil},
		{"intset", whole(TypeSetIntset, ints(3, -70000, 5)), Set, true, []string{"-70000", "3", "5"}, nil},
		{"hash", many(TypeHash, []string{"f", "v", "g", long}, nil), Hash, false, []string{"f", "v", "g", long}, nil},
		{"small hash", whole(TypeHashListpack, packed("f", "1", "2", "v")), Hash, true, []string{"f", "1", "2", "v"}, nil},
		{"hash ziplist", whole(TypeHashZiplist, seal(unhex(t, "00000000 00000000 0200 00 0161 03 0162"), 13)), Hash, true, []string{"a", "b"}, nil},
		{"zipmap", whole(TypeHashZipmap, []byte("\x02\x03foo\x03\x00bar\x05hello\x05\x02world\x00\x00\xff")), Hash, false, []string{"foo", "bar", "hello", "world"}, nil},
		{"zset", many(TypeZSet2, []string{"b", "a"}, []float64{1.5, -inf}), ZSet, false, []string{"b", "a"}, []float64{1.5, -inf}},
		{"old zset", oldScores, ZSet, false, []string{"a", "b", "c", "d"}, []float64{1.5, inf, -inf, -7}},
		{"small zset", whole(TypeZSetListpack, packed("b", "1", "c", "1", "a", "1.5", "d", "inf")), ZSet, true, []string{"b", "c", "a", "d"}, []float64{1, 1, 1.5, inf}},
		{"unordered zset", whole(TypeZSetListpack, packed("c", "1", "b", "1")), ZSet, false, []string{"c", "b"}, []float64{1, 1}},
		{"zset ziplist", whole(TypeZSetZiplist, seal(unhex(t, "00000000 00000000 0200 00 0161 03 fe05"), 13)), ZSet, true, []string{"a"}, []float64{5}},
		{"ziplist of all encodings", whole(TypeListZiplist, allZiplist()), List, false,
			[]string{"a", "-128", "-32768", "-8388608", "-2147483648", "-9223372036854775808", "0", "12", "b"}, nil},
	} {
		t.Run(x.name, func(t *testing.T) {
			v := mustParse(t, append(slices.Clone(x.b), "rest"...))
			elements, scores := texts(v)
			if v.Kind != x.kind || !slices.Equal(elements, x.elements) || !slices.Equal(scores, x.scores) {
				t.Errorf("kind %d, %q, %v", v.Kind, elements, scores)
			}
			if compact := v.Listpack() != nil || v.Intset() != nil; compact != x.compact {
				t.Errorf("compact: %v", compact)
			}
			n := len(elements)
			if v.Kind == Hash {
				n /= 2
			}
			if v.Len() != n {
				t.Errorf("Len %d, want %d", v.Len(), n)
			}
			for i := range x.b {
				if _, err := Parse(x.b[:i], limit); err == nil {
					t.Errorf("valid when cut to %d of %d bytes", i, len(x.b))
				}
			}
		})
	}
}

// allZiplist returns a ziplist with all encodings of an element.
func allZiplist() []byte {
	z := make([]byte, zipHeader)
	before, last, count := 0, 0, 0
	for _, element := range []string{"\x01a", "\xfe\x80", "\xc0\x00\x80", "\xf0\x00\x00\x80", "\xd0\x00\x00\x00\x80",
		"\xe0\x00\x00\x00\x00\x00\x00\x00\x80", "\xf1", "\xfd", "\x40\x01b"} {
		last = len(z)
		z = append(append(z, byte(before)), element...)
		before = len(z) - last
		count++
	}
	binary.LittleEndian.PutUint16(z[8:], uint16(count))
	return seal(z, last)
}

func TestNoValues(t *testing.T) {
	for name, b := range map[string][]byte{
		"nothing":                   {},
		"unknown type":              {99, 0},
		"module":                    {7, 0},
		"stream":                    {19, 0},
		"empty list":                {byte(TypeList), 0},
		"empty hash":                {byte(TypeHash), 0},
		"empty zset":                {byte(TypeZSet2), 0},
		"empty set":                 whole(TypeSetIntset, ints()),
		"empty small hash":          whole(TypeHashListpack, packed()),
		"empty small zset":          whole(TypeZSetListpack, packed()),
		"empty quicklist":           append([]byte{byte(TypeListQuicklist2), 1, nodePacked}, append([]byte{7}, packed()...)...),
		"empty plain node":          {byte(TypeListQuicklist2), 1, nodePlain, 0},
		"unknown container":         {byte(TypeListQuicklist2), 1, 3, 1, 'a'},
		"half a field":              whole(TypeHashListpack, packed("a", "b", "c")),
		"a field twice":             whole(TypeHashListpack, packed("a", "b", "a", "c")),
		"a field twice in a zipmap": whole(TypeHashZipmap, []byte("\x02\x01a\x01\x00b\x01a\x01\x00c\xff")),
		"a wrong count in a zipmap": whole(TypeHashZipmap, []byte("\x03\x01a\x01\x00b\xff")),
		"a member twice":            whole(TypeZSetListpack, packed("a", "1", "a", "2")),
		"no score":                  whole(TypeZSetListpack, packed("a", "x")),
		"nan":                       whole(TypeZSetListpack, packed("a", "nan")),
		"nan in bytes":              many(TypeZSet2, []string{"a"}, []float64{math.NaN()}),
		"nan in old bytes":          append([]byte{byte(TypeZSet), 1}, "\x01a\xfd"...),
		"unordered intset":          whole(TypeSetIntset, append(ints(1, 2)[:8], 2, 0, 1, 0)),
		"many elements":             {byte(TypeList), len64, 255, 255, 255, 255, 255, 255, 255, 255, 0},
		"many fields":               {byte(TypeHash), len32, 255, 255, 255, 255, 0, 0},
		"a long string":             {byte(TypeString), len64, 127, 255, 255, 255, 255, 255, 255, 255, 0},
		"a special length":          {byte(TypeString), 0xC4, 0},
		"no length":                 {byte(TypeString), 0x82, 0},
		"a wrong ziplist":           whole(TypeListZiplist, unhex(t, strings.Replace(ziplist, "04 f3", "03 f3", 1))),
		"a wrong end of a ziplist":  whole(TypeListZiplist, unhex(t, strings.Replace(ziplist, "15000000", "14000000", 1))),
	} {
		if v, err := Parse(b, limit); err == nil {
			elements, _ := texts(v)
			t.Errorf("%s: %x is %q", name, b, elements)
		}
	}
}

// FuzzParse reads any bytes. A value is the same after it has been written again.
func FuzzParse(f *testing.F) {
	f.Add(whole(TypeString, []byte(strings.Repeat("x", 100))))
	f.Add(whole(TypeHashListpack, packed("f", "1", "2", "v")))
	f.Add(whole(TypeZSetListpack, packed("b", "1", "c", "1", "a", "1.5")))
	f.Add(whole(TypeListZiplist, allZiplist()))
	f.Add(whole(TypeHashZipmap, []byte("\x02\x03foo\x03\x00bar\x05hello\x05\x02world\x00\x00\xff")))
	f.Add(whole(TypeSetIntset, ints(3, -70000, 5)))
	f.Add(many(TypeZSet2, []string{"b", "a"}, []float64{1.5, -2}))
	f.Add(many(TypeHash, []string{"f", "v", "g", "w"}, nil))
	f.Add(append([]byte{byte(TypeListQuicklist2), 2, nodePacked, byte(len(packed("a", "b")))}, append(packed("a", "b"), nodePlain, 1, 'c')...))
	f.Add(append([]byte{byte(TypeZSet), 2}, "\x01a\x031.5\x01b\xfe"...))
	f.Add(someStream(TypeStream))
	f.Add(someStream(TypeStream2))
	f.Fuzz(func(t *testing.T, b []byte) {
		v, err := Parse(b, 1<<16)
		if err != nil {
			return
		}
		if v.Kind == Stream {
			checkAgain(t, b, v)
			return
		}
		elements, scores := texts(v)
		typ := map[Kind]Type{List: TypeList, Set: TypeSet, Hash: TypeHash, ZSet: TypeZSet2}[v.Kind]
		again := many(typ, elements, scores)
		if v.Kind == String {
			again = whole(TypeString, v.Bytes())
		}
		elements2, scores2 := texts(mustParse(t, again))
		if !slices.Equal(elements, elements2) || !slices.Equal(scores, scores2) {
			t.Fatalf("%x: %q, %v and then %q, %v", b, elements, scores, elements2, scores2)
		}
	})
}

// FuzzExpand expands any compressed bytes, and compresses the result again.
func FuzzExpand(f *testing.F) {
	f.Add([]byte("\x00a\xe0\x20\x00"))
	f.Fuzz(func(t *testing.T, b []byte) {
		n, ok := expandedSize(b, 1<<16)
		if !ok {
			return
		}
		s := expand(nil, b)
		if len(s) != n {
			t.Fatalf("%d bytes, want %d", len(s), n)
		}
		var z compressor
		if packed, ok := z.compress(nil, s); ok && !bytes.Equal(expand(nil, packed), s) {
			t.Fatalf("%x became %x", s, packed)
		}
	})
}

func BenchmarkCompress(b *testing.B) {
	for _, n := range []int{50, 5000} {
		b.Run(strconv.Itoa(n), func(b *testing.B) {
			s := []byte(strings.Repeat("the quick brown fox ", n/20+1)[:n])
			var z compressor
			var dst []byte
			b.SetBytes(int64(n))
			for b.Loop() {
				dst, _ = z.compress(dst[:0], s)
			}
		})
	}
}
