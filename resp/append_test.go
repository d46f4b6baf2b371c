package resp

import (
	"math"
	"testing"
)

func TestAppend(t *testing.T) {
	tests := []struct {
		name string
		got  []byte
		want string
	}{
		{"Simple", AppendSimple(nil, "OK"), "+OK\r\n"},
		{"Error", AppendError(nil, "ERR syntax error"), "-ERR syntax error\r\n"},
		{"Error with line breaks", AppendError(nil, "\r\nERR a\r\nb\nc\r\n"), "-ERR a  b c\r\n"},
		{"Int", AppendInt(nil, math.MinInt64), ":-9223372036854775808\r\n"},
		{"Bulk", AppendBulk(nil, []byte("a\r\n")), "$3\r\na\r\n\r\n"},
		{"Bulk of nil", AppendBulk(nil, nil), "$0\r\n\r\n"},
		{"BulkString", AppendBulkString(nil, "hello"), "$5\r\nhello\r\n"},
		{"BulkInt", AppendBulkInt(nil, -10), "$3\r\n-10\r\n"},
		{"Null", AppendNull(nil), "$-1\r\n"},
		{"NullArray", AppendNullArray(nil), "*-1\r\n"},
		{"Array", AppendArray(nil, 0), "*0\r\n"},
		{"Null3", AppendNull3(nil), "_\r\n"},
		{"Map", AppendMap(nil, 2), "%2\r\n"},
		{"Set", AppendSet(nil, 3), "~3\r\n"},
		{"Push", AppendPush(nil, 4), ">4\r\n"},
		{"Attribute", AppendAttribute(nil, 1), "|1\r\n"},
		{"Bool", AppendBool(AppendBool(nil, true), false), "#t\r\n#f\r\n"},
		{"BigNumber", AppendBigNumber(nil, "-12345678901234567890"), "(-12345678901234567890\r\n"},
		{"Verbatim", AppendVerbatim(nil, "txt", "hi"), "=6\r\ntxt:hi\r\n"},
		{"Verbatim, short format", AppendVerbatim(nil, "md", ""), "=4\r\nmd :\r\n"},
		{"Verbatim, long format", AppendVerbatim(nil, "text", ""), "=4\r\ntex:\r\n"},
		{"BulkError", AppendBulkError(nil, "ERR a\r\nb"), "!8\r\nERR a\r\nb\r\n"},
		{"Request", AppendRequest(nil, "GET", "k"), "*2\r\n$3\r\nGET\r\n$1\r\nk\r\n"},
		{"appended", AppendInt([]byte("+OK\r\n"), 1), "+OK\r\n:1\r\n"},
	}
	for _, tt := range tests {
		if string(tt.got) != tt.want {
			t.Errorf("%s: %q, want %q", tt.name, tt.got, tt.want)
		}
	}
}

// The texts are what C's printf gives for "%.17g".
func TestAppendDouble(t *testing.T) {
	tests := []struct {
		f    float64
		want string
	}{
		{0, "0"},
		{math.Copysign(0, -1), "-0"},
		{1, "1"},
		{10, "10"},
		{-2.5, "-2.5"},
		{3.1, "3.1000000000000001"},
		{0.0001, "0.0001"},
		{0.00001, "1.0000000000000001e-05"},
		{1e16, "10000000000000000"},
		{1e17, "1e+17"},
		{123456789012345680, "1.2345678901234568e+17"},
		{1e100, "1e+100"},
		{math.MaxFloat64, "1.7976931348623157e+308"},
		{math.SmallestNonzeroFloat64, "4.9406564584124654e-324"},
		{math.Inf(1), "inf"},
		{math.Inf(-1), "-inf"},
		{math.NaN(), "nan"},
	}
	for _, tt := range tests {
		if got := string(AppendDouble(nil, tt.f)); got != ","+tt.want+"\r\n" {
			t.Errorf("%v: %q, want %q", tt.f, got, tt.want)
		}
	}
}

func TestReply(t *testing.T) {
	tests := []struct {
		name         string
		add          func(r *Reply)
		resp2, resp3 string
	}{
		{"Simple", func(r *Reply) { r.Simple("OK") }, "+OK\r\n", "+OK\r\n"},
		{"Error", func(r *Reply) { r.Error("ERR no") }, "-ERR no\r\n", "-ERR no\r\n"},
		{"Int", func(r *Reply) { r.Int(-7) }, ":-7\r\n", ":-7\r\n"},
		{"Bulk", func(r *Reply) { r.Bulk([]byte("ab")) }, "$2\r\nab\r\n", "$2\r\nab\r\n"},
		{"BulkString", func(r *Reply) { r.BulkString("ab") }, "$2\r\nab\r\n", "$2\r\nab\r\n"},
		{"BulkInt", func(r *Reply) { r.BulkInt(100) }, "$3\r\n100\r\n", "$3\r\n100\r\n"},
		{"Array", func(r *Reply) { r.Array(2) }, "*2\r\n", "*2\r\n"},
		{"Null", func(r *Reply) { r.Null() }, "$-1\r\n", "_\r\n"},
		{"NullArray", func(r *Reply) { r.NullArray() }, "*-1\r\n", "_\r\n"},
		{"Map", func(r *Reply) { r.Map(7) }, "*14\r\n", "%7\r\n"},
		{"Set", func(r *Reply) { r.Set(2) }, "*2\r\n", "~2\r\n"},
		{"Push", func(r *Reply) { r.Push(3) }, "*3\r\n", ">3\r\n"},
		{"Double", func(r *Reply) { r.Double(0.5) }, "$3\r\n0.5\r\n", ",0.5\r\n"},
		{"Double inf", func(r *Reply) { r.Double(math.Inf(-1)) }, "$4\r\n-inf\r\n", ",-inf\r\n"},
		{"Bool true", func(r *Reply) { r.Bool(true) }, ":1\r\n", "#t\r\n"},
		{"Bool false", func(r *Reply) { r.Bool(false) }, ":0\r\n", "#f\r\n"},
		{"BigNumber", func(r *Reply) { r.BigNumber("99") }, "$2\r\n99\r\n", "(99\r\n"},
		{"Verbatim", func(r *Reply) { r.Verbatim("txt", "hi") }, "$2\r\nhi\r\n", "=6\r\ntxt:hi\r\n"},
	}
	for _, tt := range tests {
		for proto, want := range []string{0: tt.resp2, 2: tt.resp2, 3: tt.resp3} {
			if want == "" {
				continue // there is no RESP1
			}
			r := Reply{B: []byte("+\r\n"), Proto: proto}
			tt.add(&r)
			if got := string(r.B); got != "+\r\n"+want {
				t.Errorf("%s in RESP%d: %q, want %q", tt.name, proto, got, want)
			}
		}
	}
}

func TestParseInt(t *testing.T) {
	good := map[string]int64{
		"0": 0, "1": 1, "-1": -1, "10": 10, "9223372036854775807": math.MaxInt64, "-9223372036854775808": math.MinInt64,
	}
	for text, want := range good {
		if v, ok := ParseInt([]byte(text)); !ok || v != want {
			t.Errorf("%q: %d, %v", text, v, ok)
		}
	}
	for _, text := range []string{
		"", "-", "+1", "00", "01", "-0", "-01", " 1", "1 ", "1x", "x", "1.0", "0x1", "--1", "1\x00",
		"9223372036854775808", "-9223372036854775809", "18446744073709551615", "18446744073709551616",
		"99999999999999999999", "-99999999999999999999", "111111111111111111111",
	} {
		if v, ok := ParseInt([]byte(text)); ok {
			t.Errorf("%q: %d, want none", text, v)
		}
	}
}
