//go:build unix

package fdpass_test

import (
	"bytes"
	"context"
	"fmt"
	"log"
	"net"
	"os"
	"path/filepath"

	"github.com/rondo-go/rondo"
	"github.com/rondo-go/rondo/fdpass"
)

// lines answers each line with a name in front.
func lines(name string) rondo.OpenFunc {
	return func(*rondo.Conn) rondo.Handler {
		return rondo.HandlerFunc(func(c *rondo.Conn, in []byte) (n int, err error) {
			for line := range bytes.Lines(in) {
				if line[len(line)-1] != '\n' {
					break
				}
				fmt.Fprintf(c, "%s: %s", name, line)
				n += len(line)
			}
			return n, nil
		})
	}
}

// A newServer replaces an oldServer, which passes it its connections.
type newServer struct{ engine *rondo.Engine }

func (s *newServer) Message(ch *fdpass.Channel, m *fdpass.Message) {
	var err error
	switch string(m.Data) {
	case "listener":
		var ln net.Listener
		if ln, err = m.Listener(0); err == nil {
			go func() { // AttachListener waits for the loop
				if _, err := s.engine.AttachListener(ln, rondo.SocketOptions{}, lines("new")); err != nil {
					log.Fatal(err)
				}
			}()
		}
	case "connection":
		var nc net.Conn
		if nc, err = m.Conn(); err == nil {
			_, err = ch.Loop().Attach(nc, lines("new"))
		}
	}
	if err != nil {
		log.Fatal(err)
	}
}

func (s *newServer) Closed(*fdpass.Channel, error) {}

// An oldServer passes on its connections, with the bytes that it has received but not
// served. It gets no messages.
type oldServer struct{}

func (oldServer) Message(*fdpass.Channel, *fdpass.Message) {}
func (oldServer) Closed(*fdpass.Channel, error)            {}

// A server is replaced, and no client notices: the new server gets the listening socket,
// and the connections in the middle of their conversations. Here both servers are engines
// of one process. Between two processes only the control connection differs: the new
// process dials a unix socket of the old one, or inherits a connection.
func Example() {
	dir, _ := os.MkdirTemp("", "fdpass")
	defer os.RemoveAll(dir)
	control, err := net.ListenUnix("unix", &net.UnixAddr{Net: "unix", Name: filepath.Join(dir, "control")})
	if err != nil {
		log.Fatal(err)
	}
	defer control.Close()
	theirs, _ := net.DialUnix("unix", nil, control.Addr().(*net.UnixAddr))
	ours, _ := control.AcceptUnix()

	newer := &rondo.Engine{NumLoops: 1}
	newer.Start()
	for l := range newer.Loops() {
		l.Post(func() { fdpass.New(l, theirs, &newServer{newer}) })
	}

	older := &rondo.Engine{NumLoops: 1}
	ln, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		log.Fatal(err)
	}
	listening, _ := ln.(*net.TCPListener).File() // another descriptor, to pass on
	if _, err := older.AttachListener(ln, rondo.SocketOptions{}, lines("old")); err != nil {
		log.Fatal(err)
	}

	client := newClient(ln.Addr())
	fmt.Print(client.ask("hello\n"))
	client.say("how are ") // the old server receives this, the new one will answer

	gone := make(chan struct{})
	for l := range older.Loops() {
		l.Post(func() {
			ch, err := fdpass.New(l, ours, oldServer{})
			if err != nil {
				log.Fatal(err)
			}
			ch.Send([]byte("listener"), nil, listening)
			listening.Close() // ch has a duplicate
			for c := range l.Conns() {
				c.Detach(func(nc net.Conn, err error) {
					if err != nil {
						return // the connection has closed
					}
					ch.SendConn([]byte("connection"), nc, func(nc net.Conn, err error) {
						if err != nil {
							log.Fatal(err)
						}
						close(gone) // with many connections: after the last one
					})
				})
			}
		})
	}
	<-gone
	older.Shutdown(context.Background())

	fmt.Print(client.ask("you?\n"))
	fmt.Print(newClient(ln.Addr()).ask("anybody there?\n"))
	newer.Close()
	// Output:
	// old: hello
	// new: how are you?
	// new: anybody there?
}
