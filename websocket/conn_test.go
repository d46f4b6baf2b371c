package websocket

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"os"
	"slices"
	"strings"
	"syscall"
	"testing"
	"time"
	"unsafe"

	"github.com/rondo-go/rondo"
	"github.com/rondo-go/rondo/internal/testkit"
	"github.com/rondo-go/rondo/rondotest"
	"github.com/rondo-go/rondo/wsframe"
)

// TestHandlerIsTold: each event comes to its method, once.
func TestHandlerIsTold(t *testing.T) {
	made := make(chan *recorder, 1)
	s := &Server{Open: func(c *Conn, req *http.Request) Handler { return recorded(made, c) }}
	onNetworks(t, s, func(t *testing.T, d dialer) {
		p := upgradeTo(t, d.dial())
		d.settle()
		r := <-made
		p.send(text("a") + ping("b") + pong("c") + fragments(binOp, "d", "", "e") + closeFrame(4000, "why"))
		p.expect("pong b", "close 4000", "end")
		p.c.Close()
		if err := r.end(t, d); !isClosed(err, 4000, "why") || CodeOf(err) != 4000 {
			t.Errorf("Closed got %v", err)
		}
		r.want(t, "text a", "ping b", "pong c", "binary de", "closing 4000 why")
	})
}

// TestEnds: what Closed gets for each way in which a connection ends.
func TestEnds(t *testing.T) {
	made := make(chan *recorder, 1)
	s := &Server{Open: func(c *Conn, req *http.Request) Handler { return recorded(made, c) }, Options: Options{MaxMessage: 100, MaxFrame: 50}}
	onNetworks(t, s, func(t *testing.T, d dialer) {
		for _, tt := range []struct {
			name string
			end  func(p *peer)
			want func(err error) bool
		}{
			{"no code", func(p *peer) { p.send(frame(fin|closeOp, "")); p.expect("close 1005", "end") },
				func(err error) bool { return isClosed(err, wsframe.CodeNoStatus, "") }},
			{"half-close", func(p *peer) { p.c.(interface{ CloseWrite() error }).CloseWrite(); p.expect("end") },
				func(err error) bool { return err == io.ErrUnexpectedEOF && CodeOf(err) == wsframe.CodeAbnormal }},
			{"half-close within a message", func(p *peer) {
				p.send(text("hello")[:8])
				p.c.(interface{ CloseWrite() error }).CloseWrite()
				p.expect("end")
			}, func(err error) bool { return err == io.ErrUnexpectedEOF }},
			{"reset within a message", func(p *peer) {
				p.send(frame(textOp, "hello") + frame(0, "hello")[:8])
				d.settle()
				reset(p.c)
			}, func(err error) bool { return errors.Is(err, syscall.ECONNRESET) }},
			{"a long frame", func(p *peer) { p.send(text(strings.Repeat("*", 51))[:6]); p.expect("close 1009", "end") },
				func(err error) bool { return isProtocol(err, 1009) }},
			{"a long message", func(p *peer) {
				long := strings.Repeat("*", 50)
				p.send(fragments(textOp, long, long, "*"))
				p.expect("close 1009", "end")
			}, func(err error) bool { return isProtocol(err, 1009) }},
			{"an announced length", func(p *peer) { p.send("\x82\xff\x7f\xff\xff\xff\xff\xff\xff\xffmask"); p.expect("close 1009", "end") },
				func(err error) bool { return isProtocol(err, 1009) }},
			{"a length of 2^63", func(p *peer) { p.send("\x82\xff\x80\x00\x00\x00\x00\x00\x00\x00"); p.expect("close 1002", "end") },
				func(err error) bool { return isProtocol(err, 1002) }},
			{"no mask", func(p *peer) { p.send("\x81\x02hi"); p.expect("close 1002", "end") },
				func(err error) bool { return isProtocol(err, 1002) }},
		} {
			t.Run(tt.name, func(t *testing.T) {
				p := upgradeTo(t, d.dial())
				d.settle()
				r := <-made
				tt.end(p)
				p.c.Close()
				if err := r.end(t, d); !tt.want(err) {
					t.Errorf("Closed got %v", err)
				}
			})
		}
	})
}

// reset closes a connection with a reset.
func reset(c net.Conn) {
	if c, ok := c.(*net.TCPConn); ok {
		c.SetLinger(0)
		c.Close()
		return
	}
	c.(*rondotest.Conn).Reset()
}

