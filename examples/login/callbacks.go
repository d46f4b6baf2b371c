package main

import (
	"bytes"
	"fmt"

	"github.com/rondo-go/rondo"
)

// A dialogue is the same as callbacks. What straight keeps in its variables and
// in its place in the code is fields here, and a state.
type dialogue struct {
	state dialogueState
	tries int
	name  string
	timer *rondo.Timer
}

type dialogueState int

const (
	wantName dialogueState = iota
	wantPassword
	wantCommand
	over
)

func newDialogue(c *rondo.Conn) rondo.Handler {
	d := &dialogue{tries: tries}
	d.timer = c.Loop().AfterFunc(loginTime, func() {
		d.end(c, "\ntoo slow\n")
	})
	fmt.Fprint(c, "login: ")
	return d
}

// Data serves the lines that in holds.
func (d *dialogue) Data(c *rondo.Conn, in []byte) (n int, err error) {
	for d.state != over {
		end := bytes.IndexByte(in[n:], '\n')
		if end < 0 && len(in)-n >= maxLine || end >= maxLine {
			return n, errLineTooLong
		}
		if end < 0 {
			return n, nil
		}
		d.line(c, string(bytes.TrimSpace(in[n:n+end])))
		n += end + 1
	}
	return len(in), nil
}

func (d *dialogue) line(c *rondo.Conn, line string) {
	switch d.state {
	case wantName:
		d.name = line
		d.state = wantPassword
		fmt.Fprint(c, "password: ")
	case wantPassword:
		d.login(c, line)
	case wantCommand:
		d.command(c, line)
	}
}

func (d *dialogue) login(c *rondo.Conn, password string) {
	if want, ok := passwords[d.name]; ok && password == want {
		d.timer.Stop()
		d.state = wantCommand
		fmt.Fprint(c, d.name, "> ")
		return
	}
	fmt.Fprintln(c, "wrong")
	if d.tries--; d.tries == 0 {
		d.end(c, "goodbye\n")
		return
	}
	d.state = wantName
	fmt.Fprint(c, "login: ")
}

func (d *dialogue) command(c *rondo.Conn, command string) {
	switch command {
	case "whoami":
		fmt.Fprintln(c, d.name)
	case "quit":
		d.end(c, "bye\n")
		return
	default:
		fmt.Fprintln(c, "whoami or quit?")
	}
	fmt.Fprint(c, d.name, "> ")
}

func (d *dialogue) end(c *rondo.Conn, last string) {
	d.state = over
	fmt.Fprint(c, last)
	c.Close()
}

// Closed ends the timer of a client that left before it had logged in.
func (d *dialogue) Closed(*rondo.Conn, error) { d.timer.Stop() }
