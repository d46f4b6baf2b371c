package websocket

import (
	"bytes"
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"os"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/rondo-go/rondo"
	"github.com/rondo-go/rondo/internal/testcert"
	"github.com/rondo-go/rondo/internal/testkit"
	"github.com/rondo-go/rondo/rondotest"
	"github.com/rondo-go/rondo/rtls"
	"github.com/rondo-go/rondo/wsframe"
)

// client is a Handler that hands over what comes.
type client struct {
	messages chan string
	closed   chan error
}

func newClient() *client { return &client{make(chan string, 100), make(chan error, 1)} }

func (c *client) Message(_ *Conn, op Opcode, p []byte) error {
	c.messages <- fmt.Sprintf("%v %s", op, p)
	return nil
}

func (c *client) Closed(_ *Conn, err error) { c.closed <- err }

func await[T any](t *testing.T, c chan T) (v T) {
	t.Helper()
	select {
	case v = <-c:
	case <-time.After(patience):
		t.Fatal("nothing came")
	}
	return v
}

// TestDial: our client and our server, with all kinds of compression, over TCP and TLS.
func TestDial(t *testing.T) {
	authority := testcert.New("authority")
	cert, pool := authority.Issue(testcert.ECDSA, "localhost"), authority.Pool()
	for _, secure := range []bool{false, true} {
		for _, z := range []*Compression{nil, {}, {NoContextTakeover: true}, {PeerNoContextTakeover: true}, {WindowBits: 9, PeerWindowBits: 10}, {Level: 6, Threshold: 1}} {
			s := &Server{Open: echo, Subprotocols: []string{"echo"}, Options: Options{Compression: z}}
			open, scheme := s.OpenFunc(), "ws"
			if secure {
				open, scheme = rondo.Filtered(open, rtls.Server(&tls.Config{Certificates: []tls.Certificate{cert}})), "wss"
			}
			e := &rondo.Engine{NumLoops: 2}
			address := testkit.Listen(t, e, open)
			c := newClient()
			d := Dialer{Subprotocols: []string{"echo"}, TLS: &tls.Config{RootCAs: pool, ServerName: "localhost"}, Options: Options{Compression: z}}
			ref, err := d.Dial(context.Background(), e, scheme+"://"+address+"/chat?x=y", func(conn *Conn, r *http.Response) Handler {
				if conn.Subprotocol() != "echo" || conn.Compressed() != (z != nil) || r.StatusCode != 101 {
					t.Errorf("protocol %q, compressed %t, %v", conn.Subprotocol(), conn.Compressed(), r.Status)
				}
				conn.WriteMessage(Text, []byte("first"))
				return c
			})
			if err != nil {
				t.Fatal(err)
			}
			if got := await(t, c.messages); got != "text first" {
				t.Errorf("%q", got)
			}
			for i := range 20 {
				message := payloads()["12.1"](10 + 1000*i)
				ref.Do(func(c *Conn) { c.WriteMessage(Binary, []byte(message)) })
				if got := await(t, c.messages); got != "binary "+message {
					t.Fatalf("%v, %d bytes came back as %d", z, len(message), len(got))
				}
			}
			ref.WriteMessage(Text, []byte("by a ref"))
			if got := await(t, c.messages); got != "text by a ref" {
				t.Errorf("%q", got)
			}
			ref.Close(1000, "done")
			if err := await(t, c.closed); !isClosed(err, 1000, "") {
				t.Errorf("Closed got %v", err)
			}
		}
	}
}