// TestHandlerEnds: a handler that closes, fails or panics, and the messages behind.
func TestHandlerEnds(t *testing.T) {
	type end struct {
		err  error
		told int // messages
	}
	ends := make(chan end, 1)
	failure := errors.New("failure")
	do := map[string]func(c *Conn) error{
		"close": func(c *Conn) error { c.Close(4001, "enough"); c.Close(4002, "again"); return c.WriteMessage(Text, nil) },
		"fail":  func(*Conn) error { return failure },
		"code":  func(*Conn) error { return fmt.Errorf("because: %w", &CloseError{1008, "policy"}) },
		"abort": func(c *Conn) error { c.Abort(failure); return nil },
		"panic": func(*Conn) error { panic(failure) },
	}
	s := &Server{Open: func(*Conn, *http.Request) Handler {
		told := 0
		return &handler{
			message: func(c *Conn, _ Opcode, p []byte) error { told++; return do[string(p)](c) },
			closed:  func(_ *Conn, err error) { ends <- end{err, told} },
		}
	}}
	onNetworks(t, s, func(t *testing.T, d dialer) {
		for _, tt := range []struct {
			name, want string
			err        func(error) bool
		}{
			{"fail", "close 1011", func(err error) bool { return err == failure }},
			{"code", `close 1008 policy`, func(err error) bool { return CodeOf(err) == 1008 }},
			{"abort", "", func(err error) bool { return err == failure }},
			{"panic", "", func(err error) bool { var p *rondo.PanicError; return errors.As(err, &p) && errors.Is(err, failure) }},
		} {
			p := upgradeTo(t, d.dial())
			p.send(text(tt.name) + text("fail") + ping(""))
			if tt.want != "" {
				if got := p.next(); got != tt.want {
					t.Errorf("%s: %q, want %q", tt.name, got, tt.want)
				}
				p.expect("end")
			} else if _, err := p.c.Read(make([]byte, 1)); !errors.Is(err, syscall.ECONNRESET) {
				t.Errorf("%s: the peer sees %v", tt.name, err)
			}
			p.c.Close()
			d.settle()
			if e := <-ends; !tt.err(e.err) || e.told != 1 {
				t.Errorf("%s: Closed got %v, %d messages", tt.name, e.err, e.told)
			}
		}
		// After Close the peer's Close frame is awaited, and messages are dropped.
		p := upgradeTo(t, d.dial())
		p.send(text("close") + text("fail") + ping(""))
		if got := p.next(); got != "close 4001 enough" {
			t.Errorf("%q", got)
		}
		// The handler has returned the error of WriteMessage: that ends the connection.
		p.expect("end")
		p.c.Close()
		d.settle()
		if e := <-ends; e.err != ErrClosed || e.told != 1 {
			t.Errorf("Closed got %v, %d messages", e.err, e.told)
		}
	})
}

// handler is a Handler of functions.
type handler struct {
	message func(*Conn, Opcode, []byte) error
	closed  func(*Conn, error)
}

func (h *handler) Message(c *Conn, op Opcode, p []byte) error { return h.message(c, op, p) }

func (h *handler) Closed(c *Conn, err error) {
	if h.closed != nil {
		h.closed(c, err)
	}
}

// pieces is a FragmentHandler.
type pieces struct {
	recorder
	text []byte
	n    int
}

func (p *pieces) Fragment(_ *Conn, op Opcode, b []byte, last bool) error {
	p.text = append(p.text, b...)
	p.n++
	if last {
		p.add("%v %s", op, p.text)
		p.text = nil
	}
	return nil
}

// TestFragments: messages in pieces, as they arrive.
func TestFragments(t *testing.T) {
	made := make(chan *pieces, 1)
	open := func(*Conn, *http.Request) Handler {
		h := &pieces{recorder: *newRecorder()}
		made <- h
		return h
	}
	long := strings.Repeat("κόσμε ", 100000)
	onNetworks(t, &Server{Open: open, Options: Options{MaxMessage: -1}}, func(t *testing.T, d dialer) {
		p := upgradeTo(t, d.dial())
		p.send(text("a") + fragments(textOp, "b", "", "c"))
		p.chop(frame(binOp, "hello")+frame(fin, ""), 1)
		p.send(text(long) + text("\xce"))
		p.expect("close 1007", "end")
		p.c.Close()
		h := <-made
		h.end(t, d)
		if h.n < 20 {
			t.Errorf("a long message came in %d pieces", h.n)
		}
		h.want(t, "text a", "text bc", "binary hello", "text "+long)
	})
	onNetworks(t, &Server{Open: open, Options: Options{MaxMessage: 10, Compression: &Compression{}}}, func(t *testing.T, d dialer) {
		p := upgradeTo(t, d.dial(), "Sec-WebSocket-Extensions: permessage-deflate")
		p.send(text("1234567890") + deflated(textOp, (&stock{}).deflate("deflated"), ""))
		p.send(fragments(textOp, "12345", "67890") + fragments(textOp, "12345", "678901"))
		p.expect("close 1009", "end")
		p.c.Close()
		h := <-made
		h.end(t, d)
		h.want(t, "text 1234567890", "text deflated", "text 1234567890")
	})
}

