package rondo_test

import (
	"io"
	"net"
	"testing"

	"github.com/rondo-go/rondo"
)

func TestSmoke(t *testing.T) {
	for _, b := range []string{"epoll", "poll"} {
		e := &rondo.Engine{Backend: b, Loops: 2}
		ln, err := e.Listen("tcp", "127.0.0.1:0", rondo.Socket{}, func(c *rondo.Conn) rondo.Handler {
			return rondo.HandlerFunc(func(c *rondo.Conn, in []byte) (int, error) { return c.Write(in) })
		})
		if err != nil {
			t.Fatal(err)
		}
		c, err := net.Dial("tcp", ln.Addr().String())
		if err != nil {
			t.Fatal(err)
		}
		for range 10 {
			c.Write([]byte("hello"))
			b := make([]byte, 5)
			io.ReadFull(c, b)
			if string(b) != "hello" {
				t.Fatal(string(b))
			}
		}
		big := make([]byte, 10<<20)
		go func() { c.Write(big); c.(*net.TCPConn).CloseWrite() }()
		got, err := io.ReadAll(c)
		t.Log(len(got), err)
		t.Log(e.Stats())
		e.Close()
	}
}