// TestDialErrors: what Dial returns, and that it leaves nothing behind.
func TestDialErrors(t *testing.T) {
	answers := map[string]string{
		"404":                "HTTP/1.1 404 Not Found\r\nContent-Length: 4\r\n\r\nnone",
		"no upgrade":         "HTTP/1.1 101 Switching Protocols\r\nConnection: Upgrade\r\nSec-WebSocket-Accept: KEY\r\n\r\n",
		"no connection":      "HTTP/1.1 101 Switching Protocols\r\nUpgrade: websocket\r\nSec-WebSocket-Accept: KEY\r\n\r\n",
		"no accept":          "HTTP/1.1 101 Switching Protocols\r\nUpgrade: websocket\r\nConnection: Upgrade\r\n\r\n",
		"wrong accept":       "HTTP/1.1 101 Switching Protocols\r\nUpgrade: websocket\r\nConnection: Upgrade\r\nSec-WebSocket-Accept: xKEY\r\n\r\n",
		"an extension":       "HTTP/1.1 101 Switching Protocols\r\nUpgrade: websocket\r\nConnection: Upgrade\r\nSec-WebSocket-Accept: KEY\r\nSec-WebSocket-Extensions: permessage-deflate\r\n\r\n",
		"malformed":          "HTTP/1.1 101 Switching Protocols\r\nUpgrade: websocket\r\nConnection: Upgrade\r\nSec-WebSocket-Accept: KEY\r\nSec-WebSocket-Extensions: ;\r\n\r\n",
		"a subprotocol":      "HTTP/1.1 101 Switching Protocols\r\nUpgrade: websocket\r\nConnection: Upgrade\r\nSec-WebSocket-Accept: KEY\r\nSec-WebSocket-Protocol: x\r\n\r\n",
		"a folded line":      "HTTP/1.1 101 Switching Protocols\r\nUpgrade: websocket\r\n Connection: Upgrade\r\nSec-WebSocket-Accept: KEY\r\n\r\n",
		"no HTTP":            "hello\r\n\r\n",
		"too long":           strings.Repeat("x", 20000),
		"the end":            "",
		"the end in between": "HTTP/1.1 101 Switching Protocols\r\n",
		"good":               "HTTP/1.1 101 Switching Protocols\r\nUpgrade: websocket\r\nConnection: Upgrade\r\nSec-WebSocket-Accept: KEY\r\n\r\n",
	}
	for name, answer := range answers {
		n := rondotest.New(t, rondotest.Options{})
		// A server that answers anything.
		n.Serve(":80", func(*rondo.Conn) rondo.Handler {
			return rondo.HandlerFunc(func(c *rondo.Conn, in []byte) (int, error) {
				if !bytes.HasSuffix(in, []byte("\r\n\r\n")) {
					return 0, nil
				}
				r, err := readRequest(in)
				if err != nil {
					t.Errorf("the client's request: %v", err)
					return len(in), nil
				}
				if err := check(r); err != nil || r.Host != "127.0.0.1" || r.Header.Get("Cookie") != "a=b" || r.URL.String() != "/a?b" || r.Header["User-Agent"] != nil {
					t.Errorf("the client's request: %v, %+v", err, r)
				}
				io.WriteString(c, strings.ReplaceAll(answer, "KEY", wsframe.AcceptKey(r.Header.Get("Sec-Websocket-Key"))))
				if strings.HasPrefix(name, "the end") {
					c.Close()
				}
				return len(in), nil
			})
		})
		e := n.Engine(&rondo.Engine{})
		opened := false
		d := Dialer{Header: http.Header{"Cookie": {"a=b"}}}
		var err error
		n.Await(func() {
			_, err = d.Dial(context.Background(), e, "ws://127.0.0.1/a?b", func(*Conn, *http.Response) Handler { opened = true; return newClient() })
		})
		var h *HandshakeError
		switch {
		case name == "good":
			if err != nil || !opened {
				t.Errorf("%s: %v, opened %t", name, err, opened)
			}
			continue
		case strings.HasPrefix(name, "the end"):
			if err != io.ErrUnexpectedEOF {
				t.Errorf("%s: %v", name, err)
			}
		case !errors.As(err, &h):
			t.Errorf("%s: %v", name, err)
		case name == "404" && (h.Response == nil || h.Response.StatusCode != 404):
			t.Errorf("%s: the response is %v", name, h.Response)
		}
		if opened {
			t.Errorf("%s: open was called", name)
		}
	}
}

