package websocket

import (
	"flag"
	"fmt"
	"net"
	"strings"
	"testing"
	"unicode/utf8"
)

// The tests here do what the cases of the Autobahn testsuite do, group by group, with the
// same numbers. https://github.com/crossbario/autobahn-testsuite

// A step of a case is a string to send; how it is cut, if that matters; or what is
// expected. After the steps the test closes the connection, unless the case says how it
// ends.
type step struct {
	send   string
	chop   int      // 0: in one piece
	expect []string // if send is ""
}

func send(frames ...string) step { return step{send: strings.Join(frames, "")} }
func chopped(size int, frames ...string) step {
	return step{send: strings.Join(frames, ""), chop: size}
}
func expect(events ...string) step { return step{expect: events} }

// fails is the end of a connection by a violation.
func fails(code int) step { return expect(fmt.Sprint("close ", code), "end") }

type testCase struct {
	name  string
	steps []step
}

func (tc *testCase) run(t *testing.T, c net.Conn, fields ...string) {
	t.Helper()
	p := upgradeTo(t, c, fields...)
	ended := false
	for _, s := range tc.steps {
		switch {
		case s.send == "":
			p.expect(s.expect...)
			ended = len(s.expect) > 0 && s.expect[len(s.expect)-1] == "end"
		case s.chop > 0:
			p.chop(s.send, s.chop)
		default:
			p.send(s.send)
		}
	}
	if !ended {
		p.bye()
	}
	c.Close()
}

func runCases(t *testing.T, s *Server, cases []testCase) {
	onNetworks(t, s, func(t *testing.T, d dialer) {
		for _, tc := range cases {
			t.Run(tc.name, func(t *testing.T) { tc.run(t, d.dial()) })
		}
	})
}

func one(name string, steps ...step) testCase { return testCase{name, steps} }

// Group 1: framing.
func TestAutobahn1(t *testing.T) {
	var cases []testCase
	for i, size := range []int{0, 125, 126, 127, 128, 65535, 65536} {
		s := strings.Repeat("*", size)
		b := strings.Repeat("\xfe", size)
		cases = append(cases,
			one(fmt.Sprint("1.1.", i+1), send(text(s)), expect("text "+s)),
			one(fmt.Sprint("1.2.", i+1), send(bin(b)), expect("binary "+b)))
	}
	s := strings.Repeat("*", 65536)
	cases = append(cases,
		one("1.1.8", chopped(997, text(s)), expect("text "+s)),
		one("1.2.8", chopped(997, bin(s)), expect("binary "+s)))
	runCases(t, &Server{Open: echo}, cases)
}

// Group 2: pings and pongs.
func TestAutobahn2(t *testing.T) {
	var pings, pongs []string
	for i := range 10 {
		pings = append(pings, ping(fmt.Sprint("payload-", i)))
		pongs = append(pongs, fmt.Sprint("pong payload-", i))
	}
	long := strings.Repeat("\xfe", 125)
	runCases(t, &Server{Open: echo}, []testCase{
		one("2.1", send(ping("")), expect("pong ")),
		one("2.2", send(ping("Hello, world!")), expect("pong Hello, world!")),
		one("2.3", send(ping("\x00\xff\xfe\xfd\xfc\xfb\x00\xff")), expect("pong \x00\xff\xfe\xfd\xfc\xfb\x00\xff")),
		one("2.4", send(ping(long)), expect("pong "+long)),
		one("2.5", send(ping(long+"\xfe")), fails(1002)),
		one("2.6", chopped(1, ping(long)), expect("pong "+long)),
		one("2.7", send(pong("")), send(closeFrame(1000, "")), expect("close 1000", "end")),
		one("2.8", send(pong("unsolicited pong payload")), send(closeFrame(1000, "")), expect("close 1000", "end")),
		one("2.9", send(pong("unsolicited pong payload"), ping("ping payload")), expect("pong ping payload")),
		one("2.10", send(pings...), expect(pongs...)),
		one("2.11", chopped(1, pings...), expect(pongs...)),
	})
}

