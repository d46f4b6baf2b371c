package resp

import (
	"bytes"
	"errors"
	"math"
	"slices"
	"strconv"
	"strings"
	"testing"
)

// words formats the result of ReadRequest.
func words(args [][]byte) []string {
	out := make([]string, len(args))
	for i, arg := range args {
		out[i] = string(arg)
	}
	return out
}

func TestReadRequest(t *testing.T) {
	tests := []struct {
		name string
		in   string
		args []string
		rest string // what is left behind the request
	}{
		{"ping", "*1\r\n$4\r\nPING\r\n", []string{"PING"}, ""},
		{"two in a row", "*1\r\n$4\r\nPING\r\n*1\r\n$4\r\nQUIT\r\n", []string{"PING"}, "*1\r\n$4\r\nQUIT\r\n"},
		{"empty argument", "*2\r\n$3\r\nGET\r\n$0\r\n\r\n", []string{"GET", ""}, ""},
		{"binary argument", "*2\r\n$3\r\nGET\r\n$4\r\n\r\n\x00\xff\r\n", []string{"GET", "\r\n\x00\xff"}, ""},
		{"no arguments", "*0\r\nPING\r\n", nil, "PING\r\n"},
		{"null array", "*-1\r\nPING\r\n", nil, "PING\r\n"},
		{"very negative count", "*-9223372036854775808\r\n", nil, ""},
		{"bytes behind CR are not looked at", "*1\rx$4\r\rPINGab", []string{"PING"}, ""},
		{"longest count line", "*" + strings.Repeat("0", 65535) + "\r\n", nil, "error: invalid multibulk length"},

		{"inline", "PING\r\n", []string{"PING"}, ""},
		{"inline, bare LF", "SET k v\nPING\n", []string{"SET", "k", "v"}, "PING\n"},
		{"blank line", "\r\nPING\r\n", nil, "PING\r\n"},
		{"bare LF", "\nPING\r\n", nil, "PING\r\n"},
		{"inline of blanks", " \t\v \r\n", nil, ""},
		{"longest inline", strings.Repeat("x", 65535) + "\n", []string{strings.Repeat("x", 65535)}, ""},
		{"inline that looks like a bulk", "$4\r\n", []string{"$4"}, ""},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			args, n, want, err := ReadRequest([]byte(tt.in), nil, Limits{})
			if text, isError := strings.CutPrefix(tt.rest, "error: "); isError {
				if err == nil || err.Error() != text || n != 0 {
					t.Fatalf("n %d, err %v, want error %q", n, err, text)
				}
				return
			}
			if err != nil || n == 0 || want != 0 {
				t.Fatalf("n %d, want %d, err %v", n, want, err)
			}
			if got := words(args); !slices.Equal(got, tt.args) {
				t.Errorf("args %q, want %q", got, tt.args)
			}
			if rest := tt.in[n:]; rest != tt.rest {
				t.Errorf("rest %q, want %q", rest, tt.rest)
			}
		})
	}
}

func TestReadRequestErrors(t *testing.T) {
	long := strings.Repeat("1", 64<<10)
	noAuth := Limits{Unauthenticated: true}
	tests := []struct {
		name string
		in   string
		lim  Limits
		want string // "" is: incomplete
	}{
		{"count not a number", "*x\r\n", Limits{}, "invalid multibulk length"},
		{"count empty", "*\r\n", Limits{}, "invalid multibulk length"},
		{"count with a plus", "*+1\r\n", Limits{}, "invalid multibulk length"},
		{"count with a leading zero", "*01\r\n", Limits{}, "invalid multibulk length"},
		{"count with a space", "*1 \r\n", Limits{}, "invalid multibulk length"},
		{"minus zero", "*-0\r\n", Limits{}, "invalid multibulk length"},
		{"largest count", "*2147483647\r\n", Limits{}, ""},
		{"count too large", "*2147483648\r\n", Limits{}, "invalid multibulk length"},
		{"count beyond int64", "*9223372036854775808\r\n", Limits{}, "invalid multibulk length"},
		{"count wraps uint64", "*18446744073709551617\r\n", Limits{}, "invalid multibulk length"},
		{"count above own limit", "*4\r\n", Limits{Args: 3}, "invalid multibulk length"},
		{"count at own limit", "*3\r\n", Limits{Args: 3}, ""},
		{"count line at 64 KiB", "*" + long[1:], Limits{}, ""},
		{"count line beyond 64 KiB", "*" + long, Limits{}, "too big mbulk count string"},
		{"zero byte hides the line's end", "*1\x00\r\n", Limits{}, ""},
		{"zero byte in a long line", "*\x00\r" + long, Limits{}, "too big mbulk count string"},
		{"zero byte late in a long line", "*" + long[100:] + "\x00\r\n" + long, Limits{}, "too big mbulk count string"},
		{"unauthenticated, 10 arguments", "*10\r\n", noAuth, ""},
		{"unauthenticated, 11 arguments", "*11\r\n", noAuth, "unauthenticated multibulk length"},

		{"no dollar", "*1\r\n4\r\n", Limits{}, "expected '$', got '4'"},
		{"no dollar, line incomplete", "*1\r\nPING", Limits{}, ""},
		{"no dollar but CR", "*1\r\n\r\n", Limits{}, "expected '$', got ' '"},
		{"no dollar but LF", "*1\r\n\n\r\n", Limits{}, "expected '$', got ' '"},
		{"no dollar but a high byte", "*1\r\n\xfe\r\n", Limits{}, "expected '$', got '\xfe'"},
		{"length negative", "*1\r\n$-1\r\n", Limits{}, "invalid bulk length"},
		{"length not a number", "*1\r\n$abc\r\n", Limits{}, "invalid bulk length"},
		{"length empty", "*1\r\n$\r\n", Limits{}, "invalid bulk length"},
		{"largest length", "*1\r\n$536870912\r\n", Limits{}, ""},
		{"length too large", "*1\r\n$536870913\r\n", Limits{}, "invalid bulk length"},
		{"length above own limit", "*1\r\n$11\r\n", Limits{Bulk: 10}, "invalid bulk length"},
		{"length beyond any limit", "*1\r\n$9223372036854775807\r\n", Limits{Bulk: math.MaxInt}, "invalid bulk length"},
		{"length line at 64 KiB", "*1\r\n$" + long[1:], Limits{}, ""},
		{"length line beyond 64 KiB", "*1\r\n$" + long, Limits{}, "too big bulk count string"},
		{"second length wrong", "*2\r\n$1\r\na\r\n$x\r\n", Limits{}, "invalid bulk length"},
		{"unauthenticated, 16 KiB", "*1\r\n$16384\r\n", noAuth, ""},
		{"unauthenticated, above 16 KiB", "*1\r\n$16385\r\n", noAuth, "unauthenticated bulk length"},

		{"inline at 64 KiB", long, Limits{}, ""},
		{"inline beyond 64 KiB", long + "1", Limits{}, "too big inline request"},
		{"inline, zero byte", "PI\x00NG\r\n", Limits{}, ""},
		{"inline beyond own limit", "PING PONG\r\n", Limits{Inline: 4}, "too big inline request"},
		{"quote stays open", "SET \"k\r\n", Limits{}, "unbalanced quotes in request"},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			args, n, want, err := ReadRequest([]byte(tt.in), nil, tt.lim)
			if n != 0 || len(args) != 0 {
				t.Fatalf("n %d, args %q", n, args)
			}
			if tt.want == "" {
				if err != nil || want <= len(tt.in) {
					t.Fatalf("want %d of %d bytes, err %v", want, len(tt.in), err)
				}
				return
			}
			var pe *ProtocolError
			if !errors.As(err, &pe) || pe.Error() != tt.want {
				t.Fatalf("err %v, want %q", err, tt.want)
			}
		})
	}
}