// TestPings: a silent peer is pinged, and closed if it does not answer.
func TestPings(t *testing.T) {
	n := rondotest.New(t, rondotest.Options{})
	r := newRecorder()
	n.Serve(":80", (&Server{Open: r.open, Options: Options{PingInterval: 10 * time.Second, IdleTimeout: 30 * time.Second}}).OpenFunc())
	p := upgradeTo(t, n.Dial("tcp", "127.0.0.1:80"))
	for range 10 {
		n.Advance(9 * time.Second)
		p.send(text("x"))
	}
	for range 3 {
		p.expect("ping ")
		p.send(pong(""))
	}
	began := n.Now()
	p.expect("ping ", "ping ")
	if got := p.next(); got != "close 1001 idle" {
		t.Errorf("%q", got)
	}
	p.expect("end")
	p.c.Close()
	n.Run()
	if err := <-r.closed; err != rondo.ErrIdle {
		t.Errorf("Closed got %v", err)
	}
	if d := n.Now().Sub(began); d < 29*time.Second || d > 41*time.Second {
		t.Errorf("after %v", d)
	}
}

// TestTicks: connections that came at different times are looked at in their own time.
func TestTicks(t *testing.T) {
	n := rondotest.New(t, rondotest.Options{})
	n.Serve(":80", (&Server{Open: echo, Options: Options{PingInterval: 10 * time.Second}}).OpenFunc())
	began := n.Now()
	var peers []*peer
	for range 4 {
		peers = append(peers, upgradeTo(t, n.Dial("tcp", "127.0.0.1:80")))
		n.Advance(3 * time.Second)
	}
	peers[1].c.Close() // and leaves the list
	for range 3 {
		for i, p := range peers {
			if i == 1 {
				continue
			}
			p.expect("ping ")
			late := n.Now().Sub(began) % (10 * time.Second)
			if due := time.Duration(3*i) * time.Second; late < due || late > due+time.Second/10 {
				t.Errorf("connection %d was pinged at %v", i, n.Now().Sub(began))
			}
		}
	}
}

// TestIdle: without pings, a connection is closed when nothing comes.
func TestIdle(t *testing.T) {
	n := rondotest.New(t, rondotest.Options{})
	n.Serve(":80", (&Server{Open: echo, Options: Options{IdleTimeout: 20 * time.Second}}).OpenFunc())
	p := upgradeTo(t, n.Dial("tcp", "127.0.0.1:80"))
	for range 10 {
		n.Advance(15 * time.Second)
		p.send(text("x"))
		p.expect("text x")
	}
	began := n.Now()
	p.expect("close 1001", "end")
	if d := n.Now().Sub(began); d < 20*time.Second || d > 26*time.Second {
		t.Errorf("after %v", d)
	}
}

// TestCloseTimeout: a peer that does not answer a Close frame.
func TestCloseTimeout(t *testing.T) {
	n := rondotest.New(t, rondotest.Options{})
	r := newRecorder()
	n.Serve(":80", (&Server{Open: func(c *Conn, _ *http.Request) Handler {
		c.Loop().AfterFunc(time.Second, func() { c.Close(1000, "") })
		return r
	}}).OpenFunc())
	p := upgradeTo(t, n.Dial("tcp", "127.0.0.1:80"))
	p.expect("close 1000")
	began := n.Now()
	p.send(text("x") + ping(""))
	p.expect("end")
	if d := n.Now().Sub(began); d < DefaultCloseTimeout-time.Second/10 || d > DefaultCloseTimeout+time.Second {
		t.Errorf("after %v", d)
	}
	p.c.Close()
	n.Run()
	if err := <-r.closed; err != ErrCloseTimeout || !errors.Is(err, os.ErrDeadlineExceeded) {
		t.Errorf("Closed got %v", err)
	}
	r.want(t)
}

