package rtls_test

import (
	"bytes"
	"crypto/tls"
	"errors"
	"io"
	"net"
	"os"
	"runtime"
	"strings"
	"testing"
	"time"

	"github.com/rondo-go/rondo"
	"github.com/rondo-go/rondo/rondotest"
	"github.com/rondo-go/rondo/rtls"
)

// tape keeps the last thing written.
type tape struct {
	net.Conn
	last []byte
}

func (c *tape) Write(p []byte) (int, error) {
	c.last = bytes.Clone(p)
	return c.Conn.Write(p)
}

// Records that are none, or not the peer's, get an alert, and the connection is
// closed.
func TestHostileRecords(t *testing.T) {
	for name, test := range map[string]struct {
		alert  string
		record func(last []byte) []byte
	}{
		"garbage":   {"bad record MAC", func([]byte) []byte { return append([]byte{23, 3, 3, 0, 64}, make([]byte, 64)...) }},
		"no record": {"protocol version", func([]byte) []byte { return []byte("hello, world") }},
		"short":     {"bad record MAC", func([]byte) []byte { return []byte{23, 3, 3, 0, 1, 0} }},
		"oversized": {"record overflow", func([]byte) []byte { return append([]byte{23, 3, 3, 0x48, 0x01}, make([]byte, 20_000)...) }},
		"replayed":  {"bad record MAC", func(last []byte) []byte { return last }},
		"truncated": {"bad record MAC", func(last []byte) []byte {
			cut := bytes.Clone(last[:len(last)-1])
			cut[4]--
			return cut
		}},
		"tampered": {"bad record MAC", func(last []byte) []byte {
			other := bytes.Clone(last)
			other[len(other)-1] ^= 1
			return other
		}},
		"in plain text": {"", func([]byte) []byte { return []byte{21, 3, 3, 0, 2, 1, 0} }}, // close_notify
	} {
		t.Run(name, func(t *testing.T) {
			eachVersion(t, func(t *testing.T, version uint16) {
				n := rondotest.New(t, rondotest.Options{})
				h := &player{}
				serve(n, h, serverConfig(version))
				raw := &tape{Conn: n.Dial("tcp", "127.0.0.1:7")}
				c := handshake(t, raw, clientConfig())
				roundTrip(t, c, "hello")
				raw.Write(test.record(raw.last))
				k, err := c.Read(make([]byte, 100))
				if k != 0 || !isAlert(err) || !strings.Contains(err.Error(), test.alert) {
					t.Errorf("%d bytes and %v came, want an alert: %s", k, err, test.alert)
				}
				if k, err := raw.Read(make([]byte, 100)); k != 0 || err != io.EOF {
					t.Errorf("behind the alert came %d bytes, %v", k, err)
				}
				raw.Close()
				n.Run()
				if string(h.got) != "hello" || h.ended || !h.closed || h.err == nil {
					t.Errorf("got %q, ended %v, closed %v, %v", h.got, h.ended, h.closed, h.err)
				}
			})
		})
	}
}

// So do handshakes that are none, but for those that do not look like TLS at all:
// they get nothing, as crypto/tls has it.
func TestHostileHandshakes(t *testing.T) {
	for name, test := range map[string]struct{ in, out string }{
		"empty hello":     {"\x16\x03\x01\x00\x04\x01\x00\x00\x00", "\x15\x03"},
		"another message": {"\x16\x03\x01\x00\x04\x0e\x00\x00\x00", "\x15\x03"},
		"too long":        {"\x16\x03\x01\x00\x04\x01\x02\x00\x00", "\x15\x03"},
		"oversized":       {"\x16\x03\x01\x48\x01", "\x15\x03"},
		"SSL 2":           {"\x80\x2e\x01\x00\x02", "\x15\x03"},
		"HTTP":            {"GET / HTTP/1.1\r\n", ""},
		"data":            {"\x17\x03\x03\x00\x01\x00", ""},
	} {
		t.Run(name, func(t *testing.T) {
			n := rondotest.New(t, rondotest.Options{})
			h := &player{}
			var why error
			e := n.Engine(&rondo.Engine{Trace: &rondo.Trace{FilterFailed: func(_ *rondo.Conn, _ rondo.Filter, err error) { why = err }}})
			n.Listen(e, "tcp", ":7", rondo.Filtered(h.open, rtls.Server(serverConfig(0))))
			c := n.Dial("tcp", "127.0.0.1:7")
			c.Send(test.in)
			got, err := io.ReadAll(c)
			if err != nil || !strings.HasPrefix(string(got), test.out) || test.out == "" && len(got) > 0 {
				t.Errorf("%q came, %v; want %q", got, err, test.out)
			}
			if h.opened != 0 || why == nil {
				t.Errorf("the handler was made %d times; the reason: %v", h.opened, why)
			}
		})
	}
}

// stop is a client that goes so far and no further.
type stop struct {
	net.Conn
	left int
}

func (c *stop) Write(p []byte) (int, error) {
	if c.left--; c.left < 0 {
		return 0, os.ErrDeadlineExceeded
	}
	return c.Conn.Write(p)
}