// Group 3: reserved bits.
func TestAutobahn3(t *testing.T) {
	const hello = "Hello, world!"
	rsv := func(n byte, op byte, payload string) string { return frame(fin|n<<4|op, payload) }
	runCases(t, &Server{Open: echo}, []testCase{
		one("3.1", send(rsv(1, textOp, hello)), fails(1002)),
		one("3.2", send(text(hello), rsv(2, textOp, hello), ping("")), expect("text "+hello), fails(1002)),
		one("3.3", send(text(hello)), expect("text "+hello), send(rsv(3, textOp, hello)), fails(1002)),
		one("3.4", chopped(1, text(hello), rsv(4, textOp, hello), ping("")), expect("text "+hello), fails(1002)),
		one("3.5", send(rsv(5, binOp, "\x00\xff\xfe")), fails(1002)),
		one("3.6", send(rsv(6, pingOp, hello)), fails(1002)),
		one("3.7", send(rsv(7, closeOp, "")), fails(1002)),
	})
}

// Group 4: reserved opcodes.
func TestAutobahn4(t *testing.T) {
	const hello = "Hello, world!"
	var cases []testCase
	for group, opcodes := range [][]byte{{3, 4, 5, 6, 7}, {11, 12, 13, 14, 15}} {
		for i, op := range opcodes {
			payload := []string{"", "reserved opcode payload", "", hello, hello}[i]
			name := fmt.Sprintf("4.%d.%d", group+1, i+1)
			if i < 2 {
				cases = append(cases, one(name, send(frame(fin|op, payload)), fails(1002)))
				continue
			}
			all := []string{text(hello), frame(fin|op, payload), ping("")}
			s := send(all...)
			if i == 4 {
				s = chopped(1, all...)
			}
			cases = append(cases, one(name, s, expect("text "+hello), fails(1002)))
		}
	}
	runCases(t, &Server{Open: echo}, cases)
}

// Group 5: fragmentation.
func TestAutobahn5(t *testing.T) {
	const hello = "Hello, world!"
	two := fragments(textOp, "fragment1", "fragment2")
	first, second := frame(textOp, "fragment1"), frame(fin, "fragment2")
	both := expect("text fragment1fragment2")
	ponged := expect("pong ping payload", "text fragment1fragment2")
	loose := func(last byte) string { return frame(last, "non-continuation payload") }
	var parts, acks []string
	for i := range 5 {
		op := byte(0)
		switch i {
		case 0:
			op = textOp
		case 4:
			op = fin
		}
		parts = append(parts, frame(op, fmt.Sprint("fragment", i+1)))
		if i == 1 || i == 3 {
			parts = append(parts, ping(fmt.Sprint("pongme ", i, "!")))
			acks = append(acks, fmt.Sprint("pong pongme ", i, "!"))
		}
	}
	whole := "text fragment1fragment2fragment3fragment4fragment5"
	cases := []testCase{
		one("5.1", send(frame(pingOp, "fragment1"), second), fails(1002)),
		one("5.2", send(frame(pongOp, "fragment1"), second), fails(1002)),
		one("5.3", send(two), both),
		one("5.4", send(first), send(second), both),
		one("5.5", chopped(1, two), both),
		one("5.6", send(first, ping("ping payload"), second), ponged),
		one("5.7", send(first), send(ping("ping payload")), send(second), ponged),
		one("5.8", chopped(1, first, ping("ping payload"), second), ponged),
		one("5.9", send(loose(fin), text(hello)), fails(1002)),
		one("5.10", send(loose(fin)), fails(1002)),
		one("5.11", chopped(1, loose(fin)[:2]), fails(1002)),
		one("5.12", send(loose(0), text(hello)), fails(1002)),
		one("5.13", send(loose(0)), fails(1002)),
		one("5.14", chopped(1, loose(0)[:2]), fails(1002)),
		one("5.15", send(two, frame(0, "fragment3"), text("fragment4")), both, fails(1002)),
		one("5.16", send(frame(0, "fragment1"), frame(textOp, "fragment2"), frame(fin, "fragment3")), fails(1002)),
		one("5.17", send(frame(fin, "fragment1"), frame(textOp, "fragment2"), frame(fin, "fragment3")), fails(1002)),
		one("5.18", send(first, text("fragment2")), fails(1002)),
		one("5.19", send(parts[:3]...), expect(acks[0]), send(parts[3:]...), expect(acks[1], whole)),
	}
	synced := one("5.20")
	for _, part := range parts {
		synced.steps = append(synced.steps, send(part))
	}
	synced.steps = append(synced.steps, expect(acks[0], acks[1], whole))
	runCases(t, &Server{Open: echo}, append(cases, synced))
}

