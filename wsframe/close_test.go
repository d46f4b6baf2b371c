package wsframe

import (
	"strings"
	"testing"
)

func TestCodes(t *testing.T) {
	for c := range 65536 {
		want := c >= 1000 && c <= 1014 && c != 1004 && c != 1005 && c != 1006 || c >= 3000 && c < 5000
		if got := Code(c).MaySend(); got != want {
			t.Errorf("%d: %t, want %t", c, got, want)
		}
	}
	for c, want := range map[Code]string{1000: "1000 (normal closure)", 1004: "1004", 1015: "1015 (TLS handshake)", 999: "999", 4000: "4000"} {
		if got := c.String(); got != want {
			t.Errorf("%q, want %q", got, want)
		}
	}
}

func TestReadClose(t *testing.T) {
	tests := []struct {
		in     string
		code   Code
		reason string
		err    error
	}{
		{"", CodeNoStatus, "", nil},
		{"\x03", 0, "", errCloseLength},
		{"\x03\xe8", CodeNormal, "", nil},
		{"\x0f\xa0bye", 4000, "bye", nil},
		{"\x03\xe9" + strings.Repeat("*", MaxReason), CodeGoingAway, strings.Repeat("*", MaxReason), nil},
		{"\x00\x00", 0, "", errCloseCode},
		{"\x03\xee", 0, "", errCloseCode},
		{"\xff\xff", 0, "", errCloseCode},
		{"\x03\xe8\xed\xa0\x80", 0, "", errCloseReason},
		{"\x03\xe8\xce", 0, "", errCloseReason},
	}
	for _, tt := range tests {
		code, reason, err := ReadClose([]byte(tt.in))
		if code != tt.code || string(reason) != tt.reason || err != tt.err {
			t.Errorf("%x: %v, %q, %v", tt.in, code, reason, err)
		}
		if tt.err == nil {
			if got := string(AppendClose(nil, code, tt.reason)); got != tt.in {
				t.Errorf("%v, %q became %x, want %x", code, tt.reason, got, tt.in)
			}
		}
	}
}

func TestAppendClose(t *testing.T) {
	long := strings.Repeat("*", MaxReason-1)
	for _, tt := range []struct{ reason, want string }{
		{long + "äö", long},
		{long + "xö", long + "x"},
		{"\xff", ""},
	} {
		if got := string(AppendClose([]byte("x"), CodeNormal, tt.reason)); got != "x\x03\xe8"+tt.want {
			t.Errorf("%q became %q", tt.reason, got)
		}
	}
	defer func() {
		if s, _ := recover().(string); !strings.Contains(s, "1006 (abnormal closure) may not be sent") {
			t.Errorf("it panicked with %q", s)
		}
	}()
	AppendClose(nil, CodeAbnormal, "")
}

func FuzzReadClose(f *testing.F) {
	f.Add([]byte("\x03\xe8bye"))
	f.Add([]byte{3})
	f.Fuzz(func(t *testing.T, in []byte) {
		in = in[:min(len(in), MaxControl)]
		code, reason, err := ReadClose(in)
		if err == nil && string(AppendClose(nil, code, string(reason))) != string(in) {
			t.Errorf("%x became %v, %q", in, code, reason)
		}
	})
}