func TestDialTimeouts(t *testing.T) {
	n := rondotest.New(t, rondotest.Options{})
	var closed error
	n.Serve(":80", func(*rondo.Conn) rondo.Handler { return &silent{&closed} })
	e := n.Engine(&rondo.Engine{})
	open := func(*Conn, *http.Response) Handler { t.Error("open was called"); return nil }
	var err error
	began := n.Now()
	n.Await(func() { _, err = Dial(context.Background(), e, "ws://127.0.0.1", open) })
	if d := n.Now().Sub(began); err != ErrHandshakeTimeout || !errors.Is(err, os.ErrDeadlineExceeded) || d < DefaultHandshakeTimeout || d > DefaultHandshakeTimeout+time.Second {
		t.Errorf("%v after %v", err, d)
	}
	n.Await(func() { _, err = Dial(n.Timeout(time.Second), e, "ws://127.0.0.1", open) })
	if err != context.DeadlineExceeded {
		t.Errorf("with a context: %v", err)
	}
	n.Run()
	if closed == nil {
		t.Error("the connection was left open")
	}
	n.Await(func() { _, err = Dial(context.Background(), e, "ws://127.0.0.1:81", open) })
	if !errors.Is(err, syscall.ECONNREFUSED) {
		t.Errorf("where nobody listens: %v", err)
	}
	for _, url := range []string{"http://a", "ws://", "ws://a#b", "a", "ws://a b", "://"} {
		if _, err := Dial(context.Background(), e, url, open); err == nil {
			t.Errorf("%q is dialed", url)
		}
	}
	if _, err := Dial(context.Background(), e, "ws://127.0.0.1", nil); err == nil {
		t.Error("without a function it dials")
	}
	if _, err := (&Dialer{Options: Options{MaxFrame: -1}}).Dial(context.Background(), e, "ws://127.0.0.1", open); err == nil || !strings.Contains(err.Error(), "Dialer.MaxFrame is -1") {
		t.Errorf("MaxFrame -1: %v", err)
	}
	if _, err := (&Dialer{Subprotocols: []string{""}}).Dial(context.Background(), e, "ws://127.0.0.1", open); err == nil {
		t.Error("an empty subprotocol is offered")
	}
}

// silent never answers.
type silent struct{ closed *error }

func (*silent) Data(_ *rondo.Conn, in []byte) (int, error) { return len(in), nil }
func (s *silent) Closed(_ *rondo.Conn, err error)          { *s.closed = err }

func TestDialLoop(t *testing.T) {
	n := rondotest.New(t, rondotest.Options{})
	e := n.Serve(":80", (&Server{Open: echo}).OpenFunc())
	c := newClient()
	var failures []error
	for l := range e.Loops() {
		l.Post(func() {
			new(Dialer).DialLoop(l, "ws://127.0.0.1", func(conn *Conn, r *http.Response, err error) Handler {
				if err != nil {
					t.Error(err)
					return nil
				}
				conn.WriteMessage(Binary, []byte("hello"))
				return c
			})
			for _, url := range []string{"ws://127.0.0.1:81", "ftp://127.0.0.1", "wss://127.0.0.1"} {
				new(Dialer).DialLoop(l, url, func(conn *Conn, _ *http.Response, err error) Handler {
					if conn != nil {
						t.Errorf("%s: there is a connection", url)
					}
					failures = append(failures, err)
					return nil
				})
			}
		})
	}
	n.Until(func() bool { return len(c.messages) == 1 && len(failures) == 3 })
	if got := <-c.messages; got != "binary hello" {
		t.Errorf("%q", got)
	}
	for _, err := range failures {
		if err == nil {
			t.Error("no error")
		}
	}
}

