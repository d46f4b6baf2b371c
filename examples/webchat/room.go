package main

import (
	"maps"
	"net/http"
	"sync"

	"github.com/rondo-go/rondo"
	"github.com/rondo-go/rondo/websocket"
	"github.com/rondo-go/rondo/wsframe"
)

// A room is its members. They are on several loops, so it has a mutex.
type room struct {
	mu      sync.Mutex
	members map[websocket.Ref]string // with their names
}

// A member is the Handler of one connection.
type member struct {
	room *room
	name string
}

// enter makes a member of a connection. The name comes from the URL.
func (r *room) enter(c *websocket.Conn, req *http.Request) websocket.Handler {
	m := &member{r, req.URL.Query().Get("name")}
	if m.name == "" || len(m.name) > 30 {
		c.Close(wsframe.CodePolicyViolation, "a name has 1 to 30 bytes")
		return m
	}
	r.mu.Lock()
	if r.members == nil {
		r.members = make(map[websocket.Ref]string)
	}
	r.members[c.Ref()] = m.name
	r.mu.Unlock()
	r.say(m.name + " is here")
	return m
}

// Message tells the room what the member says.
func (m *member) Message(_ *websocket.Conn, _ websocket.Opcode, p []byte) error {
	m.room.say(m.name + ": " + string(p))
	return nil
}

// Closed tells the room that the member has left.
func (m *member) Closed(c *websocket.Conn, _ error) {
	r := m.room
	r.mu.Lock()
	_, was := r.members[c.Ref()]
	delete(r.members, c.Ref())
	r.mu.Unlock()
	if was {
		r.say(m.name + " has left")
	}
}

// say tells everybody. The mutex gives all members the lines in the same order. A member
// who does not read is cut off, and delays no other.
func (r *room) say(line string) {
	m := websocket.Prepare(websocket.Text, []byte(line))
	r.mu.Lock()
	defer r.mu.Unlock()
	websocket.Broadcast(maps.Keys(r.members), m, func(c *websocket.Conn) { c.Abort(rondo.ErrOutputFull) })
}