// TestCloseAnswered: a closing handshake that the server begins.
func TestCloseAnswered(t *testing.T) {
	made := make(chan *recorder, 1)
	s := &Server{Open: func(c *Conn, _ *http.Request) Handler {
		c.WriteMessage(Text, []byte("bye"))
		c.Close(wsframe.CodeNoStatus, "")
		if err := c.Ping(nil); err != ErrClosed || c.IsOpen() {
			t.Errorf("a ping after Close: %v", err)
		}
		return recorded(made, c)
	}}
	onNetworks(t, s, func(t *testing.T, d dialer) {
		p := upgradeTo(t, d.dial())
		p.expect("text bye", "close 1005")
		r := <-made
		p.send(text("x") + closeFrame(1000, "ok"))
		p.expect("end")
		p.c.Close()
		if err := r.end(t, d); !isClosed(err, 1000, "ok") {
			t.Errorf("Closed got %v", err)
		}
		r.want(t)
	})
}

// TestFlood: 10,000 pings, and small messages without end, of a peer that reads late.
func TestFlood(t *testing.T) {
	onNetworks(t, &Server{Open: echo}, func(t *testing.T, d dialer) {
		p := upgradeTo(t, d.dial())
		p.send(strings.Repeat(ping("x"), 10000))
		for range 10000 {
			p.expect("pong x")
		}
		p.bye()
	})
}

// TestDeafPeer: a peer that sends and does not read is not read, and memory is bounded. What
// it has sent is answered when it reads.
func TestDeafPeer(t *testing.T) {
	message := strings.Repeat("*", 10000)
	for _, s := range []*Server{{Open: echo}, {Open: echo, Options: Options{Compression: &Compression{Threshold: 1 << 30}}}} {
		n := rondotest.New(t, rondotest.Options{Buffer: 64 << 10})
		var conn *Conn
		open := s.OpenFunc()
		e := n.Engine(&rondo.Engine{HighWater: 100 << 10, LowWater: 50 << 10})
		n.Listen(e, "tcp", ":80", func(raw *rondo.Conn) rondo.Handler {
			h := open(raw)
			conn = (*Conn)(h.(*wire))
			return h
		})
		p := upgradeTo(t, n.Dial("tcp", "127.0.0.1:80"), "Sec-WebSocket-Extensions: permessage-deflate")
		sent := 0
		unit := text(message)
		if s.Compression != nil {
			unit = deflated(textOp, (&stock{}).deflate(message)) // 10,000 bytes of some 30
		}
		p.c.SetWriteDeadline(n.Now().Add(time.Second))
		batch := strings.Repeat(unit, 1+100000/len(unit))
		in := 0
		for {
			k, err := p.c.Write([]byte(batch))
			in += k
			if err != nil {
				break
			}
		}
		sent = in / len(unit)
		n.Run()
		if conn.Buffered() > 300<<10 || conn.Buffered() < 100<<10 || !conn.Full() {
			t.Errorf("%d bytes wait for the peer, full %t", conn.Buffered(), conn.Full())
		}
		for range sent {
			p.expect("text " + message)
		}
		p.c.Close()
	}
}

// TestOutputFull: a write that does not fit is refused whole.
func TestOutputFull(t *testing.T) {
	n := rondotest.New(t, rondotest.Options{Buffer: 10000})
	r := newRecorder()
	e := n.Engine(&rondo.Engine{MaxOutput: 100000})
	n.Listen(e, "tcp", ":80", (&Server{Open: r.open}).OpenFunc())
	p := upgradeTo(t, n.Dial("tcp", "127.0.0.1:80"))
	n.Run()
	written := 0
	on(n, r.conn, func() {
		if err := r.conn.WriteMessage(Binary, make([]byte, 100000)); err != rondo.ErrOutputFull {
			t.Errorf("a message over MaxOutput: %v", err)
		}
		for r.conn.WriteMessage(Binary, make([]byte, 20000)) == nil {
			written++
		}
		if err := r.conn.WritePrepared(Prepare(Binary, make([]byte, 90000))); err != rondo.ErrOutputFull {
			t.Errorf("a prepared message: %v", err)
		}
	})
	if written < 3 || written > 8 {
		t.Errorf("%d messages", written)
	}
	for range written {
		p.expect("binary " + string(make([]byte, 20000)))
	}
	n.Run()
	r.want(t, "drained")
	on(n, r.conn, func() {
		for r.conn.WriteMessage(Binary, make([]byte, 20000)) == nil {
		}
		for r.conn.WriteMessage(Binary, nil) == nil {
		}
		r.conn.Close(1000, "") // there is no room for the Close frame
	})
	for got := ""; got != "end"; got = p.next() {
	}
	p.c.Close()
	n.Run()
	if err := <-r.closed; err != rondo.ErrOutputFull {
		t.Errorf("Closed got %v", err)
	}
}