// Clients that stop anywhere in the handshake are closed when its time is over.
func TestHandshakeTimeout(t *testing.T) {
	for name, o := range map[string]*rtls.Options{
		"default":      {},
		"other":        {HandshakeTimeout: time.Minute},
		"off the loop": {OffLoop: 1},
	} {
		t.Run(name, func(t *testing.T) {
			d := o.HandshakeTimeout
			if d == 0 {
				d = rtls.DefaultHandshakeTimeout
			}
			n := rondotest.New(t, rondotest.Options{})
			var why []error
			n.Serve(":7", func(c *rondo.Conn) rondo.Handler {
				c.Use(nil, o.Server(serverConfig(0)))
				return closing(func(err error) { why = append(why, err) })
			})
			began := n.Now()
			silent := n.Dial("tcp", "127.0.0.1:7")
			partial := n.Dial("tcp", "127.0.0.1:7")
			partial.Send("\x16\x03\x01\x02\x00\x01\x00\x01\xfc\x03\x03")
			hello := n.Dial("tcp", "127.0.0.1:7")
			tls.Client(&stop{hello, 1}, clientConfig()).Handshake()
			n.Advance(began.Add(d - time.Second).Sub(n.Now()))
			if len(why) > 0 {
				t.Fatalf("closed too early: %v", why)
			}
			n.Advance(2 * time.Second)
			if len(why) != 3 {
				t.Fatalf("%d are closed: %v", len(why), why)
			}
			for _, err := range why {
				if !errors.Is(err, rtls.ErrHandshakeTimeout) || !errors.Is(err, os.ErrDeadlineExceeded) {
					t.Errorf("Closed got %v", err)
				}
			}
			for _, c := range []*rondotest.Conn{silent, partial, hello} {
				if _, err := io.Copy(io.Discard, c); err == nil {
					t.Error("a client sees an orderly end")
				}
			}
		})
	}
	t.Run("never", func(t *testing.T) {
		n := rondotest.New(t, rondotest.Options{})
		h := &player{}
		n.Serve(":7", rondo.Filtered(h.open, (&rtls.Options{HandshakeTimeout: -1}).Server(serverConfig(0))))
		c := n.Dial("tcp", "127.0.0.1:7")
		n.Advance(time.Hour)
		roundTrip(t, handshake(t, c, clientConfig()), "hello")
	})
	t.Run("client", func(t *testing.T) {
		n := rondotest.New(t, rondotest.Options{})
		n.Serve(":7", func(*rondo.Conn) rondo.Handler {
			return rondo.HandlerFunc(func(_ *rondo.Conn, in []byte) (int, error) { return len(in), nil })
		})
		failed := dial(n, "127.0.0.1:7", &player{}, func(*rondo.Conn) { t.Error("connected") }, rtls.Client(clientConfig()))
		n.Advance(time.Minute)
		if !errors.Is(*failed, rtls.ErrHandshakeTimeout) {
			t.Errorf("it failed with %v", *failed)
		}
	})
}

// A thousand clients that stop in mid-handshake cost others no turn of the loop,
// and no goroutine but those that got to a handshake's middle.
func TestStalledClientsSlowNobody(t *testing.T) {
	const many = 1000
	// turns is how many an exchange takes, beside so many that stall.
	turns := func(t *testing.T, stalled int, o *rtls.Options) uint64 {
		n := rondotest.New(t, rondotest.Options{Seed: 7, Fragment: -1, MinLatency: time.Millisecond, MaxLatency: time.Millisecond})
		e := n.Engine(&rondo.Engine{})
		n.Listen(e, "tcp", ":7", rondo.Filtered((&player{}).open, o.Server(serverConfig(0))))
		idle := runtime.NumGoroutine()
		for i := range stalled {
			c := n.Dial("tcp", "127.0.0.1:7")
			switch i % 3 {
			case 1:
				c.Send("\x16\x03\x01\x02\x00\x01\x00\x01\xfc\x03\x03")
			case 2:
				if i < 100 {
					tls.Client(&stop{c, 1}, clientConfig()).Handshake()
				}
			}
		}
		n.Run()
		if got := runtime.NumGoroutine() - idle; stalled > 0 && (got < 20 || got > 60) {
			t.Errorf("%d goroutines were made for %d handshakes that began", got, 33)
		}
		before := e.Stats().Turns
		c := handshake(t, n.Dial("tcp", "127.0.0.1:7"), clientConfig())
		for range 10 {
			roundTrip(t, c, "hello")
		}
		n.Run()
		after := e.Stats().Turns
		c.NetConn().Close()
		n.Advance(time.Minute)
		if open := e.Stats().Open; open != 0 {
			t.Errorf("%d connections are left", open)
		}
		return after - before
	}
	t.Run("on the loop", func(t *testing.T) {
		alone, beside := turns(t, 0, &rtls.Options{}), turns(t, many, &rtls.Options{})
		if alone == 0 || beside > alone+2 {
			t.Errorf("an exchange takes %d turns alone, and %d beside %d clients that stall", alone, beside, many)
		}
	})
	t.Run("off the loop", func(t *testing.T) { turns(t, many, &rtls.Options{OffLoop: 1}) })
}
