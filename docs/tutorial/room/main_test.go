package main

import (
	"testing"

	"github.com/rondo-go/rondo/rondotest"
)

func TestRoom(t *testing.T) {
	for range 100 {
		n := rondotest.New(t, rondotest.Options{Faults: rondotest.Harmless(0.1)})
		var r room
		n.Serve(":5000", r.open)
		ann, bob := n.Dial("tcp", "127.0.0.1:5000"), n.Dial("tcp", "127.0.0.1:5000")
		ann.Send("ann\n")
		ann.Expect("your name?\nann is here\n")
		bob.Send("bob\nhello\n")
		bob.Expect("your name?\nbob is here\nbob: hello\n")
		ann.Expect("bob is here\nbob: hello\n")
		bob.Reset()
		ann.Expect("bob has left\n")
		n.Close()
		if len(r.members) > 1 {
			t.Errorf("%d members are left", len(r.members))
		}
	}
}
