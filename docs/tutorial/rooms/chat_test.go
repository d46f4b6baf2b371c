package main

import (
	"strings"
	"testing"

	"github.com/rondo-go/rondo"
	"github.com/rondo-go/rondo/rondotest"
)

// enter connects, and is in the lobby when it returns.
func enter(n *rondotest.Network, name string) *rondotest.Conn {
	c := n.Dial("tcp", "127.0.0.1:5000")
	c.Expect("your name?\n")
	c.Send(name + "\n")
	c.Expect(name + " is in lobby\n")
	return c
}

// TestRooms: a line reaches the members of its room, and no others.
func TestRooms(t *testing.T) {
	for range 100 { // 100 seeds
		n := rondotest.New(t, rondotest.Options{Faults: rondotest.Harmless(0.1)})
		ch := newChat()
		n.Serve(":5000", ch.open)
		ann, bob := enter(n, "ann"), enter(n, "bob")
		ann.Expect("bob is in lobby\n")
		bob.Send("/join kitchen\n")
		ann.Expect("bob has left lobby\n")
		bob.Expect("bob is in kitchen\n")
		ann.Send("anybody there?\n/who\n")
		ann.Expect("ann: anybody there?\nann\n")
		bob.Send("not here\n")
		bob.Expect("bob: not here\n")
		bob.Close()
		ann.CloseWrite()
		ann.ExpectEOF()
		n.Run()
		if len(ch.rooms) != 0 {
			t.Errorf("%d rooms are left", len(ch.rooms))
		}
		n.Close()
	}
}

// TestSlowMember: a member who does not read is cut off, and delays no other.
func TestSlowMember(t *testing.T) {
	n := rondotest.New(t, rondotest.Options{Buffer: 1000})
	n.Listen(&rondo.Engine{HighWater: 10_000}, "tcp", ":5000", newChat().open)
	ann := enter(n, "ann")
	enter(n, "slow")
	ann.Expect("slow is in lobby\n")
	line := strings.Repeat("x", 500)
	for range 50 {
		ann.Send(line + "\n")
		ann.Expect("ann: " + line + "\n")
		if n.Run(); ann.Buffered() > 0 {
			break
		}
	}
	ann.Expect("slow has left lobby\n")
}
