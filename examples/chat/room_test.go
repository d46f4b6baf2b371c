package main

import (
	"fmt"
	"io"
	"strings"
	"testing"

	"github.com/rondo-go/rondo"
	"github.com/rondo-go/rondo/coro"
	"github.com/rondo-go/rondo/rondotest"
)

// enter connects to the room.
func enter(n *rondotest.Network, name string) *rondotest.Conn {
	c := n.Dial("tcp", "127.0.0.1:5002")
	c.Expect("your name? ")
	c.Send(name + "\n")
	n.Run()
	return c
}

func TestChat(t *testing.T) {
	for range 100 {
		n := rondotest.New(t, rondotest.Options{Faults: rondotest.Harmless(0.1)})
		n.Serve(":5002", coro.Handler(new(room).serve))
		ann, bob := enter(n, "ann"), enter(n, "bob")
		ann.Expect("bob is here\n")
		ann.Send("hello\nbob\n")
		for _, c := range []*rondotest.Conn{ann, bob} {
			c.Expect("ann: hello\nann: bob\n")
		}
		eve := enter(n, "eve")
		bob.Expect("eve is here\n")
		eve.Close()
		bob.Expect("eve has left\n")
		ann.Reset()
		bob.Expect("ann has left\n")
		bob.CloseWrite()
		bob.ExpectEOF()
		n.Close()
	}
}

// TestHalfClose: a member who ends the stream behind the last line, as printf … | nc -N
// does, still gets that line, also when reading slowly.
func TestHalfClose(t *testing.T) {
	for range 100 {
		n := rondotest.New(t, rondotest.Options{Faults: rondotest.Harmless(0.1), Buffer: 100})
		n.Serve(":5002", coro.Handler(new(room).serve))
		c := n.Dial("tcp", "127.0.0.1:5002")
		want, said := "your name? ", "ann\n"
		for i := range 20 {
			said += fmt.Sprintln("line", i)
			want += fmt.Sprintln("ann: line", i)
		}
		c.Send(said)
		c.CloseWrite()
		if got, err := io.ReadAll(c); string(got) != want || err != nil {
			t.Errorf("%q, %v; want %q", got, err, want)
		}
		n.Close()
	}
}

// A member who does not read keeps nobody waiting, and misses the lines that are too many.
func TestSlowMember(t *testing.T) {
	n := rondotest.New(t, rondotest.Options{Buffer: 1000})
	var r room
	e := n.Engine(&rondo.Engine{HighWater: 1000})
	n.Listen(e, "tcp", ":5002", coro.Handler(r.serve))
	enter(n, "slow")
	ann := enter(n, "ann")
	for i := range 3 * maxLines {
		line := fmt.Sprintf("line %d of many lines %s", i, strings.Repeat("-", 50))
		ann.Send(line + "\n")
		ann.Expect("ann: " + line + "\n")
	}
	if waiting := len(r.members[0].lines); waiting != maxLines {
		t.Errorf("%d lines wait for the slow member, want %d", waiting, maxLines)
	}
}