func TestReadRequestWant(t *testing.T) {
	tests := []struct {
		in   string
		want int
	}{
		{"", 1},
		{"*", 2},
		{"*2\r", 4},
		{"*2\r\n", 5},
		{"*1\r\n$5\r\n", 15},      // the argument whole, and its line break
		{"*1\r\n$5\r\nhello", 15}, //
		{"*2\r\n$5\r\n", 17},      // and two bytes of the next
		{"*1\r\n$536870912\r\n", 16 + 512<<20 + 2},  //
		{"*2\r\n$1\r\na\r\n$1000\r\nx", 18 + 1002},  //
		{"*2\r\n$1\r\na\r\n$1000\r\nxx", 18 + 1002}, //
		{"PING", 5},
	}
	for _, tt := range tests {
		_, n, want, err := ReadRequest([]byte(tt.in), nil, Limits{})
		if n != 0 || err != nil || want != tt.want {
			t.Errorf("%q: n %d, want %d, err %v; want should be %d", tt.in, n, want, err, tt.want)
		}
	}
}

func TestArgumentsAliasInput(t *testing.T) {
	for _, in := range []string{"*2\r\n$3\r\nGET\r\n$1\r\nk\r\n", "GET k\r\n"} {
		b := []byte(in)
		args, _, _, err := ReadRequest(b, nil, Limits{})
		if err != nil {
			t.Fatal(err)
		}
		b[bytes.IndexByte(b, 'k')] = 'K'
		if string(args[1]) != "K" {
			t.Errorf("%q: the argument is a copy", in)
		}
		for _, arg := range args {
			if cap(arg) != len(arg) {
				t.Errorf("%q: append to argument %q would write into the input", in, arg)
			}
		}
	}
}

// A request with many arguments in small pieces must not be parsed again for each
// piece: that would take minutes here.
func TestPartialRequestIsLinear(t *testing.T) {
	const count = 200_000
	in := AppendArray(nil, count)
	for i := range count {
		in = AppendBulkString(in, strconv.Itoa(i))
	}
	var p PartialRequest
	var args [][]byte
	have := 0
	for have < len(in) {
		have = min(have+16, len(in))
		var n int
		var err error
		args, n, _, err = p.Read(in[:have], args, Limits{})
		if err != nil || n != 0 && have < len(in) {
			t.Fatalf("with %d of %d bytes: n %d, err %v", have, len(in), n, err)
		}
	}
	if len(args) != count || string(args[count-1]) != strconv.Itoa(count-1) {
		t.Fatalf("%d arguments", len(args))
	}
}

func TestPartialRequestStartsAnew(t *testing.T) {
	var p PartialRequest
	first := []byte("*2\r\n$1\r\na\r\n$1\r\nb\r\n")
	for i := range first {
		if _, n, _, err := p.Read(first[:i], nil, Limits{}); n != 0 || err != nil {
			t.Fatalf("at %d: n %d, err %v", i, n, err)
		}
	}
	for _, in := range []string{string(first), "*1\r\n$1\r\nc\r\n", "d e f\r\n"} {
		args, n, _, err := p.Read([]byte(in), nil, Limits{})
		if n != len(in) || err != nil {
			t.Fatalf("%q: args %q, n %d, err %v", in, args, n, err)
		}
	}
}
