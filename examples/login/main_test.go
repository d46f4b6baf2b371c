package main

import (
	"io"
	"os"
	"strings"
	"testing"
	"time"

	"github.com/rondo-go/rondo"
	"github.com/rondo-go/rondo/coro"
	"github.com/rondo-go/rondo/rondotest"
)

// styles are the ways in which the dialogue is written.
var styles = map[string]rondo.OpenFunc{"coroutine": coro.Handler(straight), "callbacks": newDialogue}

// TestDialogue has the same dialogues in both styles, on many networks.
func TestDialogue(t *testing.T) {
	for name, open := range styles {
		for _, d := range []struct{ sent, want string }{
			{"ann\ngoat\nwhoami\nsing\nquit\n", "login: password: ann> ann\nann> whoami or quit?\nann> bye\n"},
			{"ann\nsheep\nbob\ncheese\nquit\nwhoami\n", "login: password: wrong\nlogin: password: bob> bye\n"},
			{"a\nb\nc\nd\ne\nf\nann\ngoat\n", "login: password: wrong\nlogin: password: wrong\nlogin: password: wrong\ngoodbye\n"},
			{"ann\n\n", "login: password: wrong\nlogin: "},
			{strings.Repeat("x", maxLine), "login: "},
		} {
			for range 50 {
				n := rondotest.New(t, rondotest.Options{Faults: rondotest.Harmless(0.1)})
				n.Serve(":5001", open)
				c := n.Dial("tcp", "127.0.0.1:5001")
				c.Send(d.sent)
				c.CloseWrite()
				got, err := io.ReadAll(c)
				if string(got) != d.want || err != nil {
					t.Errorf("%s: %q got %q, %v; want %q", name, d.sent, got, err, d.want)
				}
				n.Close()
			}
		}
	}
}

// TestTooSlow: who takes long to log in is cut off; who has logged in is not.
func TestTooSlow(t *testing.T) {
	for name, open := range styles {
		n := rondotest.New(t, rondotest.Options{})
		n.Serve(":5001", open)
		c := n.Dial("tcp", "127.0.0.1:5001")
		began := n.Now()
		c.Expect("login: ")
		n.Advance(loginTime / 2)
		c.Send("ann\n")
		c.Expect("password: ")
		c.Expect("\ntoo slow\n")
		c.ExpectEOF()
		if d := n.Now().Sub(began); d < loginTime-time.Second || d > loginTime+time.Second {
			t.Errorf("%s: cut off after %v", name, d)
		}

		c = n.Dial("tcp", "127.0.0.1:5001")
		c.Send("ann\ngoat\n")
		c.Expect("login: password: ann> ")
		n.Advance(time.Hour)
		c.Send("quit\n")
		c.Expect("bye\n")
		c.ExpectEOF()
	}
}

// TestDocs keeps docs/coroutines.md true: its code is this code.
func TestDocs(t *testing.T) {
	doc, err := os.ReadFile("../../docs/coroutines.md")
	if err != nil {
		t.Fatal(err)
	}
	var source string
	for _, file := range []string{"straight.go", "callbacks.go", "../chat/room.go"} {
		b, err := os.ReadFile(file)
		if err != nil {
			t.Fatal(err)
		}
		source += string(b)
	}
	blocks := strings.Split(string(doc), "\n```go\n")[1:]
	if len(blocks) < 3 {
		t.Errorf("docs/coroutines.md shows %d pieces of code", len(blocks))
	}
	for _, block := range blocks {
		code, _, _ := strings.Cut(block, "```\n")
		if !strings.Contains(source, code) {
			t.Errorf("docs/coroutines.md shows code that no example has:\n%s", code)
		}
	}
}
