package wsframe

import (
	"testing"
	"unicode/utf8"
)

// firstInvalid returns the offset of the first byte after which no text can have in[:offset+1]
// at its beginning; len(in): there is none. It tries all continuations.
func firstInvalid(in []byte) int {
	for i := range in {
		if !isPrefix(in[:i+1]) {
			return i
		}
	}
	return len(in)
}

// isPrefix reports whether some text begins with p. The last character may be cut, and
// then one of these bytes can follow it up to three times.
func isPrefix(p []byte) bool {
	if utf8.Valid(p) {
		return true
	}
	for _, next := range []byte{0x80, 0x8f, 0x90, 0x9f, 0xa0, 0xbf} {
		q := append(append([]byte(nil), p...), next)
		for range 3 {
			if utf8.Valid(q) {
				return true
			}
			q = append(q, 0x80)
		}
	}
	return false
}

// checkUTF8 compares UTF8 with package utf8, for in cut after at bytes, and byte by byte.
func checkUTF8(t *testing.T, in []byte, at int) {
	t.Helper()
	bad := firstInvalid(in)
	var u UTF8
	for i := range in {
		if ok := u.Valid(in[i : i+1]); ok != (i < bad) {
			t.Fatalf("%x: byte %d: %t, but the first invalid one is %d", in, i, ok, bad)
		} else if !ok {
			break
		}
	}
	if bad == len(in) && u.Complete() != utf8.Valid(in) {
		t.Fatalf("%x: complete is %t", in, u.Complete())
	}
	u.Reset()
	ok := u.Valid(in[:at])
	if ok != (bad >= at) {
		t.Fatalf("%x: the first %d bytes: %t, but the first invalid one is %d", in, at, ok, bad)
	}
	if ok {
		if ok = u.Valid(in[at:]); ok != (bad == len(in)) {
			t.Fatalf("%x: cut at %d: %t, but the first invalid one is %d", in, at, ok, bad)
		}
		if ok && u.Complete() != utf8.Valid(in) {
			t.Fatalf("%x: cut at %d: complete is %t", in, at, u.Complete())
		}
	}
}

// TestUTF8 tries all pairs of bytes, and all characters.
func TestUTF8(t *testing.T) {
	for a := range 256 {
		for b := range 256 {
			checkUTF8(t, []byte{byte(a), byte(b)}, 1)
		}
	}
	for r := rune(0); r <= utf8.MaxRune; r += 1 + r/64 {
		if r >= 0xd800 && r < 0xe000 {
			continue
		}
		in := utf8.AppendRune([]byte("a"), r)
		for at := range in {
			var u UTF8
			if !u.Valid(in[:at]) || u.Complete() != utf8.Valid(in[:at]) || !u.Valid(in[at:]) || !u.Complete() {
				t.Errorf("%x is refused if cut at %d", in, at)
			}
		}
	}
}

func FuzzUTF8(f *testing.F) {
	for _, s := range []string{"hello", "κόσμε", "\xed\xa0\x80", "\xf4\x90\x80\x80", "a\xf0\x9f\x98\x80b", "\xe0\x80\xaf", "\xc0\xaf", "\xf0\x8f\xbf\xbf"} {
		f.Add([]byte(s), 1)
		f.Add([]byte(s), len(s)-1)
	}
	f.Fuzz(func(t *testing.T, in []byte, at int) {
		in = in[:min(len(in), 64)]
		checkUTF8(t, in, min(max(at, 0), len(in)))
	})
}
