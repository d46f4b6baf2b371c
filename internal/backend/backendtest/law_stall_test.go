package backendtest_test

import (
	"fmt"
	"io"
	"net"
	"testing"
	"time"

	"github.com/rondo-go/rondo"
	"github.com/rondo-go/rondo/internal/pick"
)

// TestBytesBeforeDeadlines: a callback takes longer than the deadlines of connections, whose bytes
// come meanwhile. The deadlines close none of them, however many they are.
func TestBytesBeforeDeadlines(t *testing.T) {
	for _, name := range pick.Available() {
		for what, set := range map[string]func(*rondo.Conn, time.Duration){
			"CloseAt": func(c *rondo.Conn, d time.Duration) { c.CloseAt(c.Loop().Now().Add(d)) },
			"SetIdle": (*rondo.Conn).SetIdle,
		} {
			t.Run(name+"/"+what, func(t *testing.T) {
				var err error
				for range 5 { // goroutines of package net may bring their bytes late
					if err = standStill(t, name, set); err == nil {
						return
					}
				}
				t.Error(err)
			})
		}
	}
}

// standStill lets a loop stand still. It returns the error of a connection that got no answer.
func standStill(t *testing.T, backend string, set func(*rondo.Conn, time.Duration)) error {
	const many, wait = 600, 20 * time.Millisecond
	e := &rondo.Engine{NumLoops: 1, Backend: backend}
	defer e.Close()
	ln, err := e.Listen("tcp", "127.0.0.1:0", rondo.SocketOptions{}, func(*rondo.Conn) rondo.Handler {
		return rondo.HandlerFunc(func(c *rondo.Conn, in []byte) (int, error) {
			c.CloseAt(time.Time{})
			c.SetIdle(0)
			return c.Write(in)
		})
	})
	if err != nil {
		t.Fatal(err)
	}
	var all []net.Conn
	for i := range many {
		c, err := net.Dial("tcp", ln.Addr().String())
		if err != nil {
			t.Fatal(err)
		}
		defer c.Close()
		c.SetDeadline(time.Now().Add(30 * time.Second))
		all = append(all, c)
		if err := echoes(c, byte(i)); err != nil {
			t.Fatal(err)
		}
	}
	still, sent, over := make(chan bool), make(chan bool), make(chan bool)
	for l := range e.Loops() {
		l.Post(func() {
			for c := range l.Conns() {
				set(c, wait)
			}
			close(still)
			<-sent
			time.Sleep(20 * wait)
			close(over)
		})
	}
	<-still
	for _, c := range all {
		if _, err := c.Write([]byte("x")); err != nil {
			t.Fatal(err)
		}
	}
	close(sent)
	<-over
	for i, c := range all {
		if _, err := io.ReadFull(c, make([]byte, 1)); err != nil {
			return fmt.Errorf("connection %d of %d: %w", i, many, err)
		}
	}
	return nil
}

// echoes sends a byte, and waits until it is back.
func echoes(c net.Conn, b byte) error {
	if _, err := c.Write([]byte{b}); err != nil {
		return err
	}
	_, err := io.ReadFull(c, make([]byte, 1))
	return err
}
