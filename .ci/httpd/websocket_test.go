package httpd_test

import (
	"bufio"
	"bytes"
	"fmt"
	"io"
	"net/http"
	"net/http/httputil"
	"net/url"
	"strings"
	"testing"
	"time"

	coder "github.com/coder/websocket"
	"github.com/gobwas/ws"
	"github.com/gobwas/ws/wsutil"
	"github.com/gorilla/websocket"
	"github.com/lxzan/gws"
)

// echoes are WebSocket servers that take the connection from a handler, and echo.
var echoes = map[string]http.HandlerFunc{
	"gorilla": func(w http.ResponseWriter, r *http.Request) {
		u := websocket.Upgrader{EnableCompression: true, CheckOrigin: func(*http.Request) bool { return true }}
		c, err := u.Upgrade(w, r, nil)
		if err != nil {
			return
		}
		defer c.Close()
		for {
			kind, p, err := c.ReadMessage()
			if err != nil || c.WriteMessage(kind, p) != nil {
				return
			}
		}
	},
	"coder": func(w http.ResponseWriter, r *http.Request) {
		c, err := coder.Accept(w, r, &coder.AcceptOptions{CompressionMode: coder.CompressionContextTakeover})
		if err != nil {
			return
		}
		defer c.CloseNow()
		c.SetReadLimit(4 << 20)
		for {
			kind, p, err := c.Read(r.Context())
			if err != nil || c.Write(r.Context(), kind, p) != nil {
				return
			}
		}
	},
	"gobwas": func(w http.ResponseWriter, r *http.Request) {
		c, rw, _, err := ws.UpgradeHTTP(r, w)
		if err != nil {
			return
		}
		defer c.Close()
		from := struct {
			io.Reader
			io.Writer
		}{rw, c}
		for {
			p, op, err := wsutil.ReadClientData(from)
			if err != nil || wsutil.WriteServerMessage(c, op, p) != nil {
				return
			}
		}
	},
	"gws": func(w http.ResponseWriter, r *http.Request) {
		u := gws.NewUpgrader(gwsEcho{}, &gws.ServerOption{PermessageDeflate: gws.PermessageDeflate{Enabled: true}})
		if c, err := u.Upgrade(w, r); err == nil {
			c.ReadLoop()
		}
	},
}

type gwsEcho struct{ gws.BuiltinEventHandler }

func (gwsEcho) OnMessage(c *gws.Conn, m *gws.Message) {
	defer m.Close()
	c.WriteMessage(m.Opcode, m.Bytes())
}

func (gwsEcho) OnPing(c *gws.Conn, p []byte) { c.WritePong(p) }

// talk has messages echoed, a ping answered, and closes.
func talk(t *testing.T, s *site, path string) {
	t.Helper()
	d := websocket.Dialer{TLSClientConfig: s.tls, EnableCompression: true}
	c, _, err := d.Dial(strings.Replace(s.url(path), "http", "ws", 1), nil)
	if err != nil {
		t.Fatal(err)
	}
	defer c.Close()
	c.SetReadDeadline(time.Now().Add(patience))
	pong := ""
	c.SetPongHandler(func(data string) error { pong = data; return nil })
	for i, n := range []int{0, 1, 125, 126, 65_535, 65_536, 1 << 20} {
		kind, m := websocket.TextMessage, bytes.Repeat([]byte("abcdefg"), n/7+1)[:n]
		if i%2 == 0 {
			kind = websocket.BinaryMessage
		}
		if i == 3 {
			c.WriteMessage(websocket.PingMessage, []byte("ping"))
		}
		if err := c.WriteMessage(kind, m); err != nil {
			t.Fatal(err)
		}
		if got, back, err := c.ReadMessage(); got != kind || !bytes.Equal(back, m) || err != nil {
			t.Fatalf("%d bytes came back as %d, %v", n, len(back), err)
		}
	}
	if pong != "ping" {
		t.Errorf("pong %q", pong)
	}
	c.WriteMessage(websocket.CloseMessage, websocket.FormatCloseMessage(1000, ""))
	if _, _, err := c.ReadMessage(); !websocket.IsCloseError(err, 1000) {
		t.Errorf("the end is %v", err)
	}
}

func TestWebSocket(t *testing.T) {
	for name, echo := range echoes {
		for _, secure := range []bool{false, true} {
			t.Run(fmt.Sprint(name, secure), func(t *testing.T) {
				s := serve(t, &http.Server{Handler: echo, ReadTimeout: 300 * time.Millisecond, WriteTimeout: 300 * time.Millisecond}, secure, false)
				talk(t, s, "/")
			})
		}
	}
}

// A client may send its first message behind the request, before it has the answer.
func TestWebSocketAtOnce(t *testing.T) {
	const request = "GET / HTTP/1.1\r\nHost: localhost\r\nUpgrade: websocket\r\nConnection: Upgrade\r\n" +
		"Sec-WebSocket-Key: dGhlIHNhbXBsZSBub25jZQ==\r\nSec-WebSocket-Version: 13\r\n\r\n"
	const hello = "\x81\x85\x00\x00\x00\x00hello"
	for name, echo := range echoes {
		if name == "gorilla" || name == "gws" {
			continue // the one refuses this, the other drops what the Reader of Hijack has
		}
		for _, secure := range []bool{false, true} {
			t.Run(fmt.Sprint(name, secure), func(t *testing.T) {
				s := serve(t, &http.Server{Handler: echo}, secure, false)
				c, err := s.dial()
				if err != nil {
					t.Fatal(err)
				}
				defer c.Close()
				c.SetDeadline(time.Now().Add(patience))
				io.WriteString(c, request+hello)
				r := bufio.NewReader(c)
				answer, err := http.ReadResponse(r, nil)
				if err != nil || answer.StatusCode != 101 {
					t.Fatal(answer, err)
				}
				got := make([]byte, 7)
				if _, err := io.ReadFull(r, got); err != nil || string(got) != "\x81\x05hello" {
					t.Errorf("%q, %v", got, err)
				}
			})
		}
	}
}

// WebSocket through a ReverseProxy: both servers give their connection away.
func TestWebSocketProxy(t *testing.T) {
	for _, secure := range []bool{false, true} {
		m := http.NewServeMux()
		for name, echo := range echoes {
			m.Handle("/"+name, echo)
		}
		target := serve(t, &http.Server{Handler: m}, false, false)
		to, _ := url.Parse(target.url(""))
		s := serve(t, &http.Server{Handler: httputil.NewSingleHostReverseProxy(to)}, secure, false)
		for name := range echoes {
			t.Run(fmt.Sprint(name, secure), func(t *testing.T) { talk(t, s, "/"+name) })
		}
	}
}
