package wsframe

import (
	"bytes"
	"fmt"
	"slices"
	"strings"
	"testing"
)

// readLog reads in, cut into pieces at places drawn from cuts, and logs what it has: the
// pieces of a message are joined, since they depend on the cuts.
func readLog(t *testing.T, r Reader, in, cuts []byte) (log []string) {
	var message []byte // with the opcode in front
	done, have, want := 0, 0, 1
	for i := 0; have < len(in); i++ {
		step := len(in)
		if len(cuts) > 0 {
			step = 1 + int(cuts[i%len(cuts)])
		}
		have = min(have+step, len(in))
		for have-done >= want {
			b := slices.Clone(in[done:have])
			p, n, w, err := r.Read(b)
			if err != nil {
				if message != nil {
					log = append(log, fmt.Sprintf("unfinished: %x", message))
				}
				return append(log, "error: "+err.Error())
			}
			if n < 0 || n > len(b) || n == 0 && w <= len(b) {
				t.Fatalf("n %d, want %d, of %d bytes", n, w, len(b))
			}
			if !bytes.Equal(b[n:], in[done+n:have]) {
				t.Fatalf("bytes behind the %d that were taken have changed", n)
			}
			if n == 0 {
				want = w
				break
			}
			done, want = done+n, 1
			switch {
			case p.Opcode.IsControl():
				log = append(log, fmt.Sprintf("%v %x", p.Opcode, p.Payload))
				continue
			case p.First != (message == nil):
				t.Fatalf("First is %t in a message with %x", p.First, message)
			case p.First:
				message = fmt.Appendf([]byte{}, "%d %t: ", p.Opcode, p.Deflated)
			}
			message = append(message, p.Payload...)
			if r.InMessage() == p.Last {
				t.Fatalf("Last is %t, and InMessage too", p.Last)
			}
			if p.Last {
				log = append(log, fmt.Sprintf("%x", message))
				message = nil
			}
		}
	}
	if message != nil {
		log = append(log, fmt.Sprintf("unfinished: %x", message))
	}
	return log
}

// frame is a client's frame with any first byte.
func frame(first byte, payload string) string {
	h := Header{Fin: first&0x80 != 0, RSV: first >> 4 & 7, Opcode: Opcode(first & 0xf), Masked: true, Key: [4]byte{9, 8, 7, 6}, Length: int64(len(payload))}
	b := append(AppendHeader(nil, h), payload...)
	Mask(b[len(b)-len(payload):], h.Key, 0)
	return string(b)
}

func message(o Opcode, deflated bool, payload string) string {
	return fmt.Sprintf("%x", fmt.Sprintf("%d %t: %s", o, deflated, payload))
}

func TestReader(t *testing.T) {
	failed := func(err error) string { return "error: " + err.Error() }
	long := strings.Repeat("0123456789", 20000)
	tests := []struct {
		name string
		r    Reader
		in   string
		want []string
	}{
		{"messages", Reader{}, frame(0x81, "hello") + frame(0x82, "") + frame(0x82, long), []string{message(Text, false, "hello"), message(Binary, false, ""), message(Binary, false, long)}},
		{"fragments", Reader{}, frame(0x01, "a") + frame(0x00, "") + frame(0x00, "b") + frame(0x80, "c") + frame(0x82, "d"), []string{message(Text, false, "abc"), message(Binary, false, "d")}},
		{"empty fragments", Reader{}, frame(0x01, "") + frame(0x80, ""), []string{message(Text, false, "")}},
		{"control between fragments", Reader{}, frame(0x02, "a") + frame(0x89, "ping") + frame(0x8a, "") + frame(0x80, "b"), []string{"ping 70696e67", "pong ", message(Binary, false, "ab")}},
		{"a server's", Reader{FromServer: true}, "\x81\x02hi\x88\x00", []string{message(Text, false, "hi"), "close "}},
		{"deflated", Reader{Deflate: true}, frame(0x41, "a") + frame(0x80, "b") + frame(0x81, "c"), []string{message(Text, true, "ab"), message(Text, false, "c")}},
		{"a frame at the limit", Reader{MaxFrame: 3}, frame(0x81, "abc") + frame(0x89, "ping"), []string{message(Text, false, "abc"), "ping 70696e67"}},
		{"a frame over the limit", Reader{MaxFrame: 3}, frame(0x81, "abcd"), []string{failed(errFrameSize)}},
		{"no mask", Reader{}, "\x81\x02hi", []string{failed(errUnmasked)}},
		{"a mask of a server", Reader{FromServer: true}, frame(0x81, "hi"), []string{failed(errMasked)}},
		{"nothing to continue", Reader{}, frame(0x80, "hi"), []string{failed(errNoMessage)}},
		{"a message within another", Reader{}, frame(0x01, "hi") + frame(0x81, "ho"), []string{"unfinished: " + message(Text, false, "hi"), failed(errInMessage)}},
		{"RSV1 without an extension", Reader{}, frame(0xc1, "hi"), []string{failed(errRSV)}},
		{"RSV2", Reader{Deflate: true}, frame(0xa1, "hi"), []string{failed(errRSV)}},
		{"RSV1 and 3", Reader{Deflate: true}, frame(0xd1, "hi"), []string{failed(errRSV)}},
		{"RSV1 in a continuation", Reader{Deflate: true}, frame(0x41, "hi") + frame(0xc0, "ho"), []string{"unfinished: " + message(Text, true, "hi"), failed(errRSV)}},
		{"RSV1 in a ping", Reader{Deflate: true}, frame(0xc9, ""), []string{failed(errRSV)}},
		{"reserved opcode", Reader{}, frame(0x81, "a") + frame(0x83, ""), []string{message(Text, false, "a"), failed(errOpcode)}},
		{"fragmented ping", Reader{}, frame(0x09, ""), []string{failed(errControlFragment)}},
		{"long ping", Reader{}, frame(0x89, long[:126]), []string{failed(errControlLength)}},
		{"unfinished", Reader{}, frame(0x81, "hello")[:8], []string{"unfinished: " + message(Text, false, "he")}},
	}
	for _, tt := range tests {
		for _, cuts := range [][]byte{nil, {0}, {2}, {255, 0, 40}} {
			if got := readLog(t, tt.r, []byte(tt.in), cuts); !slices.Equal(got, tt.want) {
				t.Errorf("%s, cut as %v: %.200q, want %.200q", tt.name, cuts, got, tt.want)
			}
		}
	}
}

