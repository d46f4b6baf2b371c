package websocket

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/rondo-go/rondo/rondotest"
	"github.com/rondo-go/rondo/wsframe"
)

// answerTo returns the first line and the whole of the answer to a request.
func answerTo(t *testing.T, n *rondotest.Network, in string) (status, all string) {
	t.Helper()
	c := n.Dial("tcp", "127.0.0.1:80")
	c.Send(in)
	n.Run()
	c.CloseWrite()
	b, err := io.ReadAll(c)
	if err != nil {
		t.Errorf("after %.60q: %v", in, err)
	}
	status, _, _ = strings.Cut(string(b), "\r\n")
	return strings.TrimPrefix(status, "HTTP/1.1 "), string(b)
}

// TestRequests: what is no correct handshake is refused.
func TestRequests(t *testing.T) {
	good := request()
	without := func(name string) string {
		var b strings.Builder
		for line := range strings.SplitAfterSeq(good, "\r\n") {
			if !strings.HasPrefix(line, name+":") {
				b.WriteString(line)
			}
		}
		return b.String()
	}
	replace := func(old, new string) string { return strings.Replace(good, old, new, 1) }
	tests := []struct{ name, in, status string }{
		{"good", good, "101 Switching Protocols"},
		{"in another case", strings.NewReplacer("Upgrade: websocket", "uPGRADE: WebSocket", "Connection: Upgrade", "cONNECTION:keep-alive ,  UPGRADE").Replace(good), "101"},
		{"no Upgrade", without("Upgrade"), "426"},
		{"another Upgrade", replace("Upgrade: websocket", "Upgrade: h2c"), "426"},
		{"no Connection", without("Connection"), "400"},
		{"another Connection", replace("Connection: Upgrade", "Connection: keep-alive"), "400"},
		{"no version", without("Sec-WebSocket-Version"), "426"},
		{"another version", replace("Version: 13", "Version: 8"), "426"},
		{"no key", without("Sec-WebSocket-Key"), "400"},
		{"a short key", replace(sampleKey, "YQ=="), "400"},
		{"two keys", request("Sec-WebSocket-Key: " + sampleKey), "400"},
		{"no host", without("Host"), "400"},
		{"two hosts", request("Host: example.org"), "400"},
		{"another method", replace("GET", "POST"), "405"},
		{"HTTP/1.0", replace("HTTP/1.1", "HTTP/1.0"), "505"},
		{"HTTP/2.0", replace("HTTP/1.1", "HTTP/2.0"), "505"},
		{"a body", request("Content-Length: 5"), "400"},
		{"a chunked body", request("Transfer-Encoding: chunked"), "400"},
		{"no HTTP", "hello\r\n\r\n", "400"},
		{"a blank before the colon", request("X-A : b"), "400"},
		{"a folded line", request("X-A: b\r\n c"), "400"},
		{"a bare LF", request("X-A: b\nX-B: c"), "400"},
		{"a bare CR", request("X-A: b\rc"), "400"},
		{"NUL", request("X-A: b\x00"), "400"},
		{"no name", request(": b"), "400"},
		{"no colon", request("X-A"), "400"},
		{"malformed extensions", request("Sec-WebSocket-Extensions: a;"), "400"},
		{"malformed protocols", request("Sec-WebSocket-Protocol: a b"), "400"},
		{"protocol twice", request("Sec-WebSocket-Protocol: a, a"), "400"},
		{"the same origin", request("Origin: http://EXAMPLE.com"), "101"},
		{"another origin", request("Origin: https://example.org"), "403"},
		{"no origin", request("Origin: null"), "403"},
		{"two origins", request("Origin: http://example.com", "Origin: http://example.com"), "403"},
		{"a long header", request("X-A: " + strings.Repeat("a", 20000)), "431"},
		{"a long line without end", strings.Repeat("a", 20000), "431"},
	}
	n := rondotest.New(t, rondotest.Options{})
	n.Serve(":80", (&Server{Open: echo}).OpenFunc())
	for _, tt := range tests {
		status, all := answerTo(t, n, tt.in)
		if !strings.HasPrefix(status, tt.status) {
			t.Errorf("%s: %q, want %s", tt.name, status, tt.status)
		}
		if strings.Contains(tt.name, "version") && !strings.Contains(all, "\r\nSec-Websocket-Version: 13\r\n") {
			t.Errorf("%s: the answer does not tell the version: %q", tt.name, all)
		}
	}
}

