package rondo_test

import (
	"bufio"
	"bytes"
	"fmt"
	"maps"
	"net"
	"sync"

	"github.com/rondo-go/rondo"
)

// A chatRoom is a set of Refs. Its members' connections may be on any loop.
type chatRoom struct {
	mu      sync.Mutex
	members map[rondo.Ref]struct{}
}

func (r *chatRoom) enter(c *rondo.Conn) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.members[c.Ref()] = struct{}{}
}

func (r *chatRoom) leave(c *rondo.Conn) {
	r.mu.Lock()
	defer r.mu.Unlock()
	delete(r.members, c.Ref())
}

// say writes a line to all members. It cuts off members that do not read.
func (r *chatRoom) say(line []byte) {
	r.mu.Lock()
	defer r.mu.Unlock()
	rondo.Broadcast(maps.Keys(r.members), line, func(c *rondo.Conn) { c.Abort(rondo.ErrOutputFull) })
}

// A member sends its lines to all members of the room.
type member struct{ room *chatRoom }

func (m *member) Data(_ *rondo.Conn, in []byte) (n int, err error) {
	for {
		end := bytes.IndexByte(in[n:], '\n')
		if end < 0 {
			return n, nil
		}
		m.room.say(bytes.Clone(in[n : n+end+1])) // the loop reuses in when Data returns
		n += end + 1
	}
}

func (m *member) Closed(c *rondo.Conn, _ error) { m.room.leave(c) }

// A chat room on all loops. Each line is posted once to each loop, and all members share its
// bytes.
func ExampleBroadcast() {
	room := &chatRoom{members: map[rondo.Ref]struct{}{}}
	e := &rondo.Engine{NumLoops: 2}
	defer e.Close()
	ln, err := e.Listen("tcp", "127.0.0.1:0", rondo.SocketOptions{}, func(c *rondo.Conn) rondo.Handler {
		room.enter(c)
		fmt.Fprintln(c, "welcome")
		return &member{room}
	})
	if err != nil {
		fmt.Println(err)
		return
	}
	var clients []*bufio.ReadWriter
	for range 3 {
		c, err := net.Dial("tcp", ln.Addr().String())
		if err != nil {
			fmt.Println(err)
			return
		}
		defer c.Close()
		client := bufio.NewReadWriter(bufio.NewReader(c), bufio.NewWriter(c))
		client.ReadString('\n') // after the welcome it is in the room
		clients = append(clients, client)
	}
	clients[0].WriteString("hello, all\n")
	clients[0].Flush()
	for i, c := range clients {
		line, _ := c.ReadString('\n')
		fmt.Print(i, " reads ", line)
	}
	// Output:
	// 0 reads hello, all
	// 1 reads hello, all
	// 2 reads hello, all
}