// utf8Cases are texts, valid or not, of 6.5 and later, after Markus Kuhn's UTF-8 decoder
// stress test.
func utf8Cases() (cases []testCase) {
	greek := "\xce\xba\xe1\xbd\xb9\xcf\x83\xce\xbc\xce\xb5"
	texts := []string{"hello\x24world", "hello\xC2\xA2world", "hello\xE2\x82\xACworld", "hello\xF0\xA4\xAD\xA2world"}
	for i := range greek {
		texts = append(texts, greek[:i+1])
	}
	texts = append(texts,
		"\x00", "\xc2\x80", "\xe0\xa0\x80", "\xf0\x90\x80\x80", "\xf8\x88\x80\x80\x80", "\xfc\x84\x80\x80\x80\x80",
		"\x7f", "\xdf\xbf", "\xef\xbf\xbf", "\xf4\x8f\xbf\xbf", "\xf7\xbf\xbf\xbf", "\xfb\xbf\xbf\xbf\xbf", "\xfd\xbf\xbf\xbf\xbf\xbf",
		"\xed\x9f\xbf", "\xee\x80\x80", "\xef\xbf\xbd", "\xf4\x90\x80\x80",
		"\x80", "\xbf", "\x80\xbf", "\x80\xbf\x80", "\x80\xbf\x80\xbf",
		"\xc0\xaf", "\xe0\x80\xaf", "\xf0\x80\x80\xaf", "\xf8\x80\x80\x80\xaf", "\xfc\x80\x80\x80\x80\xaf",
		"\xc1\xbf", "\xe0\x9f\xbf", "\xf0\x8f\xbf\xbf", "\xf8\x87\xbf\xbf\xbf", "\xfc\x83\xbf\xbf\xbf\xbf",
		"\xc0\x80", "\xe0\x80\x80", "\xf0\x80\x80\x80", "\xf8\x80\x80\x80\x80", "\xfc\x80\x80\x80\x80\x80",
		"\xed\xa0\x80", "\xed\xad\xbf", "\xed\xae\x80", "\xed\xaf\xbf", "\xed\xb0\x80", "\xed\xbe\x80", "\xed\xbf\xbf",
		"\xed\xa0\x80\xed\xb0\x80", "\xed\xad\xbf\xed\xbf\xbf", "\xed\xaf\xbf\xed\xb0\x80",
		"\xfe", "\xff", "\xfe\xfe\xff\xff", "\xef\xbf\xbe", "\xf0\x9f\xbf\xbe", "\xf3\xbf\xbf\xbf")
	unfinished := []string{"\xc0", "\xe0\x80", "\xf0\x80\x80", "\xf8\x80\x80\x80", "\xfc\x80\x80\x80\x80", "\xdf", "\xef\xbf", "\xf7\xbf\xbf", "\xfb\xbf\xbf\xbf", "\xfd\xbf\xbf\xbf\xbf"}
	texts = append(append(texts, unfinished...), strings.Join(unfinished, ""))
	for _, lead := range [][2]byte{{0xc0, 0xdf}, {0xe0, 0xef}, {0xf0, 0xf7}, {0xf8, 0xfb}, {0xfc, 0xfd}} {
		var b []byte
		for c := lead[0]; c <= lead[1]; c++ {
			b = append(b, c, ' ')
		}
		texts = append(texts, string(b))
	}
	for i, s := range texts {
		after := expect("text " + s)
		if !utf8.ValidString(s) {
			after = fails(1007)
		}
		cases = append(cases,
			one(fmt.Sprintf("6.5+.%d", i), send(text(s)), after),
			one(fmt.Sprintf("6.5+.%d in fragments", i), send(fragments(textOp, append(strings.Split(s, ""), "")...)), after))
	}
	return cases
}

