package main

import (
	"bytes"
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync"

	"github.com/rondo-go/rondo"
)

// A chat is rooms by their names. mu guards the rooms and all that is in them: the loops
// share them. Nothing waits while it holds mu.
type chat struct {
	mu    sync.Mutex
	rooms map[string]*room
}

type room struct {
	name    string
	members []*member
}

// A member is a connection's handler. Other loops use it, under mu, and ref.
type member struct {
	ref  rondo.Ref
	chat *chat
	name string
	room *room
}

func newChat() *chat { return &chat{rooms: map[string]*room{}} }

func (ch *chat) open(c *rondo.Conn) rondo.Handler {
	l := c.Limits()
	l.MaxInput = 1000
	c.SetLimits(l)
	fmt.Fprintln(c, "your name?")
	return &member{ref: c.Ref(), chat: ch}
}

func (m *member) Data(c *rondo.Conn, in []byte) (n int, err error) {
	for {
		end := bytes.IndexByte(in[n:], '\n')
		if end < 0 {
			return n, nil
		}
		m.line(string(bytes.TrimSpace(in[n : n+end])))
		n += end + 1
	}
}

func (m *member) line(line string) {
	m.chat.mu.Lock()
	defer m.chat.mu.Unlock()
	command, argument, _ := strings.Cut(line, " ")
	switch {
	case m.room == nil && line == "":
		m.tell("your name?")
	case m.room == nil:
		m.name = line
		m.join("lobby")
	case command == "/join" && argument != "":
		m.leave()
		m.join(argument)
	case command == "/who":
		for _, o := range m.room.members {
			m.tell(o.name)
		}
	default:
		m.room.say(m.name + ": " + line)
	}
}

func (m *member) join(name string) {
	r := m.chat.rooms[name]
	if r == nil {
		r = &room{name: name}
		m.chat.rooms[name] = r
	}
	r.members = append(r.members, m)
	m.room = r
	r.say(m.name + " is in " + name)
}

func (m *member) leave() {
	r := m.room
	r.members = slices.DeleteFunc(r.members, func(o *member) bool { return o == m })
	r.say(m.name + " has left " + r.name)
	if len(r.members) == 0 {
		delete(m.chat.rooms, r.name)
	}
}

func (m *member) Closed(*rondo.Conn, error) {
	m.chat.mu.Lock()
	defer m.chat.mu.Unlock()
	if m.room != nil {
		m.leave()
	}
}

func (r *room) say(line string) {
	for _, m := range r.members {
		m.tell(line)
	}
}

// tell writes a line to a member, whose loop may be another one. The loop aborts the
// connection of a member for whom more than Engine.MaxOutput waits.
func (m *member) tell(line string) {
	err := m.ref.Write([]byte(line + "\n"))
	if errors.Is(err, rondo.ErrOutputFull) { // too much is on its way to the loop
		m.ref.Do(func(c *rondo.Conn) { c.Abort(err) })
	}
}
