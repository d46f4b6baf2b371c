package websocket

import (
	"bytes"
	"compress/flate"
	"fmt"
	"io"
	"math/rand/v2"
	"net/http"
	"strings"
	"testing"

	"github.com/rondo-go/rondo/rondotest"
	"github.com/rondo-go/rondo/wsframe"
)

// A stock is the other side's compression, with the standard library's package: so nothing
// is tested against itself.
type stock struct {
	sent, received []byte // windows; nil if there is no context takeover
	keeps          bool   // the side that sends has context takeover
	reads          bool   // the side that receives has
}

// deflate compresses a message.
func (s *stock) deflate(message string) string {
	var b bytes.Buffer
	w, err := flate.NewWriterDict(&b, 6, s.sent)
	if err != nil {
		panic(err)
	}
	io.WriteString(w, message)
	w.Flush()
	if s.keeps {
		s.sent = append(s.sent, message...)
		s.sent = s.sent[max(0, len(s.sent)-32<<10):]
	}
	return strings.TrimSuffix(b.String(), "\x00\x00\xff\xff")
}

// inflate decompresses a message, and returns the longest distance that it uses.
func (s *stock) inflate(t *testing.T, compressed string) (message string, distance int) {
	t.Helper()
	in := compressed + "\x00\x00\xff\xff\x01\x00\x00\xff\xff"
	b, err := io.ReadAll(flate.NewReaderDict(strings.NewReader(in), s.received))
	if err != nil {
		t.Fatalf("the message cannot be decompressed: %v", err)
	}
	if s.reads {
		s.received = append(s.received, b...)
		s.received = s.received[max(0, len(s.received)-32<<10):]
	}
	return string(b), longestDistance(in)
}

// longestDistance returns the longest distance of a match in a stream of DEFLATE (RFC
// 1951).
func longestDistance(in string) (longest int) {
	at := 0
	bits := func(n int) (v int) {
		for i := range n {
			v |= int(in[at/8]>>(at%8)&1) << i
			at++
		}
		return v
	}
	symbol := func(codes map[[2]int]int) int {
		for code, n := 0, 1; ; n++ {
			code = code<<1 | bits(1)
			if s, ok := codes[[2]int{n, code}]; ok {
				return s
			}
		}
	}
	codesOf := func(lengths []int) map[[2]int]int {
		codes := make(map[[2]int]int)
		code := 0
		for n := 1; n <= 15; n++ {
			for s, length := range lengths {
				if length == n {
					codes[[2]int{n, code}] = s
					code++
				}
			}
			code <<= 1
		}
		return codes
	}
	for final := false; !final; {
		final = bits(1) == 1
		kind := bits(2)
		if kind == 0 {
			at = (at + 7) / 8 * 8
			n := bits(16)
			at += 16 + 8*n
			continue
		}
		lengths, distances := make([]int, 288), make([]int, 30)
		for i := range lengths {
			switch {
			case i < 144 || i >= 280:
				lengths[i] = 8
			case i < 256:
				lengths[i] = 9
			default:
				lengths[i] = 7
			}
		}
		for i := range distances {
			distances[i] = 5
		}
		if kind == 2 {
			nl, nd, nc := bits(5)+257, bits(5)+1, bits(4)+4
			order := []int{16, 17, 18, 0, 8, 7, 9, 6, 10, 5, 11, 4, 12, 3, 13, 2, 14, 1, 15}
			small := make([]int, 19)
			for i := range nc {
				small[order[i]] = bits(3)
			}
			codes := codesOf(small)
			var all []int
			for len(all) < nl+nd {
				s, n, v := symbol(codes), 1, 0
				switch s {
				case 16:
					n, v = bits(2)+3, all[len(all)-1]
				case 17:
					n = bits(3) + 3
				case 18:
					n = bits(7) + 11
				default:
					v = s
				}
				for range n {
					all = append(all, v)
				}
			}
			lengths, distances = all[:nl], all[nl:]
		}
		literals, distance := codesOf(lengths), codesOf(distances)
		for s := symbol(literals); s != 256; s = symbol(literals) {
			if s < 256 {
				continue
			}
			switch {
			case s >= 265 && s < 285:
				bits((s - 261) / 4)
			}
			d := symbol(distance)
			far := d + 1
			if d >= 4 {
				extra := d/2 - 1
				far = (2+d%2)<<extra + bits(extra) + 1
			}
			longest = max(longest, far)
		}
	}
	return longest
}

