package resp

import (
	"errors"
	"math"
	"reflect"
	"strconv"
	"strings"
	"testing"
)

func str(kind Kind, s string) Value { return Value{Kind: kind, Str: []byte(s)} }

func TestReadValue(t *testing.T) {
	one, two := Value{Kind: Int, Int: 1}, Value{Kind: Int, Int: 2}
	null := Value{Kind: Null}
	tests := []struct {
		in   string
		want Value
	}{
		{"+OK\r\n", str(Simple, "OK")},
		{"+\r\n", str(Simple, "")},
		{"+a\rb\r\n", str(Simple, "a\rb")},
		{"-ERR no\r\n", str(Error, "ERR no")},
		{":-12\r\n", Value{Kind: Int, Int: -12}},
		{":+12\r\n", Value{Kind: Int, Int: 12}},
		{"$0\r\n\r\n", str(Bulk, "")},
		{"$4\r\na\r\nb\r\n", str(Bulk, "a\r\nb")},
		{"$-1\r\n", null},
		{"*-1\r\n", null},
		{"_\r\n", null},
		{"#t\r\n", Value{Kind: Bool, Int: 1}},
		{"#f\r\n", Value{Kind: Bool}},
		{",3.25\r\n", Value{Kind: Double, Float: 3.25}},
		{",1e-7\r\n", Value{Kind: Double, Float: 1e-7}},
		{",inf\r\n", Value{Kind: Double, Float: math.Inf(1)}},
		{",-inf\r\n", Value{Kind: Double, Float: math.Inf(-1)}},
		{"(-123456789012345678901234567890\r\n", str(BigNumber, "-123456789012345678901234567890")},
		{"!3\r\nE x\r\n", str(BulkError, "E x")},
		{"=6\r\ntxt:hi\r\n", Value{Kind: Verbatim, Format: [3]byte{'t', 'x', 't'}, Str: []byte("hi")}},
		{"=4\r\nmkd:\r\n", Value{Kind: Verbatim, Format: [3]byte{'m', 'k', 'd'}, Str: []byte("")}},
		{"*0\r\n", Value{Kind: Array}},
		{"*2\r\n:1\r\n*1\r\n:2\r\n", Value{Kind: Array, Elems: []Value{one, {Kind: Array, Elems: []Value{two}}}}},
		{"*3\r\n*0\r\n_\r\n$-1\r\n", Value{Kind: Array, Elems: []Value{{Kind: Array}, null, null}}},
		{"%1\r\n+k\r\n:1\r\n", Value{Kind: Map, Elems: []Value{str(Simple, "k"), one}}},
		{"~2\r\n:1\r\n:2\r\n", Value{Kind: Set, Elems: []Value{one, two}}},
		{">1\r\n:1\r\n", Value{Kind: Push, Elems: []Value{one}}},
		{"|1\r\n+k\r\n:1\r\n:2\r\n", Value{Kind: Int, Int: 2, Attr: []Value{str(Simple, "k"), one}}},
		{"|0\r\n:2\r\n", two},
		{"|1\r\n:1\r\n:2\r\n|1\r\n:2\r\n:1\r\n_\r\n", Value{Kind: Null, Attr: []Value{one, two, two, one}}},
		{"*2\r\n|1\r\n:1\r\n:2\r\n:1\r\n:2\r\n",
			Value{Kind: Array, Elems: []Value{{Kind: Int, Int: 1, Attr: []Value{one, two}}, two}}},
	}
	for _, tt := range tests {
		v, n, want, err := ReadValue([]byte(tt.in + "rest"))
		if err != nil || n != len(tt.in) || want != 0 || !reflect.DeepEqual(v, tt.want) {
			t.Errorf("%q: %+v, n %d, want %d, err %v", tt.in, v, n, want, err)
		}
		for i := range tt.in {
			if _, n, want, err := ReadValue([]byte(tt.in[:i])); n != 0 || err != nil || want <= i || want > len(tt.in) {
				t.Errorf("%q: n %d, want %d, err %v", tt.in[:i], n, want, err)
			}
		}
	}
	if v, _, _, err := ReadValue([]byte(",nan\r\n")); err != nil || !math.IsNaN(v.Float) {
		t.Errorf("nan: %v, err %v", v.Float, err)
	}
}

