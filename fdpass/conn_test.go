//go:build unix

package fdpass_test

import (
	"encoding/binary"
	"io"
	"net"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/rondo-go/rondo"
	"github.com/rondo-go/rondo/fdpass"
)

// A peer is one of two servers that pass each other their connections, over and over.
type peer struct {
	*recorder
	t      *testing.T
	ch     *fdpass.Channel
	passed *atomic.Int64 // by both
}

func newPeer(t *testing.T, e *rondo.Engine, nc *net.UnixConn, passed *atomic.Int64) *peer {
	s := &peer{t: t, passed: passed}
	s.recorder = &recorder{message: func(ch *fdpass.Channel, m *fdpass.Message) {
		nc, err := m.Conn()
		if err == nil {
			_, err = ch.Loop().Attach(nc, s.open)
		}
		if err != nil {
			t.Errorf("what was passed: %v", err)
		}
	}}
	s.ch = channel(t, e, nc, s)
	return s
}

// A session echoes words of eight bytes. At its second call it passes the connection on,
// with a word that it has not served.
type session struct {
	*peer
	calls int
}

func (s *peer) open(*rondo.Conn) rondo.Handler { return &session{peer: s} }

func (s *session) Data(c *rondo.Conn, in []byte) (int, error) {
	n := len(in) / 8 * 8
	if s.calls++; s.calls != 2 || n == 0 {
		return c.Write(in[:n])
	}
	n -= 8
	c.Write(in[:n])
	return n, c.Detach(func(nc net.Conn, err error) {
		if err == nil {
			s.passed.Add(1)
			err = s.ch.SendConn(nil, nc, func(back net.Conn, err error) {
				if back != nil || err != nil {
					s.t.Errorf("SendConn: %v, %v", back, err)
				}
			})
		}
		if err != nil {
			s.t.Errorf("passing on: %v", err)
		}
	})
}

func (s *session) Closed(*rondo.Conn, error) {}

// Connections move back and forth between two engines under load, and no byte is lost,
// doubled or out of place.
func TestConnsUnderLoad(t *testing.T) {
	const clients, words = 4, 4000
	backends(t, func(t *testing.T, one *rondo.Engine) {
		two := &rondo.Engine{Backend: one.Backend, NumLoops: 1}
		defer two.Close()
		if err := two.Start(); err != nil {
			t.Fatal(err)
		}
		a, b := sockets(t)
		var passed atomic.Int64
		first := newPeer(t, one, a, &passed)
		newPeer(t, two, b, &passed)
		before := openFiles(t)
		ln, err := one.Listen("tcp", "127.0.0.1:0", rondo.SocketOptions{}, first.open)
		if err != nil {
			t.Fatal(err)
		}
		ended := make(chan struct{})
		for range clients {
			c, err := net.Dial("tcp", ln.Addr().String())
			if err != nil {
				t.Fatal(err)
			}
			c.SetDeadline(time.Now().Add(time.Minute))
			go func() {
				defer func() { c.Close(); ended <- struct{}{} }()
				converse(t, c, words)
			}()
		}
		for range clients {
			<-ended
		}
		if n := passed.Load(); n < clients*(words/batch-2) {
			t.Errorf("the connections were passed on %d times", n)
		}
		ln.Close()
		untilFiles(t, before)
	})
}

// batch is the number of words that a client sends before it waits for their echo. So the
// server is called often, even on a busy machine.
const batch = 200

// converse sends words, in order, and expects them back.
func converse(t *testing.T, c net.Conn, words int) {
	for i := 0; i < words; i += batch {
		go func() {
			for k := range batch {
				c.Write(binary.BigEndian.AppendUint64(nil, uint64(i+k)))
			}
		}()
		back := make([]byte, 8*batch)
		if n, err := io.ReadFull(c, back); err != nil {
			t.Errorf("%d bytes after word %d: %v", n, i, err)
			return
		}
		for k := range batch {
			if got := binary.BigEndian.Uint64(back[8*k:]); got != uint64(i+k) {
				t.Errorf("word %d came in place of %d", got, i+k)
				return
			}
		}
	}
	c.(*net.TCPConn).CloseWrite()
	if n, err := c.Read(make([]byte, 1)); n != 0 || err != io.EOF {
		t.Errorf("at the end: %d bytes, %v", n, err)
	}
}

// The caller gets an unsent connection back, with its bytes. A connection without a
// descriptor is refused and unchanged.
func TestConnComesBack(t *testing.T) {
	backends(t, func(t *testing.T, e *rondo.Engine) {
		for _, ahead := range []string{"", "read ahead: "} {
			a, _ := sockets(t)
			near, far := sockets(t)
			ch := channel(t, e, a, &recorder{})
			nc := net.Conn(near)
			if ahead != "" {
				nc = rondo.PrefixConn(near, []byte(ahead))
			}
			var back net.Conn
			var told error
			onLoop(t, e, func(*rondo.Loop) {
				ch.SendConn(nil, nc, func(c net.Conn, err error) { back, told = c, err })
				ch.Abort(nil)
			})
			onLoop(t, e, func(*rondo.Loop) {
				if back == nil || told == nil {
					t.Fatalf("told %v, %v", back, told)
				}
			})
			far.Write([]byte("and more"))
			far.CloseWrite()
			if b, err := io.ReadAll(back); string(b) != ahead+"and more" || err != nil {
				t.Errorf("read %q, %v", b, err)
			}
			pipe, _ := net.Pipe()
			onLoop(t, e, func(l *rondo.Loop) {
				a, _ := sockets(t)
				ch, err := fdpass.New(l, a, &recorder{})
				if err != nil {
					t.Error(err)
					return
				}
				defer ch.Abort(nil)
				if err := ch.SendConn(nil, pipe, nil); err == nil || !strings.Contains(err.Error(), "no descriptor") {
					t.Errorf("a pipe: %v", err)
				}
			})
		}
	})
}