// payloads are the kinds of data of group 12: JSON, a bitmap, prose, HTML, and data that is
// compressed already.
func payloads() map[string]func(n int) string {
	repeat := func(line func(r *rand.Rand, i int) string) func(n int) string {
		return func(n int) string {
			r := rand.New(rand.NewPCG(1, uint64(n)))
			var b strings.Builder
			for i := 0; b.Len() < n; i++ {
				b.WriteString(line(r, i))
			}
			return b.String()[:n]
		}
	}
	words := strings.Fields("Habe nun ach Philosophie Juristerei und Medizin und leider auch Theologie durchaus studiert mit heissem Bemuehn")
	return map[string]func(n int) string{
		"12.1": repeat(func(r *rand.Rand, i int) string {
			return fmt.Sprintf(`{"id": %d, "name": "user%d", "tags": ["a", "b"], "score": %f}, `, i, r.IntN(1000), r.Float64())
		}),
		"12.2": repeat(func(r *rand.Rand, _ int) string { return string([]byte{byte(r.IntN(8) * 16), 0, byte(r.IntN(4))}) }),
		"12.3": repeat(func(r *rand.Rand, _ int) string { return words[r.IntN(len(words))] + " " }),
		"12.4": repeat(func(r *rand.Rand, i int) string {
			return fmt.Sprintf("<tr class=\"row%d\"><td>%d</td><td>%x</td></tr>\n", i%2, i, r.Uint32())
		}),
		"12.5": repeat(func(r *rand.Rand, _ int) string { return string([]byte{byte(r.Uint32()), byte(r.Uint32())}) }),
	}
}

// messageSizes are the sizes of groups 12 and 13, with the size of fragments; 0: one frame.
var messageSizes = [][2]int{{16, 0}, {64, 0}, {256, 0}, {1024, 0}, {4096, 0}, {8192, 0}, {16384, 0}, {32768, 0}, {65536, 0}, {131072, 0},
	{8192, 256}, {16384, 256}, {32768, 256}, {65536, 256}, {131072, 256}, {131072, 1024}, {131072, 4096}, {131072, 32768}}

// sizesOn returns the sizes to try: all with the flag long.
func sizesOn(d dialer) [][2]int {
	switch {
	case *long:
		return messageSizes
	case d.sim:
		return [][2]int{{16, 0}, {64, 0}, {1024, 0}, {8192, 256}}
	}
	return [][2]int{{16, 0}, {256, 0}, {4096, 0}, {32768, 0}, {131072, 0}, {8192, 256}, {131072, 4096}}
}

// talk sends compressed messages of all sizes, and wants them back.
func talk(t *testing.T, p *peer, z *stock, window int, data func(n int) string, sizes [][2]int) {
	t.Helper()
	for _, size := range sizes {
		for i := range 2 {
			message := data(size[0] + i)
			parts := []string{z.deflate(message)}
			if size[1] > 0 {
				parts = cutInto(parts[0], size[1])
			}
			p.send(deflated(binOp, parts...))
			kind, got, _ := strings.Cut(p.next(), " ")
			if kind == "deflated-binary" {
				var distance int
				if got, distance = z.inflate(t, got); distance > window {
					t.Fatalf("the server refers to what was %d bytes before, its window is %d", distance, window)
				}
			}
			if got != message {
				t.Fatalf("a %s of %d bytes, sent as %d frames, came back as %s with %d bytes", "message", len(message), len(parts), kind, len(got))
			}
		}
	}
}

// deflated is a compressed message in pieces.
func deflated(op byte, parts ...string) string {
	s := []byte(fragments(op, parts...))
	s[0] |= wsframe.RSV1 << 4
	return string(s)
}

// Group 12: compression of all kinds of data.
func TestAutobahn12(t *testing.T) {
	s := &Server{Open: echo, Options: Options{Compression: &Compression{Threshold: 1}}}
	onNetworks(t, s, func(t *testing.T, d dialer) {
		sizes := sizesOn(d)
		for name, data := range payloads() {
			t.Run(name, func(t *testing.T) {
				p := upgradeTo(t, d.dial(), "Sec-WebSocket-Extensions: permessage-deflate; client_max_window_bits")
				if got := p.header.Get("Sec-Websocket-Extensions"); got != "permessage-deflate" {
					t.Fatalf("the answer is %q", got)
				}
				talk(t, p, &stock{keeps: true, reads: true}, 32<<10, data, sizes)
				p.bye()
			})
		}
	})
}