// serverPeer is a server that may break all rules: it accepts a client of ours.
func serverPeer(t *testing.T, z *Compression, script func(p *peer)) (c *client) {
	t.Helper()
	ln, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer ln.Close()
	e := &rondo.Engine{NumLoops: 1}
	defer e.Close()
	c = newClient()
	done := make(chan bool)
	go func() {
		defer close(done)
		nc, err := ln.Accept()
		if err != nil {
			t.Error(err)
			return
		}
		defer nc.Close()
		nc.SetDeadline(time.Now().Add(patience))
		p := &peer{t: t, c: nc}
		for !bytes.HasSuffix(p.in, []byte("\r\n\r\n")) {
			p.receive()
		}
		r, err := readRequest(p.in)
		if err != nil {
			t.Error(err)
			return
		}
		p.in = nil
		extension := ""
		if z != nil {
			extension = "Sec-WebSocket-Extensions: permessage-deflate\r\n"
		}
		p.reader.Deflate = z != nil
		p.send("HTTP/1.1 101 Switching Protocols\r\nUpgrade: websocket\r\nConnection: Upgrade\r\n" + extension +
			"Sec-WebSocket-Accept: " + wsframe.AcceptKey(r.Header.Get("Sec-Websocket-Key")) + "\r\n\r\n")
		script(p)
	}()
	d := Dialer{Options: Options{Compression: z, MaxMessage: 1000}}
	if _, err := d.Dial(context.Background(), e, "ws://"+ln.Addr().String(), func(*Conn, *http.Response) Handler { return c }); err != nil {
		t.Fatal(err)
	}
	<-done
	return c
}

// serverFrame is a frame without a mask.
func serverFrame(first byte, payload string) string {
	h := wsframe.Header{Fin: first&0x80 != 0, RSV: first >> 4 & 7, Opcode: Opcode(first & 0xf), Length: int64(len(payload))}
	return string(append(wsframe.AppendHeader(nil, h), payload...))
}

// TestClientIsStrict: what servers must not send.
func TestClientIsStrict(t *testing.T) {
	for name, tt := range map[string]struct {
		in   string
		code int
	}{
		"a mask":            {frame(fin|textOp, "hi"), 1002},
		"RSV1":              {serverFrame(fin|0x40|textOp, "hi"), 1002},
		"a reserved opcode": {serverFrame(fin|3, ""), 1002},
		"no UTF-8":          {serverFrame(textOp, "\xff"), 1007},
		"a long message":    {serverFrame(textOp, strings.Repeat("x", 1001))[:4], 1009},
		"a bad code":        {serverFrame(fin|closeOp, "\x03\xed"), 1002},
	} {
		c := serverPeer(t, nil, func(p *peer) {
			p.send(tt.in)
			p.expect(fmt.Sprint("close ", tt.code), "end")
		})
		if err := await(t, c.closed); !isProtocol(err, Code(tt.code)) {
			t.Errorf("%s: Closed got %v", name, err)
		}
	}
}

// TestClientCloses: a client lets the server close first, and answers pings.
func TestClientCloses(t *testing.T) {
	c := serverPeer(t, &Compression{}, func(p *peer) {
		z := &stock{keeps: true}
		p.send(serverFrame(fin|pingOp, "x") + serverFrame(fin|0x40|textOp, z.deflate("hello")) + serverFrame(fin|0x40|textOp, z.deflate("hello again")))
		p.expect("pong x")
		p.send(serverFrame(fin|closeOp, "\x0f\xa0bye"))
		p.expect("close 4000")
		p.c.SetReadDeadline(time.Now().Add(50 * time.Millisecond))
		if _, err := p.c.Read(make([]byte, 1)); !errors.Is(err, os.ErrDeadlineExceeded) {
			t.Errorf("the client closes first: %v", err)
		}
	})
	for _, want := range []string{"text hello", "text hello again"} {
		if got := await(t, c.messages); got != want {
			t.Errorf("%q, want %q", got, want)
		}
	}
	if err := await(t, c.closed); !isClosed(err, 4000, "bye") {
		t.Errorf("Closed got %v", err)
	}
}
