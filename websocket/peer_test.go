package websocket

import (
	"bytes"
	"errors"
	"flag"
	"fmt"
	"io"
	"net"
	"net/http"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/rondo-go/rondo"
	"github.com/rondo-go/rondo/internal/testkit"
	"github.com/rondo-go/rondo/rondotest"
	"github.com/rondo-go/rondo/wsframe"
)

// patience is how long a test waits for what must come.
const patience = time.Minute

const sampleKey = "dGhlIHNhbXBsZSBub25jZQ=="

// request is the head of a handshake, with more fields.
func request(fields ...string) string {
	return "GET /chat HTTP/1.1\r\nHost: example.com\r\nUpgrade: websocket\r\nConnection: Upgrade\r\n" +
		"Sec-WebSocket-Key: " + sampleKey + "\r\nSec-WebSocket-Version: 13\r\n" + strings.Join(append(fields, ""), "\r\n") + "\r\n"
}

// A peer is the test's end of a connection: one that may break all rules.
type peer struct {
	t      testing.TB
	c      net.Conn
	header http.Header // of the server's answer
	in     []byte      // received, not read
	reader wsframe.Reader
	part   []byte // of a message
}

// upgrade does the handshake of a client.
func upgradeTo(t testing.TB, c net.Conn, fields ...string) *peer {
	t.Helper()
	p := &peer{t: t, c: c, reader: wsframe.Reader{FromServer: true, Deflate: true}}
	p.send(request(fields...))
	end := -1
	for end < 0 {
		if !p.receive() {
			t.Fatalf("no answer to the handshake: %q", p.in)
		}
		end = bytes.Index(p.in, []byte("\r\n\r\n"))
	}
	head := p.in[:end+4]
	p.in = p.in[end+4:]
	r, err := readResponse(head, nil)
	if err != nil || r.StatusCode != 101 || r.Header.Get("Sec-Websocket-Accept") != "s3pPLMBiTxaQ9kYGzzhZRbK+xOo=" {
		t.Fatalf("%v, the answer is %q", err, head)
	}
	p.header = r.Header
	return p
}

func (p *peer) send(s string) {
	p.t.Helper()
	if _, err := io.WriteString(p.c, s); err != nil {
		p.t.Fatalf("sending %.40q: %v", s, err)
	}
}

// chop sends pieces of size bytes.
func (p *peer) chop(s string, size int) {
	p.t.Helper()
	for len(s) > 0 {
		n := min(size, len(s))
		p.send(s[:n])
		s = s[n:]
	}
}

// receive receives more bytes. false: the stream has ended.
func (p *peer) receive() bool {
	p.t.Helper()
	b := make([]byte, 64<<10)
	n, err := p.c.Read(b)
	p.in = append(p.in, b[:n]...)
	if n > 0 {
		return true
	}
	if err != io.EOF {
		p.t.Fatalf("receiving: %v", err)
	}
	return false
}

// next returns the next message or control frame, as "text hello", "pong x" or "close 1000
// reason", "deflated-text ..." for a compressed one, and "end" for the end of the stream.
func (p *peer) next() string {
	p.t.Helper()
	for {
		piece, n, _, err := p.reader.Read(p.in)
		if err != nil {
			p.t.Fatalf("the server violates the protocol: %v", err)
		}
		if n == 0 {
			if !p.receive() {
				if len(p.in) > 0 || p.part != nil {
					p.t.Fatalf("the stream ends within a frame: %.40x", p.in)
				}
				return "end"
			}
			continue
		}
		p.in = p.in[n:]
		switch {
		case piece.Opcode == wsframe.Close:
			code, reason, err := wsframe.ReadClose(piece.Payload)
			if err != nil {
				p.t.Fatalf("the server's close frame: %v", err)
			}
			return strings.TrimSpace(fmt.Sprintf("close %d %s", code, reason))
		case piece.Opcode.IsControl():
			return fmt.Sprintf("%v %s", piece.Opcode, piece.Payload)
		}
		p.part = append(p.part, piece.Payload...)
		if piece.Last {
			message := p.part
			p.part = nil
			if piece.Deflated {
				return fmt.Sprintf("deflated-%v %s", piece.Opcode, message)
			}
			return fmt.Sprintf("%v %s", piece.Opcode, message)
		}
	}
}

// expect wants these messages and frames. Of a close frame only the code counts, unless a
// reason is wanted.
func (p *peer) expect(want ...string) {
	p.t.Helper()
	for _, w := range want {
		got := p.next()
		if strings.HasPrefix(w, "close") && !strings.Contains(w, " \"") {
			got = strings.Join(strings.Fields(got)[:min(2, len(strings.Fields(got)))], " ")
		}
		if got != w {
			p.t.Fatalf("received %.200q, want %.200q", got, w)
		}
	}
}

// bye does the closing handshake.
func (p *peer) bye() {
	p.t.Helper()
	p.send(closeFrame(1000, ""))
	p.expect("close 1000", "end")
}

