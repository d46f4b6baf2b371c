package main

import (
	"bufio"
	"fmt"
	"io"
	"net"
	"slices"

	"github.com/rondo-go/rondo/coro"
)

// A room is its members. It belongs to one loop, whose coroutines never run at
// the same time.
type room struct{ members []*member }

// A member is somebody in the room, and what is to be sent to him.
type member struct {
	name  string
	lines []string
	more  coro.Cond // than no lines
}

// maxLines is how many lines may wait for a member who does not read. What comes
// then he misses.
const maxLines = 100

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
	r.members = append(r.members, m)
	defer r.leave(m)
	co.Go(func(co *coro.Co) error { return m.deliver(co, c) })
	for in.Scan() {
		r.say(m.name + ": " + in.Text() + "\n")
	}
	return in.Err()
}

// deliver sends a member the lines that come, while another coroutine reads.
func (m *member) deliver(co *coro.Co, c net.Conn) error {
	for {
		for len(m.lines) == 0 {
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
