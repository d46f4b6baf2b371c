package websocket

import (
	"context"
	"errors"
	"io"
	"net"
	"os"
	"testing"
	"time"

	"github.com/rondo-go/rondo/wsframe"
)

// deafPeer returns a server's Stream whose peer reads nothing behind the handshake.
func deafPeer(t *testing.T) (*Stream, *peer) {
	t.Helper()
	ours, theirs := net.Pipe()
	t.Cleanup(func() { ours.Close(); theirs.Close() })
	theirs.SetDeadline(time.Now().Add(patience))
	made := make(chan *Stream, 1)
	go func() {
		s, _, err := new(Server).AcceptStream(ours)
		if err != nil {
			t.Error(err)
		}
		made <- s
	}()
	p := &peer{t: t, c: theirs, reader: wsframe.Reader{FromServer: true}}
	p.send(request())
	p.answered()
	return <-made, p
}

// A peer that sends Pings and reads no Pong does not keep Read beyond the end of its Context. The
// Pong that it began is completed by the next call.
func TestReadEndsThoughPongsWait(t *testing.T) {
	s, p := deafPeer(t)
	result := make(chan error, 1)
	go func() {
		ctx, cancel := context.WithTimeout(context.Background(), 100*time.Millisecond)
		defer cancel()
		_, _, err := s.Read(ctx)
		result <- err
	}()
	p.send(ping("one"))
	if err := arrives(t, result); err != context.DeadlineExceeded {
		t.Errorf("Read: %v", err)
	}
	go func() { result <- echoStream(s) }()
	go p.c.Write([]byte(text("hello") + ping("two") + closeFrame(1000, "")))
	for {
		got := p.next()
		if got == "text hello" {
			break
		}
		if got != "pong one" && got != "pong two" {
			t.Fatalf("received %q", got)
		}
	}
	go io.Copy(io.Discard, p.c) // the rest
	if err := arrives(t, result); !isClosed(err, 1000, "") {
		t.Errorf("the end: %v", err)
	}
}

// The same for Write: a Pong that waits behind it is not its affair.
func TestWriteEndsThoughPongsWait(t *testing.T) {
	s, p := deafPeer(t)
	go s.Read(context.Background())
	result := make(chan error, 1)
	go func() {
		ctx, cancel := context.WithTimeout(context.Background(), 200*time.Millisecond)
		defer cancel()
		result <- s.Write(ctx, Text, []byte("nobody reads this"))
	}()
	time.Sleep(50 * time.Millisecond) // the Write has its turn
	p.send(ping("x"))
	if err := arrives(t, result); err != context.DeadlineExceeded {
		t.Errorf("Write: %v", err)
	}
}

// A net.Conn's deadline for reading holds for the Pongs that Read sends, too.
func TestNetConnReadEndsThoughPongsWait(t *testing.T) {
	s, p := deafPeer(t)
	c := s.NetConn(Binary)
	result := make(chan error, 1)
	read := func() {
		_, err := c.Read(make([]byte, 10))
		result <- err
	}
	c.SetReadDeadline(time.Now().Add(100 * time.Millisecond))
	go read()
	p.send(ping("one"))
	if err := arrives(t, result); !errors.Is(err, os.ErrDeadlineExceeded) {
		t.Errorf("Read: %v", err)
	}
	c.SetReadDeadline(time.Time{}) // and one that is set while it waits
	go read()
	time.Sleep(20 * time.Millisecond)
	c.SetReadDeadline(time.Unix(1, 0))
	if err := arrives(t, result); !errors.Is(err, os.ErrDeadlineExceeded) {
		t.Errorf("Read: %v", err)
	}
	c.SetReadDeadline(time.Time{})
	go read()
	p.expect("pong one")
	p.send(bin("x"))
	if err := arrives(t, result); err != nil {
		t.Errorf("Read: %v", err)
	}
}

// A tricky net.Conn calls a function before its deadline for reading is cleared.
type tricky struct {
	net.Conn
	before func()
}

func (c *tricky) SetReadDeadline(t time.Time) error {
	if f := c.before; f != nil && t.IsZero() {
		c.before = nil
		f()
	}
	return c.Conn.SetReadDeadline(t)
}

// A Close relies on another goroutine's Read for the rest of its handshake. If the Context of that
// Read ends at this moment, the connection ends all the same.
func TestCloseAsReadEnds(t *testing.T) {
	ours, theirs := net.Pipe()
	defer ours.Close()
	defer theirs.Close()
	theirs.SetDeadline(time.Now().Add(patience))
	hook := &tricky{Conn: ours}
	made := make(chan *Stream, 1)
	go func() {
		s, _, err := (&Server{Options: Options{CloseTimeout: 50 * time.Millisecond}}).AcceptStream(hook)
		if err != nil {
			t.Error(err)
		}
		made <- s
	}()
	p := &peer{t: t, c: theirs, reader: wsframe.Reader{FromServer: true}}
	p.send(request())
	p.answered()
	s := <-made
	hook.before = func() { s.Close(1000, "") }
	result := make(chan error, 1)
	go func() {
		ctx, cancel := context.WithTimeout(context.Background(), 20*time.Millisecond)
		defer cancel()
		_, _, err := s.Read(ctx)
		result <- err
	}()
	p.expect("close 1000", "end")
	if err := arrives(t, result); err != context.DeadlineExceeded {
		t.Errorf("Read: %v", err)
	}
}