// frame is a client's frame with any first byte.
func frame(first byte, payload string) string {
	h := wsframe.Header{Fin: first&0x80 != 0, RSV: first >> 4 & 7, Opcode: Opcode(first & 0xf), Masked: true, Key: newKey(), Length: int64(len(payload))}
	b := append(wsframe.AppendHeader(nil, h), payload...)
	wsframe.Mask(b[len(b)-len(payload):], h.Key, 0)
	return string(b)
}

const (
	fin     = 0x80
	textOp  = 0x1
	binOp   = 0x2
	closeOp = 0x8
	pingOp  = 0x9
	pongOp  = 0xa
)

func text(s string) string { return frame(fin|textOp, s) }
func bin(s string) string  { return frame(fin|binOp, s) }
func ping(s string) string { return frame(fin|pingOp, s) }
func pong(s string) string { return frame(fin|pongOp, s) }

func closeFrame(code int, reason string) string {
	return frame(fin|closeOp, string([]byte{byte(code >> 8), byte(code)})+reason)
}

// fragments is a message in pieces.
func fragments(op byte, parts ...string) string {
	var b strings.Builder
	for i, part := range parts {
		first := byte(0)
		if i == 0 {
			first = op
		}
		if i == len(parts)-1 {
			first |= fin
		}
		b.WriteString(frame(first, part))
	}
	return b.String()
}

// echo answers each message with itself.
func echo(*Conn, *http.Request) Handler { return HandlerFunc((*Conn).WriteMessage) }

// A dialer connects to the server under test. settle lets everything arrive.
type dialer struct {
	dial   func() net.Conn
	settle func()
	sim    bool
}

var backend = flag.String("backend", "", "the Engine.Backend of tests on real sockets")

// onNetworks tests a server on real sockets, and on simulated ones with some seeds.
func onNetworks(t *testing.T, s *Server, test func(t *testing.T, d dialer)) {
	t.Helper()
	t.Run("sockets", func(t *testing.T) {
		address := testkit.Listen(t, &rondo.Engine{NumLoops: 1, Backend: *backend}, s.OpenFunc())
		test(t, dialer{dial: func() net.Conn { return testkit.Dial(t, address) }, settle: func() { time.Sleep(20 * time.Millisecond) }})
	})
	for seed := range uint64(3) {
		t.Run(fmt.Sprintf("simulated %d", seed+1), func(t *testing.T) {
			n := rondotest.New(t, rondotest.Options{Seed: seed + 1, Faults: rondotest.Harmless(0.05)})
			n.Serve(":80", s.OpenFunc())
			test(t, dialer{dial: func() net.Conn { return n.Dial("tcp", "127.0.0.1:80") }, settle: n.Run, sim: true})
		})
	}
}

// recorder records what its Handler is told.
type recorder struct {
	conn   *Conn
	events []string
	closed chan error
}

func newRecorder() *recorder { return &recorder{closed: make(chan error, 1)} }

// recorded makes a recorder and hands it over.
func recorded(made chan *recorder, c *Conn) *recorder {
	r := newRecorder()
	r.conn = c
	made <- r
	return r
}

func (r *recorder) open(c *Conn, _ *http.Request) Handler { r.conn = c; return r }

func (r *recorder) add(format string, args ...any) {
	r.events = append(r.events, fmt.Sprintf(format, args...))
}

func (r *recorder) Message(_ *Conn, op Opcode, p []byte) error {
	r.add("%v %s", op, p)
	return nil
}

func (r *recorder) Ping(_ *Conn, p []byte) { r.add("ping %s", p) }
func (r *recorder) Pong(_ *Conn, p []byte) { r.add("pong %s", p) }
func (r *recorder) Closing(_ *Conn, code Code, reason string) {
	r.add("closing %d %s", code, reason)
}
func (r *recorder) Drained(*Conn) { r.add("drained") }

func (r *recorder) Closed(_ *Conn, err error) { r.closed <- err }

// end waits for Closed.
func (r *recorder) end(t *testing.T, d dialer) error {
	t.Helper()
	d.settle()
	select {
	case err := <-r.closed:
		return err
	case <-time.After(patience):
		t.Fatal("Closed was not called")
		return nil
	}
}

func (r *recorder) want(t *testing.T, events ...string) {
	t.Helper()
	if !slices.Equal(r.events, events) {
		t.Errorf("the handler was told %q, want %q", r.events, events)
	}
	r.events = nil
}

// isProtocol reports whether err is a violation with a code.
func isProtocol(err error, code Code) bool {
	var e *wsframe.ProtocolError
	return errors.As(err, &e) && e.Code == code
}

// isClosed reports whether err is a CloseError.
func isClosed(err error, code Code, reason string) bool {
	var e *CloseError
	return errors.As(err, &e) && *e == CloseError{code, reason}
}