// Group 6: UTF-8.
func TestAutobahn6(t *testing.T) {
	const valid = "Hello-µ@ßöäüàá-UTF-8!!"
	const greek = "\xce\xba\xe1\xbd\xb9\xcf\x83\xce\xbc\xce\xb5"
	const surrogate, tooHigh, rest = "\xed\xa0\x80", "\xf4\x90\x80\x80", "\x65\x64\x69\x74\x65\x64"
	var octets, wrong []string
	for i := range len(valid) {
		octets = append(octets, valid[i:i+1])
	}
	for i := range len(greek + surrogate) {
		wrong = append(wrong, (greek + surrogate)[i:i+1])
	}
	long := text(greek + tooHigh + rest)
	header := len(long) - len(greek+tooHigh+rest)
	cases := []testCase{
		one("6.1.1", send(text("")), expect("text ")),
		one("6.1.2", send(fragments(textOp, "", "", "")), expect("text ")),
		one("6.1.3", send(fragments(textOp, "", "middle frame payload", "")), expect("text middle frame payload")),
		one("6.2.1", send(text(valid)), expect("text "+valid)),
		one("6.2.2", send(fragments(textOp, valid[:12], valid[12:])), expect("text "+valid)),
		one("6.2.3", send(fragments(textOp, octets...)), expect("text "+valid)),
		one("6.2.4", send(fragments(textOp, strings.Split(greek, "")...)), expect("text "+greek)),
		one("6.3.1", send(text(greek+surrogate+rest)), fails(1007)),
		one("6.3.2", send(fragments(textOp, wrong...)), fails(1007)),
		// What is invalid is refused before the rest of the message comes.
		one("6.4.1", send(frame(textOp, greek)), send(frame(0, tooHigh)), fails(1007)),
		one("6.4.2", send(frame(textOp, greek+tooHigh[:1])), send(frame(0, tooHigh[1:2])), fails(1007)),
		one("6.4.3", send(long[:header+len(greek)]), send(long[header+len(greek):header+len(greek)+4]), fails(1007)),
		one("6.4.4", send(long[:header+len(greek)+1]), send(long[header+len(greek)+1:header+len(greek)+2]), fails(1007)),
	}
	runCases(t, &Server{Open: echo}, append(cases, utf8Cases()...))
}

// Group 7: close.
func TestAutobahn7(t *testing.T) {
	bye := closeFrame(1000, "")
	long := strings.Repeat("BAsd7&jh23", 26215)
	closed := expect("close 1000", "end")
	cases := []testCase{
		one("7.1.1", send(text("Hello World!"), bye), expect("text Hello World!"), closed),
		one("7.1.2", send(bye, frame(fin|closeOp, "")), closed),
		one("7.1.3", send(bye, ping("")), closed),
		one("7.1.4", send(bye, text("Hello World!")), closed),
		one("7.1.5", send(frame(textOp, "fragment1"), bye, frame(fin, "fragment2")), closed),
		one("7.1.6", send(text(long), text("Hello World!"), bye, ping("")), expect("text "+long, "text Hello World!"), closed),
		one("7.3.1", send(frame(fin|closeOp, "")), expect("close 1005", "end")), // no code in the answer either
		one("7.3.2", send(frame(fin|closeOp, "a")), fails(1002)),
		one("7.3.3", send(bye), closed),
		one("7.3.4", send(closeFrame(1000, "Hello World!")), closed),
		one("7.3.5", send(closeFrame(1000, strings.Repeat("*", 123))), closed),
		one("7.3.6", send(closeFrame(1000, strings.Repeat("*", 124))), fails(1002)),
		one("7.5.1", send(closeFrame(1000, "\xce\xba\xe1\xbd\xb9\xcf\x83\xce\xbc\xce\xb5\xed\xa0\x80\x65\x64")), fails(1007)),
		one("7.13.1", send(closeFrame(5000, "")), fails(1002)),
		one("7.13.2", send(closeFrame(65535, "")), fails(1002)),
	}
	for i, code := range []int{1000, 1001, 1002, 1003, 1007, 1008, 1009, 1010, 1011, 3000, 3999, 4000, 4999} {
		cases = append(cases, one(fmt.Sprint("7.7.", i+1), send(closeFrame(code, "")), fails(code)))
	}
	for i, code := range []int{0, 999, 1004, 1005, 1006, 1016, 1100, 2000, 2999} {
		cases = append(cases, one(fmt.Sprint("7.9.", i+1), send(closeFrame(code, "")), fails(1002)))
	}
	runCases(t, &Server{Open: echo}, cases)
}

