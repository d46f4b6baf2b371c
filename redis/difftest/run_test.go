package difftest

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"net"
	"os"
	"time"

	"github.com/rondo-go/rondo/resp"
)

// patience is how long a reply may take on a loaded machine.
const patience = 2 * time.Minute

// A server is one that scripts can be sent to.
type server struct {
	network, address string
	password         string
}

// run plays a script and returns the reply to each of its steps.
func (s *server) run(sc *script) (replies [][]byte, err error) {
	if err := s.reset(); err != nil {
		return nil, fmt.Errorf("before the script: %w", err)
	}
	clients := map[string]*client{}
	defer func() {
		for _, c := range clients {
			c.Close()
		}
	}()
	for _, step := range sc.steps {
		time.Sleep(step.sleep)
		if step.waits > 0 {
			if err := s.waitFor(step.waits); err != nil {
				return replies, err
			}
		}
		var reply []byte
		if step.client != "" {
			if reply, err = s.play(step, clients); err != nil {
				return replies, fmt.Errorf("client %s: %w", step.client, err)
			}
		}
		replies = append(replies, reply)
	}
	for name, c := range clients {
		if err := c.quit(); err != nil {
			return replies, fmt.Errorf("client %s at the end: %w", name, err)
		}
	}
	return replies, nil
}

func (s *server) play(step *step, clients map[string]*client) ([]byte, error) {
	c := clients[step.client]
	if c == nil {
		var err error
		if c, err = s.dial(step.from); err != nil {
			return nil, err
		}
		clients[step.client] = c
	}
	c.SetDeadline(time.Now().Add(patience))
	if len(step.send) > 0 {
		if _, err := c.Write(step.send); err != nil {
			return nil, err
		}
	}
	switch step.expect {
	case oneReply:
		return c.one()
	case untilEnd:
		return c.rest()
	}
	return nil, nil
}

// reset empties the keyspace between scripts. What a script configures it
// restores itself.
func (s *server) reset() error {
	reply, err := s.ask("FLUSHALL")
	if err == nil && string(reply.Str) != "OK" {
		err = fmt.Errorf("FLUSHALL: %s", reply.Str)
	}
	return err
}

// waitFor waits until n clients are blocked: the server has read their requests then.
func (s *server) waitFor(n int) error {
	want := fmt.Sprintf("\r\nblocked_clients:%d\r\n", n)
	for until := time.Now().Add(patience); ; time.Sleep(time.Millisecond) {
		reply, err := s.ask("INFO", "clients")
		switch {
		case err != nil:
			return err
		case bytes.Contains(reply.Str, []byte(want)):
			return nil
		case time.Now().After(until):
			return fmt.Errorf("%d clients are not blocked: %s", n, reply.Str)
		}
	}
}

// ask sends a request on a connection of its own, and returns the reply.
func (s *server) ask(request ...string) (reply resp.Value, err error) {
	c, err := s.dial("")
	if err != nil {
		return reply, err
	}
	defer c.Close()
	if s.password != "" {
		if reply, err := c.ask("AUTH", s.password); err != nil || string(reply.Str) != "OK" {
			return reply, fmt.Errorf("AUTH: %s, %v", reply.Str, err)
		}
	}
	if reply, err = c.ask(request...); err != nil {
		return reply, err
	}
	return reply, c.quit()
}

// A client is a connection and the bytes it received that no step has had.
type client struct {
	net.Conn
	in    []byte
	ended bool
}

func (s *server) dial(from string) (*client, error) {
	d := net.Dialer{Timeout: patience}
	if from != "" {
		d.LocalAddr = &net.TCPAddr{IP: net.ParseIP(from)}
	}
	conn, err := d.Dial(s.network, s.address)
	if err != nil {
		return nil, err
	}
	return &client{Conn: conn}, conn.SetDeadline(time.Now().Add(patience))
}

// one returns the next reply.
func (c *client) one() ([]byte, error) {
	var p resp.PartialValue
	for {
		_, n, _, err := p.Read(c.in)
		if err != nil {
			return nil, fmt.Errorf("%w in %q", err, c.in)
		}
		if n > 0 {
			reply := c.in[:n]
			c.in = c.in[n:]
			return reply, nil
		}
		var buf [16 << 10]byte
		got, err := c.Read(buf[:])
		if err != nil {
			return nil, fmt.Errorf("no reply, after %q: %w", c.in, err)
		}
		c.in = append(c.in, buf[:got]...)
	}
}

// rest returns everything until the server closes.
func (c *client) rest() ([]byte, error) {
	b, err := io.ReadAll(c)
	if errors.Is(err, os.ErrDeadlineExceeded) {
		return nil, fmt.Errorf("not closed by the server, after %q", append(c.in, b...))
	}
	c.ended = true // a reset is an end too: bytes may have been on their way
	rest := append(c.in, b...)
	c.in = nil
	return rest, nil
}

// quit ends the connection, and checks that there is nothing left to read.
func (c *client) quit() error {
	if c.ended {
		return nil
	}
	c.SetDeadline(time.Now().Add(patience))
	if _, err := c.Write(resp.AppendRequest(nil, "QUIT")); err != nil {
		return err
	}
	rest, err := c.rest()
	if err == nil && !bytes.Equal(rest, []byte("+OK\r\n")) {
		err = fmt.Errorf("got %q, want the reply to QUIT alone", rest)
	}
	return err
}
