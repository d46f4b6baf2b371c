package relay_test

import (
	"bytes"
	"fmt"
	"io"
	"net"
	"strings"

	"github.com/rondo-go/rondo"
	"github.com/rondo-go/rondo/relay"
)

// A proxy of ten lines: for each client it dials the server, on the client's loop, and joins
// the two connections.
func ExampleDial() {
	var e rondo.Engine
	defer e.Close()
	server := serve(&e, "server")

	ln, err := e.Listen("tcp", "127.0.0.1:0", rondo.SocketOptions{}, func(client *rondo.Conn) rondo.Handler {
		return relay.Dial(client, "tcp", server, rondo.SocketOptions{}, relay.Options{})
	})
	if err != nil {
		fmt.Println(err)
		return
	}
	fmt.Println(ask(ln.Addr().String(), strings.Repeat("x", 3_000_000)))
	// Output: server got 3000000 bytes <nil>
}

// A proxy that chooses the server by the first line, which it takes, and tells the server
// the client's address.
func ExampleJoin() {
	var e rondo.Engine
	defer e.Close()
	servers := map[string]string{"one": serve(&e, "one"), "two": serve(&e, "two")}

	ln, err := e.Listen("tcp", "127.0.0.1:0", rondo.SocketOptions{}, func(*rondo.Conn) rondo.Handler {
		return rondo.HandlerFunc(func(client *rondo.Conn, in []byte) (int, error) {
			line, _, complete := bytes.Cut(in, []byte("\n"))
			if !complete {
				return 0, nil
			}
			client.Pause() // until the server is connected
			client.Loop().Dial("tcp", servers[string(line)], rondo.SocketOptions{}, func(server *rondo.Conn, err error) rondo.Handler {
				if err != nil {
					client.Abort(err)
					return nil
				}
				fmt.Fprintln(server, client.RemoteAddr())
				relay.Join(client, server, relay.Options{})
				return server.Handler()
			})
			return len(line) + 1, nil // the pair gets the rest
		})
	})
	if err != nil {
		fmt.Println(err)
		return
	}
	fmt.Println(ask(ln.Addr().String(), "one\n"))
	fmt.Println(ask(ln.Addr().String(), "two\nhello"))
	// Output:
	// one got a line and 0 bytes <nil>
	// two got a line and 5 bytes <nil>
}

// serve counts the bytes of its clients, and answers at the end.
func serve(e *rondo.Engine, name string) (address string) {
	ln, err := e.Listen("tcp", "127.0.0.1:0", rondo.SocketOptions{}, func(*rondo.Conn) rondo.Handler {
		return &counter{name: name}
	})
	if err != nil {
		panic(err)
	}
	return ln.Addr().String()
}

type counter struct {
	name, line string
	n          int
}

func (s *counter) Data(_ *rondo.Conn, in []byte) (int, error) {
	if i := bytes.IndexByte(in, '\n'); i >= 0 {
		s.line = "a line and "
		in, s.n = in[i+1:], s.n+len(in)-i-1
		return i + 1 + len(in), nil
	}
	s.n += len(in)
	return len(in), nil
}

func (s *counter) EOF(c *rondo.Conn) {
	fmt.Fprintf(c, "%s got %s%d bytes", s.name, s.line, s.n)
	c.Close()
}

func (*counter) Closed(*rondo.Conn, error) {}

// ask sends a question, ends its stream, and returns the answer.
func ask(address, question string) (string, error) {
	c, err := net.Dial("tcp", address)
	if err != nil {
		return "", err
	}
	defer c.Close()
	io.WriteString(c, question)
	c.(*net.TCPConn).CloseWrite()
	answer, err := io.ReadAll(c)
	return string(answer), err
}