// TestHandshakeInPieces: a request byte by byte, with a message right behind it.
func TestHandshakeInPieces(t *testing.T) {
	onNetworks(t, &Server{Open: echo}, func(t *testing.T, d dialer) {
		c := d.dial()
		p := &peer{t: t, c: c, reader: wsframe.Reader{FromServer: true}}
		p.chop(request()+text("hello"), 1)
		for !bytes.Contains(p.in, []byte("\r\n\r\n")) {
			if !p.receive() {
				t.Fatalf("no answer: %q", p.in)
			}
		}
		_, p.in, _ = bytes.Cut(p.in, []byte("\r\n\r\n"))
		p.expect("text hello")
		p.bye()
	})
}

func TestAccept(t *testing.T) {
	var refuse error
	s := &Server{
		Open: func(c *Conn, r *http.Request) Handler {
			if r.URL.Path == "/nil" {
				return nil
			}
			c.WriteMessage(Text, []byte("welcome "+r.Header.Get("X-User")+" "+c.Subprotocol()))
			return HandlerFunc((*Conn).WriteMessage)
		},
		Accept: func(r *http.Request, reply http.Header) error {
			reply.Set("Set-Cookie", "a=b")
			reply.Set("Upgrade", "nonsense")
			reply.Set("X-Split", "a\r\nb")
			r.Header.Set("X-User", "ann")
			return refuse
		},
		Subprotocols: []string{"two", "one"},
		Other: func(c io.Writer, r *http.Request) {
			fmt.Fprintf(c, "HTTP/1.1 200 OK\r\nContent-Length: %d\r\n\r\n%s", len(r.URL.Path), r.URL.Path)
		},
	}
	n := rondotest.New(t, rondotest.Options{})
	n.Serve(":80", s.OpenFunc())
	p := upgradeTo(t, n.Dial("tcp", "127.0.0.1:80"), "Sec-WebSocket-Protocol: one, two", "Sec-WebSocket-Protocol: three")
	if got := fmt.Sprint(p.header["Set-Cookie"], p.header["Upgrade"], p.header["X-Split"], p.header["Sec-Websocket-Protocol"]); got != "[a=b] [websocket] [a  b] [two]" {
		t.Errorf("the answer has %v", got)
	}
	p.expect("text welcome ann two")
	p.bye()

	p = upgradeTo(t, n.Dial("tcp", "127.0.0.1:80"), "Sec-WebSocket-Protocol: three")
	if p.header["Sec-Websocket-Protocol"] != nil {
		t.Errorf("a protocol that the server does not speak: %q", p.header["Sec-Websocket-Protocol"])
	}
	c := n.Dial("tcp", "127.0.0.1:80")
	c.Send(strings.Replace(request(), "/chat", "/nil", 1))
	n.Run()
	c.CloseWrite()
	if b, err := io.ReadAll(c); err != nil || !bytes.HasSuffix(b, []byte("\r\n\r\n\x88\x02\x03\xf0")) {
		t.Errorf("without a handler: %q, %v", b, err)
	}
	if _, all := answerTo(t, n, "GET /page HTTP/1.1\r\nHost: a\r\n\r\n"); all != "HTTP/1.1 200 OK\r\nContent-Length: 5\r\n\r\n/page" {
		t.Errorf("an ordinary request: %q", all)
	}

	refuse = errors.New("no")
	if status, _ := answerTo(t, n, request()); status != "403 Forbidden" {
		t.Errorf("refused: %q", status)
	}
	refuse = fmt.Errorf("wrapped: %w", &RefusedError{Status: 401, Header: http.Header{"Www-Authenticate": {"Basic"}}, Text: "who are you?"})
	status, all := answerTo(t, n, request())
	if status != "401 Unauthorized" || !strings.Contains(all, "\r\nWww-Authenticate: Basic\r\n") || !strings.HasSuffix(all, "\r\n\r\nwho are you?\n") {
		t.Errorf("refused: %q", all)
	}
	refuse = &RefusedError{Status: 200}
	if status, _ := answerTo(t, n, request()); status != "500 Internal Server Error" {
		t.Errorf("refused with 200: %q", status)
	}
}

