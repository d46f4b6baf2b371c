package main

import (
	"bufio"
	"errors"
	"fmt"
	"io"
	"net"
	"slices"
	"time"

	"github.com/rondo-go/rondo/coro"
)

// A room is its members. It belongs to one loop, whose coroutines never run at
// the same time.
type room struct{ members []*member }

// A member is somebody in the room, with the lines to be sent to them.
type member struct {
	name  string
	lines []string
	ended bool      // no further lines come
	more  coro.Cond // there is a line, or ended is set
}

const (
	// maxLines is how many lines may wait for a member who does not read. Such a
	// member misses further lines.
	maxLines = 100
	// lastTime is how long a member who has left may take to read the lines that wait.
	lastTime = 10 * time.Second
)

// serve is a member's connection.
func (r *room) serve(co *coro.Co, c net.Conn) error {
	in := bufio.NewScanner(c)
	in.Buffer(nil, 1000)
	fmt.Fprint(c, "your name? ")
	if !in.Scan() {
		return in.Err()
	}
	m := &member{name: in.Text()}
	r.say(m.name + " is here\n")
	co.Go(func(co *coro.Co) error { return m.deliver(co, c) })
	r.listen(m, in)
	// The member has ended the stream, and may still read.
	c.SetWriteDeadline(co.Loop().Now().Add(lastTime))
	m.ended = true
	m.more.Signal()
	return errors.Join(in.Err(), co.Wait())
}

// listen tells the room what a member says, until the end of the member's stream.
func (r *room) listen(m *member, in *bufio.Scanner) {
	r.members = append(r.members, m)
	defer r.leave(m)
	for in.Scan() {
		r.say(m.name + ": " + in.Text() + "\n")
	}
}

// deliver sends a member the lines that come, while another coroutine reads.
func (m *member) deliver(co *coro.Co, c net.Conn) error {
	for {
		for len(m.lines) == 0 {
			if m.ended {
				return nil
			}
			if err := m.more.Wait(co); err != nil {
				return err
			}
		}
		line := m.lines[0]
		m.lines = m.lines[1:]
		if _, err := io.WriteString(c, line); err != nil {
			return err
		}
	}
}

// say tells everybody. It waits for nobody.
func (r *room) say(line string) {
	for _, m := range r.members {
		if len(m.lines) < maxLines {
			m.lines = append(m.lines, line)
			m.more.Signal()
		}
	}
}

func (r *room) leave(m *member) {
	r.members = slices.DeleteFunc(r.members, func(o *member) bool { return o == m })
	r.say(m.name + " has left\n")
}