// on runs f on a connection's loop.
func on(n *rondotest.Network, c *Conn, f func()) {
	done := false
	c.Ref().Do(func(*Conn) { defer func() { done = true }(); f() })
	n.Until(func() bool { return done })
}

// TestPause: no message comes while a connection is paused, not even of bytes that have
// arrived.
func TestPause(t *testing.T) {
	n := rondotest.New(t, rondotest.Options{})
	r := newRecorder()
	n.Serve(":80", (&Server{Open: func(c *Conn, _ *http.Request) Handler {
		return &handler{message: func(c *Conn, _ Opcode, p []byte) error {
			r.add("%s", p)
			c.Pause()
			c.Loop().AfterFunc(time.Second, c.Resume)
			return nil
		}}
	}}).OpenFunc())
	p := upgradeTo(t, n.Dial("tcp", "127.0.0.1:80"))
	p.send(text("a") + text("b") + fragments(textOp, "c", "d"))
	for _, want := range []string{"a", "b", "cd"} {
		n.Run()
		r.want(t, want)
		n.Advance(1100 * time.Millisecond)
	}
}

func TestWriteErrors(t *testing.T) {
	n := rondotest.New(t, rondotest.Options{})
	r := newRecorder()
	n.Serve(":80", (&Server{Open: r.open}).OpenFunc())
	p := upgradeTo(t, n.Dial("tcp", "127.0.0.1:80"))
	n.Run()
	c := r.conn
	on(n, c, func() {
		for _, err := range []error{c.WriteMessage(wsframe.Ping, nil), c.WriteMessage(0, nil), c.Ping(make([]byte, 126)), c.Pong(make([]byte, 126))} {
			if err == nil || err == ErrClosed {
				t.Errorf("a meaningless write: %v", err)
			}
		}
		if err := c.Pong([]byte("x")); err != nil {
			t.Error(err)
		}
		if c.Handler() != Handler(r) || c.Compressed() || c.Subprotocol() != "" || c.Underlying().RemoteAddr().String() != p.c.LocalAddr().String() {
			t.Error("the connection's properties are wrong")
		}
		defer func() {
			if recover() == nil || !c.IsOpen() {
				t.Error("Close with 1006 does not panic")
			}
		}()
		c.Close(wsframe.CodeAbnormal, "")
	})
	p.expect("pong x")
	p.bye()
	p.c.Close()
	n.Run()
	on2 := func(f func() error) {
		if err := f(); err != ErrClosed {
			t.Errorf("after the end: %v", err)
		}
	}
	on2(func() error { return c.Ref().WriteMessage(Text, nil) })
	on2(func() error { return c.Ref().Do(func(*Conn) {}) })
	on2(func() error { return Ref{}.WriteMessage(Text, nil) })
	if again := c.Ref(); !c.Ref().Closed() || !(Ref{}).Closed() || (Ref{}).Loop() != nil || c.Ref() != again {
		t.Error("the Refs are not closed")
	}
}

