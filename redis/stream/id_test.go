package stream

import (
	"math"
	"testing"
)

func TestParse(t *testing.T) {
	for _, x := range []struct {
		text string
		id   ID
		ok   bool
	}{
		{"1-2", ID{1, 2}, true},
		{"7", ID{7, 99}, true},
		{"18446744073709551615-18446744073709551615", MaxID, true},
		{"18446744073709551616-0", ID{}, false},
		{"0-18446744073709551616", ID{}, false},
		{"007-+5", ID{7, 5}, true},
		{" 1- 2", ID{1, 2}, true},
		{"1--2", ID{}, false},
		{"1--02", ID{1, math.MaxUint64 - 1}, true},
		{"1-2\x00x", ID{1, 2}, true},
		{"", ID{}, false},
		{"-", ID{}, false},
		{"1-", ID{}, false},
		{"-1", ID{}, false},
		{"1-2-3", ID{}, false},
		{"1-*", ID{}, false},
		{"1-2 ", ID{}, false},
		{"x", ID{}, false},
	} {
		if id, ok := Parse([]byte(x.text), 99); ok != x.ok || ok && id != x.id {
			t.Errorf("%q is %v, %v", x.text, id, ok)
		}
	}
	if id, auto, ok := ParseAuto([]byte("5-*")); id != (ID{5, 0}) || !auto || !ok {
		t.Errorf("5-* is %v, %v, %v", id, auto, ok)
	}
}

func FuzzParse(f *testing.F) {
	f.Add([]byte("1-2"))
	f.Add([]byte("18446744073709551615-*"))
	f.Fuzz(func(t *testing.T, text []byte) {
		id, auto, ok := ParseAuto(text)
		if !ok || auto {
			return
		}
		if again, ok := Parse(id.AppendTo(nil), 1); !ok || again != id {
			t.Errorf("%q is %v, and %v", text, id, again)
		}
		if next, ok := id.Next(); ok {
			if prev, _ := next.Prev(); prev != id || !id.Less(next) {
				t.Errorf("%v is followed by %v", id, next)
			}
		}
	})
}