func TestOrigins(t *testing.T) {
	check := AllowOrigins("https://example.org", "https://*.example.net", "http://localhost:3000")
	any := AllowOrigins("*")
	for origin, want := range map[string]bool{
		"":                                true,
		"http://here":                     true,
		"https://here":                    true,
		"http://here:8080":                false,
		"https://example.org":             true,
		"https://EXAMPLE.org":             true,
		"http://example.org":              false,
		"https://example.org:8443":        false,
		"https://a.example.net":           true,
		"https://a.b.Example.net":         true,
		"https://example.net":             false,
		"https://.example.net":            false,
		"https://evil.com/.example.net":   false,
		"https://evil@a.example.net":      false,
		"http://localhost:3000":           true,
		"http://localhost:3001":           false,
		"https://xexample.org":            false,
		"null":                            false,
		"https://here.example.org.attack": false,
	} {
		r := &http.Request{Host: "here", Header: make(http.Header)}
		if origin != "" {
			r.Header.Set("Origin", origin)
		}
		if check(r) != want {
			t.Errorf("%q: %t", origin, !want)
		}
		if !any(r) {
			t.Errorf("%q: any origin is not allowed", origin)
		}
	}
}

// TestSlowHandshake: a client that takes its time is told, and the handler never.
func TestSlowHandshake(t *testing.T) {
	n := rondotest.New(t, rondotest.Options{})
	s := &Server{Open: func(*Conn, *http.Request) Handler { t.Error("Open was called"); return nil }}
	n.Serve(":80", s.OpenFunc())
	began := n.Now()
	c := n.Dial("tcp", "127.0.0.1:80")
	for _, b := range request()[:20] {
		c.Send(string(b))
		n.Advance(400 * time.Millisecond)
	}
	b, err := io.ReadAll(c)
	if err != nil || !bytes.HasPrefix(b, []byte("HTTP/1.1 408 Request Timeout\r\n")) {
		t.Errorf("%q, %v", b, err)
	}
	if d := n.Now().Sub(began); d < DefaultHandshakeTimeout || d > DefaultHandshakeTimeout+time.Second {
		t.Errorf("after %v", d)
	}
}

// TestMeaningless: fields that make no sense are refused at once.
func TestMeaningless(t *testing.T) {
	for want, s := range map[string]*Server{
		"Open is nil":            {},
		"MaxFrame is -1":         {Open: echo, Options: Options{MaxFrame: -1}},
		"MaxHeader is -1":        {Open: echo, Options: Options{MaxHeader: -1}},
		"PingInterval is -1ns":   {Open: echo, Options: Options{PingInterval: -1}},
		"IdleTimeout is -1ns":    {Open: echo, Options: Options{IdleTimeout: -1}},
		"less than IdleTimeout":  {Open: echo, Options: Options{IdleTimeout: time.Second, PingInterval: time.Second}},
		"no more than 100 times": {Open: echo, Options: Options{IdleTimeout: time.Hour, PingInterval: time.Second}},
		"a limit":                {Open: echo, Options: Options{MaxMessage: -1, Compression: &Compression{}}},
		"Level is 7":             {Open: echo, Options: Options{Compression: &Compression{Level: 7}}},
		"Threshold is -1":        {Open: echo, Options: Options{Compression: &Compression{Threshold: -1}}},
		".WindowBits is 7":       {Open: echo, Options: Options{Compression: &Compression{WindowBits: 7}}},
		"PeerWindowBits is 16":   {Open: echo, Options: Options{Compression: &Compression{PeerWindowBits: 16}}},
		`Subprotocols has "a b"`: {Open: echo, Subprotocols: []string{"a b"}},
	} {
		func() {
			defer func() {
				if text, _ := recover().(string); !strings.Contains(text, want) || !strings.HasPrefix(text, "websocket: Server.") {
					t.Errorf("it panicked with %q, want %q", text, want)
				}
			}()
			s.OpenFunc()
		}()
	}
}

// TestShutdown: the engine's end closes connections with a closing handshake, and ends
// handshakes.
func TestShutdown(t *testing.T) {
	n := rondotest.New(t, rondotest.Options{})
	r := newRecorder()
	e := n.Serve(":80", (&Server{Open: r.open}).OpenFunc())
	p := upgradeTo(t, n.Dial("tcp", "127.0.0.1:80"))
	half := n.Dial("tcp", "127.0.0.1:80")
	half.Send(request()[:30])
	n.Run()
	done := make(chan error, 1)
	n.Await(func() {
		go func() { done <- e.Shutdown(n.Timeout(time.Minute)) }()
		p.expect("close 1001")
		p.send(closeFrame(1001, ""))
		p.expect("end")
		half.ExpectEOF()
		p.c.Close()
		half.Close()
		if err := <-done; err != nil {
			t.Error(err)
		}
	})
	if err := <-r.closed; !isClosed(err, 1001, "") || CodeOf(err) != 1001 {
		t.Errorf("Closed got %v", err)
	}
}