func TestReadValueErrors(t *testing.T) {
	tests := []struct{ in, want string }{
		{"OK", `unknown type "O"`},
		{"\xff", `unknown type "\xff"`},
		{"\r\n", `unknown type "\r"`},
		{"+OK\n", "line does not end in CR LF"},
		{"+\n", "line does not end in CR LF"},
		{"_x\r\n", "invalid null"},
		{"#x\r\n", "invalid boolean"},
		{"#tt\r\n", "invalid boolean"},
		{"#\r\n", "invalid boolean"},
		{":\r\n", "invalid integer"},
		{":1.0\r\n", "invalid integer"},
		{":+-1\r\n", "invalid integer"},
		{":9223372036854775808\r\n", "invalid integer"},
		{":" + strings.Repeat("1", 512), "too big number line"},
		{"$" + strings.Repeat("1", 512) + "\r\n", "too big number line"},
		{",\r\n", "invalid double"},
		{",0x10\r\n", "invalid double"},
		{",infinity\r\n", "invalid double"},
		{",1_0\r\n", "invalid double"},
		{",1e999\r\n", "invalid double"},
		{"(\r\n", "invalid big number"},
		{"(-\r\n", "invalid big number"},
		{"(12x\r\n", "invalid big number"},
		{"$x\r\n", "invalid length"},
		{"$-2\r\n", "invalid length"},
		{"$9223372036854775807\r\n", "invalid length"},
		{"!-1\r\n", "invalid length"},
		{"=-1\r\n", "invalid length"},
		{"=3\r\ntxt\r\n", "invalid length"},
		{"=4\r\ntext\r\n", "invalid verbatim string"},
		{"$1\r\nab\r\n", "string does not end in CR LF"},
		{"*-2\r\n", "invalid length"},
		{"%-1\r\n", "invalid length"},
		{"*9223372036854775807\r\n", "invalid length"},
		{"$?\r\n", "streamed types are not supported"},
		{"*?\r\n", "streamed types are not supported"},
		{"*2\r\n:1\r\n:x\r\n", "invalid integer"},
		{strings.Repeat("*1\r\n", MaxDepth+1), "values nested too deep"},
		{strings.Repeat("|0\r\n", MaxDepth+1), "values nested too deep"},
	}
	for _, tt := range tests {
		_, n, _, err := ReadValue([]byte(tt.in))
		var pe *ProtocolError
		if n != 0 || !errors.As(err, &pe) || err.Error() != tt.want {
			t.Errorf("%q: n %d, err %v, want %q", tt.in, n, err, tt.want)
		}
	}
}

func TestReadValueWant(t *testing.T) {
	tests := []struct {
		in   string
		want int
	}{
		{"", 1},
		{"+OK\r", 5},
		{"$1000\r\nab", 1009},
		{"*2\r\n:1\r\n", 9},
		{"*2\r\n$1000000\r\n", 14 + 1000002},
	}
	for _, tt := range tests {
		if _, n, want, err := ReadValue([]byte(tt.in)); n != 0 || err != nil || want != tt.want {
			t.Errorf("%q: n %d, want %d, err %v; want should be %d", tt.in, n, want, err, tt.want)
		}
	}
}

func TestDeepestValue(t *testing.T) {
	in := strings.Repeat("*1\r\n", MaxDepth) + ":1\r\n"
	v, n, _, err := ReadValue([]byte(in))
	if err != nil || n != len(in) {
		t.Fatalf("n %d of %d, err %v", n, len(in), err)
	}
	for range MaxDepth {
		v = v.Elems[0]
	}
	if v.Int != 1 {
		t.Errorf("innermost value %+v", v)
	}
}

// A value in many pieces must not be parsed again for each piece, whether it has many
// elements, an inner array with many elements, or a long line: that would take
// minutes here.
func TestPartialValueIsLinear(t *testing.T) {
	const count = 200_000
	numbers := AppendArray(AppendArray(nil, 1), count)
	for i := range count {
		numbers = AppendBulkString(numbers, strconv.Itoa(i))
	}
	for _, tt := range []struct {
		name  string
		in    []byte
		piece int
	}{
		{"elements", numbers, 16},
		{"line", []byte("+" + strings.Repeat("x", 1<<20) + "\r\n"), 1},
	} {
		var p PartialValue
		for have := 0; have < len(tt.in); {
			have = min(have+tt.piece, len(tt.in))
			_, n, _, err := p.Read(tt.in[:have])
			if err != nil || (n == len(tt.in)) != (have == len(tt.in)) {
				t.Fatalf("%s: with %d of %d bytes: n %d, err %v", tt.name, have, len(tt.in), n, err)
			}
		}
	}
}

func TestAppendValue(t *testing.T) {
	for _, in := range []string{
		"+OK\r\n", "-ERR\r\n", ":1\r\n", "$1\r\na\r\n", "_\r\n", "#t\r\n", "#f\r\n", ",0.5\r\n", ",-inf\r\n", "(12\r\n",
		"!3\r\nERR\r\n", "=5\r\ntxt:a\r\n", "*2\r\n:1\r\n%1\r\n:1\r\n~1\r\n:2\r\n", ">1\r\n:1\r\n", "|1\r\n+a\r\n+b\r\n:1\r\n",
	} {
		v, _, _, err := ReadValue([]byte(in))
		if err != nil {
			t.Fatal(err)
		}
		if got := string(AppendValue(nil, v)); got != in {
			t.Errorf("%q became %q", in, got)
		}
	}
}

func TestAppendValueOfNoKind(t *testing.T) {
	defer func() {
		if recover() == nil {
			t.Error("the zero Value was appended as something")
		}
	}()
	AppendValue(nil, Value{})
}