// Left is what the announced frame still lacks.
func TestReaderLeft(t *testing.T) {
	var r Reader
	in := []byte(frame(0x81, "hello"))
	if _, n, _, err := r.Read(in[:8]); n != 8 || err != nil || r.Left() != 3 || !r.InMessage() {
		t.Errorf("n %d, err %v, %d left, in message %t", n, err, r.Left(), r.InMessage())
	}
}

// Any split of the bytes gives the same messages and the same error.
func FuzzReader(f *testing.F) {
	for _, in := range []string{
		frame(0x81, "hello") + frame(0x02, "a") + frame(0x89, "ping") + frame(0x80, "b") + frame(0x88, "\x03\xe8bye"),
		frame(0xc1, "deflated") + frame(0x80, "x"),
		frame(0x82, strings.Repeat("x", 200)) + frame(0x82, strings.Repeat("y", 70000)),
		"\x81\x02hi\x82\x7e\x00\x7f", "\x82\xff\x80", "\x01\x00\x00\x80\x00\x80\x00",
	} {
		f.Add([]byte(in), []byte{0}, false, true, int64(0))
		f.Add([]byte(in), []byte{3, 0, 9}, true, false, int64(100))
	}
	f.Fuzz(func(t *testing.T, in, cuts []byte, fromServer, deflate bool, most int64) {
		r := Reader{FromServer: fromServer, Deflate: deflate, MaxFrame: max(0, most)}
		want := readLog(t, r, in, nil)
		if got := readLog(t, r, in, cuts); !slices.Equal(got, want) {
			t.Fatalf("cut as %v: %q\nnot cut: %q", cuts, got, want)
		}
	})
}

// What the Append functions write, a Reader reads.
func FuzzRoundTrip(f *testing.F) {
	f.Add([]byte("hello"), byte(1), uint32(0))
	f.Add(make([]byte, 70000), byte(2), uint32(0xdeadbeef))
	f.Add([]byte("ping"), byte(9), uint32(1))
	f.Fuzz(func(t *testing.T, payload []byte, o byte, key uint32) {
		op := []Opcode{Text, Binary, Close, Ping, Pong}[o%5]
		if op.IsControl() {
			payload = payload[:min(len(payload), MaxControl)]
		}
		for _, fromServer := range []bool{false, true} {
			var in []byte
			if fromServer {
				in = AppendFrame(nil, op, payload)
			} else {
				in = AppendMasked(nil, op, payload, [4]byte{byte(key), byte(key >> 8), byte(key >> 16), byte(key >> 24)})
			}
			r := Reader{FromServer: fromServer}
			p, n, _, err := r.Read(in)
			if err != nil || n != len(in) || p.Opcode != op || !p.First || !p.Last || !bytes.Equal(p.Payload, payload) {
				t.Fatalf("%v %x became %+v, n %d of %d, err %v", op, payload, p, n, len(in), err)
			}
		}
	})
}