// TestBroadcast: all members get all messages in order, whatever their compression, and
// none after its Close frame.
func TestBroadcast(t *testing.T) {
	for seed := range uint64(30) {
		n := rondotest.New(t, rondotest.Options{Seed: seed + 1, Faults: rondotest.Harmless(0.1)})
		var room []Ref
		s := &Server{Open: func(c *Conn, _ *http.Request) Handler { room = append(room, c.Ref()); return newRecorder() },
			Options: Options{Compression: &Compression{}}}
		n.Serve(":80", s.OpenFunc())
		offers := []string{"X-A: b", "Sec-WebSocket-Extensions: permessage-deflate",
			"Sec-WebSocket-Extensions: permessage-deflate; server_no_context_takeover",
			"Sec-WebSocket-Extensions: permessage-deflate; server_no_context_takeover; server_max_window_bits=9",
			"Sec-WebSocket-Extensions: permessage-deflate; server_no_context_takeover"}
		var peers []*peer
		for _, offer := range offers {
			peers = append(peers, upgradeTo(t, n.Dial("tcp", "127.0.0.1:80"), offer))
			n.Run()
		}
		long := strings.Repeat("hello ", 1000)
		random := payloads()["12.5"](1000)
		for _, m := range []string{"short", long, random} {
			Broadcast(slices.Values(append(room, Ref{})), Prepare(Binary, []byte(m)), nil)
		}
		room[0].WriteMessage(Text, []byte("to you"))
		on(n, room[0].conn, func() {
			for _, r := range room {
				r.conn.WritePrepared(Prepare(Text, []byte(long)))
				r.conn.WriteMessage(Text, []byte(long))
				r.conn.Close(1000, "")
				r.conn.WritePrepared(Prepare(Text, nil))
			}
		})
		Broadcast(slices.Values(room), Prepare(Text, []byte("late")), func(*Conn) { t.Error("full was called for a connection that is closing") })
		for i, p := range peers {
			z := &stock{reads: i == 1}
			var got []string
			for m := p.next(); !strings.HasPrefix(m, "close"); m = p.next() {
				if kind, body, _ := strings.Cut(m, " "); strings.HasPrefix(kind, "deflated") {
					if i == 0 {
						t.Error("compressed without an extension")
					}
					m, distance := z.inflate(t, body)
					if i == 3 && distance > 512 {
						t.Errorf("a distance of %d", distance)
					}
					got = append(got, "d "+m)
				} else {
					got = append(got, body)
				}
			}
			d := "d "
			if i == 0 {
				d = ""
			}
			db := d
			if i == 1 { // context takeover
				db = ""
			}
			want := []string{"short", db + long, random}
			if i == 0 {
				want = append(want, "to you")
			}
			want = append(want, d+long, d+long)
			if !slices.Equal(got, want) {
				t.Errorf("seed %d: member %d got %.60q", seed+1, i, got)
			}
			p.send(closeFrame(1000, ""))
			p.expect("end")
		}
		n.Close()
	}
}

// TestBroadcastFull: a member who does not read misses messages, and is told of.
func TestBroadcastFull(t *testing.T) {
	n := rondotest.New(t, rondotest.Options{Buffer: 1000})
	r := newRecorder()
	e := n.Engine(&rondo.Engine{HighWater: 10000, MaxOutput: 50000})
	n.Listen(e, "tcp", ":80", (&Server{Open: r.open}).OpenFunc())
	p := upgradeTo(t, n.Dial("tcp", "127.0.0.1:80"))
	n.Run()
	full := 0
	m := Prepare(Binary, make([]byte, 5000))
	for range 10 {
		Broadcast(slices.Values([]Ref{r.conn.Ref()}), m, func(c *Conn) {
			if c != r.conn {
				t.Error("full was called with another connection")
			}
			full++
		})
		n.Run()
	}
	if full < 5 || full > 8 {
		t.Errorf("full was called %d times", full)
	}
	for range 10 - full {
		p.expect("binary " + string(make([]byte, 5000)))
	}
	for range 20 { // more than fits
		r.conn.Ref().WriteMessage(Binary, make([]byte, 5000))
	}
	n.Run()
	if err := <-r.closed; err != rondo.ErrOutputFull {
		t.Errorf("Closed got %v", err)
	}
}

// TestConnIsSmall: an idle connection has only this.
func TestConnIsSmall(t *testing.T) {
	if size := unsafe.Sizeof(Conn{}); size > 96 {
		t.Errorf("a Conn has %d bytes", size)
	}
}

// TestEchoAllocatesNothing: messages that arrive whole, and in two pieces.
func TestEchoAllocatesNothing(t *testing.T) {
	address := testkit.Listen(t, &rondo.Engine{NumLoops: 1}, (&Server{Open: echo}).OpenFunc())
	p := upgradeTo(t, testkit.Dial(t, address))
	payload := bytes.Repeat([]byte("x"), 100)
	in := []byte(bin(string(payload)))
	out := make([]byte, 102)
	for _, cut := range []int{0, 3, 50} {
		allocs := testing.AllocsPerRun(200, func() {
			if cut > 0 {
				p.c.Write(in[:cut])
				time.Sleep(time.Millisecond)
			}
			p.c.Write(in[cut:])
			if _, err := io.ReadFull(p.c, out); err != nil || !bytes.Equal(out[2:], payload) {
				t.Fatal(err)
			}
		})
		if allocs > 0 {
			t.Errorf("%v allocations for a message cut at %d", allocs, cut)
		}
	}
}