// Group 13: parameters of compression. Beyond the parameters of the suite, the client's.
func TestAutobahn13(t *testing.T) {
	const name = "permessage-deflate"
	tests := []struct {
		name, offer, answer string
	}{
		{"13.1", name, name},
		{"13.2", name + "; server_no_context_takeover", name + "; server_no_context_takeover"},
		{"13.3", name + "; server_max_window_bits=9", name + "; server_max_window_bits=9"},
		{"13.4", name + "; server_max_window_bits=15", name + "; server_max_window_bits=15"},
		{"13.5", name + "; server_no_context_takeover; server_max_window_bits=9", name + "; server_no_context_takeover; server_max_window_bits=9"},
		{"13.6", name + "; server_no_context_takeover; server_max_window_bits=15", name + "; server_no_context_takeover; server_max_window_bits=15"},
		{"13.7", name + "; server_no_context_takeover; server_max_window_bits=9, " + name + "; server_no_context_takeover, " + name,
			name + "; server_no_context_takeover; server_max_window_bits=9"},
		{"8 bits", name + "; server_max_window_bits=8", name + "; server_max_window_bits=8"},
		{"client", name + "; client_no_context_takeover", name + "; client_no_context_takeover"},
		{"second offer", name + "; server_max_window_bits=7, " + name + "; client_no_context_takeover", name + "; client_no_context_takeover"},
		{"none", name + "; unknown", ""},
	}
	s := &Server{Open: echo, Options: Options{Compression: &Compression{Threshold: 1}}}
	json := payloads()["12.1"]
	onNetworks(t, s, func(t *testing.T, d dialer) {
		for _, tt := range tests {
			t.Run(tt.name, func(t *testing.T) {
				p := upgradeTo(t, d.dial(), "Sec-WebSocket-Extensions: "+tt.offer)
				if got := p.header.Get("Sec-Websocket-Extensions"); got != tt.answer {
					t.Fatalf("the answer is %q, want %q", got, tt.answer)
				}
				if tt.answer == "" {
					p.send(text("plain"))
					p.expect("text plain")
					p.send(deflated(textOp, "x"))
					p.expect("close 1002", "end")
					return
				}
				window := 32 << 10
				for bits := 8; bits < 15; bits++ {
					if strings.Contains(tt.answer, fmt.Sprint("server_max_window_bits=", bits)) {
						window = 1 << bits
					}
				}
				z := &stock{keeps: !strings.Contains(tt.answer, "client_no"), reads: !strings.Contains(tt.answer, "server_no")}
				talk(t, p, z, window, json, sizesOn(d))
				p.bye()
			})
		}
	})
}

// TestDeflateLevels: each level and window gives what the standard library reads, with
// what the messages before have left.
func TestDeflateLevels(t *testing.T) {
	for level := 1; level <= 6; level++ {
		for bits := wsframe.MinWindowBits; bits <= wsframe.MaxWindowBits; bits++ {
			if level > 1 && bits < wsframe.MaxWindowBits {
				continue // one algorithm for all levels
			}
			for _, takeover := range []bool{false, true} {
				z := newDeflater(level, bits)
				d := direction{bits: bits, takeover: takeover}
				s := stock{reads: takeover}
				for name, data := range payloads() {
					for _, size := range []int{1, 100, 300, 5000, 70000} {
						message := data(size)
						out := string(z.deflate([]byte(message), d.window))
						got, distance := s.inflate(t, out)
						if got != message || distance > 1<<bits {
							t.Fatalf("level %d, %d bits, %s, %d bytes: distance %d, same %t", level, bits, name, size, distance, got == message)
						}
						d.slide([]byte(message))
						if len(d.window) > 1<<bits || !takeover && d.window != nil || takeover && !strings.HasSuffix(message, string(d.window[max(0, len(d.window)-size):])) {
							t.Fatalf("%d bits: the window has %d bytes", bits, len(d.window))
						}
					}
				}
			}
		}
	}
}