var long = flag.Bool("long", false, "run groups 9, 12 and 13 with all sizes, which takes minutes")

// Group 9: large messages, in frames and pieces of all sizes. Those of more than 4 MiB need
// the flag long.
func TestAutobahn9(t *testing.T) {
	s := &Server{Open: echo, Options: Options{MaxMessage: 16 << 20}}
	onNetworks(t, s, func(t *testing.T, d dialer) {
		sizes := []int{64 << 10, 256 << 10, 1 << 20, 4 << 20, 8 << 20, 16<<20 - 16}
		most, count := 1<<20, 20
		switch {
		case d.sim || testing.Short():
			sizes, most = sizes[:1], 128<<10
		case *long:
			most, count = 4<<20, 1000
		default:
			sizes = sizes[:4]
		}
		for _, op := range []byte{textOp, binOp} {
			name := Opcode(op).String() + " "
			for i, size := range sizes {
				payload := strings.Repeat("0123456789abcdef", size/16)
				tc := one("", send(frame(fin|op, payload)), expect(name+payload))
				t.Run(fmt.Sprintf("9.%d.%d", op, i+1), func(t *testing.T) { tc.run(t, d.dial()) })
			}
			payload := strings.Repeat("0123456789abcdef", most/16)
			for i, size := range []int{64, 256, 1 << 10, 4 << 10, 16 << 10, 64 << 10, 256 << 10, 1 << 20, 4 << 20} {
				tc := one("", send(fragments(op, cutInto(payload, size)...)), expect(name+payload))
				t.Run(fmt.Sprintf("9.%d.%d", op+2, i+1), func(t *testing.T) { tc.run(t, d.dial()) })
			}
			payload = payload[:most/8]
			for i, size := range []int{64, 128, 256, 512, 1024, 2048} {
				tc := one("", chopped(size, frame(fin|op, payload)), expect(name+payload))
				t.Run(fmt.Sprintf("9.%d.%d", op+4, i+1), func(t *testing.T) { tc.run(t, d.dial()) })
			}
			for i, size := range []int{0, 16, 64, 256, 1 << 10, 4 << 10} {
				t.Run(fmt.Sprintf("9.%d.%d", op+6, i+1), func(t *testing.T) {
					p := upgradeTo(t, d.dial())
					message := strings.Repeat("*", size)
					for range count {
						p.send(frame(fin|op, message))
						p.expect(name + message)
					}
					p.bye()
				})
			}
		}
	})
}

// cutInto cuts s into parts of size bytes.
func cutInto(s string, size int) (parts []string) {
	for len(s) > 0 {
		n := min(size, len(s))
		parts = append(parts, s[:n])
		s = s[n:]
	}
	return parts
}

// Group 10: a message in many fragments.
func TestAutobahn10(t *testing.T) {
	payload := strings.Repeat("*", 65536)
	runCases(t, &Server{Open: echo}, []testCase{one("10.1.1", send(fragments(textOp, cutInto(payload, 1300)...)), expect("text "+payload))})
}
