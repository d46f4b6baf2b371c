package rtls_test

import (
	"crypto/tls"
	"fmt"
	"io"
	"net"
	"os"
	"runtime"
	"testing"
	"time"

	"github.com/rondo-go/rondo"
	"github.com/rondo-go/rondo/rtls"
)

// A halting connection lets pass what passes says of each write, up to one of which
// that is not all. Then it is out of time.
type halting struct {
	net.Conn
	passes  func(write, bytes int) int
	writes  int
	written int
	halted  bool
}

func (c *halting) Write(p []byte) (int, error) {
	if c.halted {
		return 0, os.ErrDeadlineExceeded
	}
	n := c.passes(c.writes, len(p))
	c.writes++
	c.halted = n < len(p)
	k, err := c.Conn.Write(p[:n])
	c.written += k
	if err == nil && c.halted {
		err = os.ErrDeadlineExceeded
	}
	return k, err
}

// halts are where a client halts.
var halts = map[string]func(write, bytes int) int{
	"at once":                        func(int, int) int { return 0 },
	"in a record's header":           func(int, int) int { return 3 },
	"in its hello":                   func(_, n int) int { return n / 2 },
	"after its hello":                func(i, n int) int { return n * (1 - min(i, 1)) },
	"before its second flight's end": func(i, n int) int { return n - i },
	"before its third write's end":   func(i, n int) int { return n - max(0, i-1) },
}

// An end is what may happen to a connection in the middle of its handshake.
type end struct {
	server func(e *rondo.Engine, c rondo.Ref) // by the server's side
	client func(c net.Conn)                   // or by the client's
}

var plainText = map[string]string{
	"close_notify":      "\x15\x03\x03\x00\x02\x01\x00",
	"user_canceled":     "\x15\x03\x03\x00\x02\x01\x5a",
	"fatal alert":       "\x15\x03\x03\x00\x02\x02\x28",
	"data":              "\x17\x03\x03\x00\x01\x00",
	"no TLS":            "GET / HTTP/1.1\r\n\r\n",
	"endless handshake": "\x16\x03\x03\x00\x04\x0b\xff\xff\xff",
}

func ends() map[string]end {
	all := map[string]end{
		"Abort":           {server: func(_ *rondo.Engine, c rondo.Ref) { c.Do(func(c *rondo.Conn) { c.Abort(nil) }) }},
		"Close":           {server: func(_ *rondo.Engine, c rondo.Ref) { c.Close() }},
		"Write and Close": {server: func(_ *rondo.Engine, c rondo.Ref) { c.Write([]byte("early")); c.Close() }},
		"CloseWrite":      {server: func(_ *rondo.Engine, c rondo.Ref) { c.Do((*rondo.Conn).CloseWrite) }},
		"Engine.Close":    {server: func(e *rondo.Engine, _ rondo.Ref) { e.Close() }},
		"Engine.Shutdown": {server: func(e *rondo.Engine, _ rondo.Ref) { e.Shutdown(canceled) }},
		"panic":           {server: func(_ *rondo.Engine, c rondo.Ref) { c.Do(func(*rondo.Conn) { panic("a goat") }) }},
		"Goexit":          {server: func(_ *rondo.Engine, c rondo.Ref) { c.Do(func(*rondo.Conn) { runtime.Goexit() }) }},
		"end of stream":   {client: func(c net.Conn) { c.(*net.TCPConn).CloseWrite() }},
		"reset":           {client: func(c net.Conn) { c.(*net.TCPConn).SetLinger(0); c.Close() }},
	}
	for name, text := range plainText {
		all[name] = end{client: func(c net.Conn) { io.WriteString(c, text); c.(*net.TCPConn).CloseWrite() }}
	}
	return all
}

// Wherever a handshake stands, and whoever ends the connection then, and how: Closed is
// told once, and nothing is left of it.
func TestEndsInMidHandshake(t *testing.T) {
	everywhere(t, func(t *testing.T, backend string, o *rtls.Options) {
		for name, version := range versions {
			before := runtime.NumGoroutine()
			for how, end := range ends() {
				for where, passes := range halts {
					endMidway(t, fmt.Sprintf("%s, %s: %s", name, where, how), quiet(backend), o, version, passes, end)
				}
			}
			settles(t, "afterwards", before)
		}
	})
}

func endMidway(t *testing.T, what string, e *rondo.Engine, o *rtls.Options, version uint16, passes func(write, bytes int) int, end end) {
	t.Helper()
	serverSide, clientSide := mutual(version)
	ended := make(chan error, 2)
	refs := make(chan rondo.Ref, 1)
	open := watched(ended).filtered(o.Server(serverSide))
	address := listen(t, e, func(c *rondo.Conn) rondo.Handler {
		refs <- c.Ref()
		return open(c)
	})
	raw, err := net.Dial("tcp", address)
	if err != nil {
		t.Fatal(err)
	}
	defer raw.Close()
	raw.SetDeadline(time.Now().Add(60 * time.Second))
	client := &halting{Conn: raw, passes: passes}
	tls.Client(client, clientSide).Handshake()
	ref := receive(t, "the connection", refs)
	for looks := 0; e.Stats().BytesIn < uint64(client.written); looks++ {
		if looks == 60_000 {
			t.Fatalf("%s: the server got %d bytes of %d", what, e.Stats().BytesIn, client.written)
		}
		time.Sleep(time.Millisecond)
	}
	if end.server != nil {
		end.server(e, ref)
	} else {
		end.client(raw)
	}
	raw.(*net.TCPConn).CloseWrite() // what the server has to say yet it need not wait for
	io.Copy(io.Discard, raw)
	raw.Close()
	receive(t, what+": Closed", ended)
	e.Close()
	if s := e.Stats(); len(ended) > 0 || s.Open != 0 || s.Closed != 1 {
		t.Errorf("%s: Closed was called again, or %+v", what, s.LoopStats)
	}
}
