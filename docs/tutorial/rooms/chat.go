package main

import (
	"bytes"
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/rondo-go/rondo"
)

// A chat is rooms by their names. One loop owns the chat and all that is in it.
type chat struct {
	rooms map[string]*room
}

// A room is there as long as somebody is in it.
type room struct {
	name    string
	members []*member
}

// A member is a connection, its handler, and its state.
type member struct {
	conn *rondo.Conn
	chat *chat
	name string
	room *room // nil: the name is not known yet
}

func newChat() *chat { return &chat{rooms: map[string]*room{}} }

func (ch *chat) open(c *rondo.Conn) rondo.Handler {
	l := c.Limits()
	l.MaxInput = 1000
	c.SetLimits(l)
	fmt.Fprintln(c, "your name?")
	return &member{conn: c, chat: ch}
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
	command, argument, _ := strings.Cut(line, " ")
	switch {
	case m.room == nil && line == "":
		fmt.Fprintln(m.conn, "your name?")
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
	if m.room != nil {
		m.leave()
	}
}

func (r *room) say(line string) {
	for _, m := range r.members {
		m.tell(line)
	}
}

var errSlow = errors.New("the member does not read")

func (m *member) tell(line string) {
	if m.conn.Full() {
		m.conn.Abort(errSlow)
		return
	}
	fmt.Fprintln(m.conn, line)
}