// TestInflate: what compressors may send besides the usual.
func TestInflate(t *testing.T) {
	tests := []struct {
		name, in, want string
		err            error
	}{
		// RFC 7692, 7.2.3.
		{"one block", "\xf2\x48\xcd\xc9\xc9\x07\x00", "Hello", nil},
		{"no compression", "\x00\x05\x00\xfa\xff\x48\x65\x6c\x6c\x6f\x00", "Hello", nil},
		{"BFINAL", "\xf3\x48\xcd\xc9\xc9\x07\x00\x00", "Hello", nil},
		{"two blocks", "\xf2\x48\x05\x00\x00\x00\xff\xff\xca\xc9\xc9\x07\x00", "Hello", nil},
		{"empty", "\x00", "", nil},
		{"empty, fixed", "\x02\x00", "", nil},
		{"two streams", "\xf3\x48\xcd\xc9\xc9\x07\x00\xf3\x48\xcd\xc9\xc9\x07\x00\x00", "HelloHello", nil},
		{"too many streams", strings.Repeat("\xf3\x48\xcd\xc9\xc9\x07\x00", 20) + "\x00", "", errDeflated},
		{"nonsense", "\xff\xff", "", errDeflated},
		{"cut", "\xf2\x48\xcd", "", errDeflated},
		{"a window that is not there", "\x4a\x04\x23\x00", "", errDeflated},
	}
	var z inflater
	for _, tt := range tests {
		out, err := z.inflate([]byte(tt.in), nil, 100)
		if err != tt.err || err == nil && string(out) != tt.want {
			t.Errorf("%s: %q, %v", tt.name, out, err)
		}
		z.keep(out)
	}
	// The second stream refers to the first one, and the first to the window.
	s := stock{keeps: true}
	s.deflate("window ")
	first := strings.TrimSuffix(s.deflate("first window "), "")
	if out, err := z.inflate([]byte(first), []byte("window "), 100); string(out) != "first window " || err != nil {
		t.Errorf("behind a window: %q, %v", out, err)
	}
	if _, err := z.inflate([]byte(s.deflate(strings.Repeat("x", 101))), s.sent, 100); err != errMessageSize {
		t.Errorf("a message over the limit: %v", err)
	}
}

// TestBomb: a message that is too long only when it is decompressed ends its connection,
// and takes no more memory than the limit allows.
func TestBomb(t *testing.T) {
	s := &Server{Open: echo, Options: Options{MaxMessage: 100 << 10, Compression: &Compression{}}}
	bomb := (&stock{}).deflate(strings.Repeat("\x00", 5<<20))
	onNetworks(t, s, func(t *testing.T, d dialer) {
		p := upgradeTo(t, d.dial(), "Sec-WebSocket-Extensions: permessage-deflate")
		p.send(deflated(binOp, bomb))
		p.expect("close 1009", "end")
		p = upgradeTo(t, d.dial(), "Sec-WebSocket-Extensions: permessage-deflate")
		p.send(deflated(binOp, (&stock{}).deflate(strings.Repeat("\x00", 100<<10))))
		if got := p.next(); !strings.HasPrefix(got, "deflated-binary") {
			t.Errorf("a message at the limit: %.40q", got)
		}
		p.send(deflated(binOp, "\xff\xff"))
		p.expect("close 1007", "end")
		p = upgradeTo(t, d.dial(), "Sec-WebSocket-Extensions: permessage-deflate")
		p.send(deflated(textOp, (&stock{}).deflate("\xff")))
		p.expect("close 1007", "end")
	})
	var z inflater
	if out, err := z.inflate([]byte(bomb), nil, 100<<10); err != errMessageSize || cap(out) > 300<<10 {
		t.Errorf("%d bytes for a bomb, %v", cap(out), err)
	}
}

// TestBombsTakeTurns: many short messages that become long keep the loop for one turn only
// as long as a few of them take, and all are delivered.
func TestBombsTakeTurns(t *testing.T) {
	n := rondotest.New(t, rondotest.Options{Fragment: -1})
	total, inTurn, most := 0, 0, 0
	s := &Server{
		Open: func(*Conn, *http.Request) Handler {
			return HandlerFunc(func(c *Conn, _ Opcode, p []byte) error {
				if total++; inTurn == 0 {
					c.Loop().Defer(func() { inTurn = 0 })
				}
				inTurn++
				most = max(most, inTurn)
				return nil
			})
		},
		Options: Options{Compression: &Compression{}},
	}
	n.Serve(":80", s.OpenFunc())
	p := upgradeTo(t, n.Dial("tcp", "127.0.0.1:80"), "Sec-WebSocket-Extensions: permessage-deflate")
	bomb := deflated(binOp, (&stock{}).deflate(strings.Repeat("\x00", 300<<10)))
	p.send(strings.Repeat(bomb, 50))
	n.Run()
	if total != 50 || most > 5 {
		t.Errorf("%d messages, %d in one turn", total, most)
	}
	p.bye()
}
