package main

import (
	"bytes"
	"errors"
	"fmt"
	"log"
	"slices"

	"github.com/rondo-go/rondo"
)

func main() {
	e := rondo.Engine{NumLoops: 1} // the room is one loop's
	var r room
	if _, err := e.Listen("tcp", "127.0.0.1:5000", rondo.SocketOptions{}, r.open); err != nil {
		log.Fatal(err)
	}
	e.Wait()
}

// A room is the members in it. One loop owns it, so it needs no lock.
type room struct {
	members []*member
}

// A member is a connection, its handler, and its state.
type member struct {
	conn *rondo.Conn
	room *room
	name string // "": not yet in the room
}

func (r *room) open(c *rondo.Conn) rondo.Handler {
	l := c.Limits()
	l.MaxInput = 1000
	c.SetLimits(l)
	fmt.Fprintln(c, "your name?")
	return &member{conn: c, room: r}
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
	switch {
	case m.name != "":
		m.room.say(m.name + ": " + line)
	case line == "":
		fmt.Fprintln(m.conn, "your name?")
	default:
		m.name = line
		m.room.members = append(m.room.members, m)
		m.room.say(m.name + " is here")
	}
}

// Closed is called once, whatever ended the connection.
func (m *member) Closed(*rondo.Conn, error) {
	if m.name == "" {
		return
	}
	m.room.members = slices.DeleteFunc(m.room.members, func(o *member) bool { return o == m })
	m.room.say(m.name + " has left")
}

// say tells every member.
func (r *room) say(line string) {
	for _, m := range r.members {
		m.tell(line)
	}
}

var errSlow = errors.New("the member does not read")

// tell writes a line to a member. A member who does not read would make it pile up.
func (m *member) tell(line string) {
	if m.conn.Full() {
		m.conn.Abort(errSlow)
		return
	}
	fmt.Fprintln(m.conn, line)
}
