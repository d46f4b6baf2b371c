//go:build unix

package fdpass_test

import (
	"bufio"
	"io"
	"log"
	"net"
	"testing"
	"time"
)

// A client talks in lines.
type client struct {
	net.Conn
	in *bufio.Reader
}

func newClient(to net.Addr) *client {
	c, err := net.Dial(to.Network(), to.String())
	if err != nil {
		log.Fatal(err)
	}
	c.SetDeadline(time.Now().Add(time.Minute))
	return &client{c, bufio.NewReader(c)}
}

func (c *client) say(s string) {
	if _, err := io.WriteString(c, s); err != nil {
		log.Fatal(err)
	}
}

// ask sends a line and returns the answer, or what was received instead of it.
func (c *client) ask(question string) string {
	c.say(question)
	answer, err := c.in.ReadString('\n')
	if err != nil {
		answer += err.Error()
	}
	return answer
}

func (c *client) want(t *testing.T, question, answer string) {
	t.Helper()
	if got := c.ask(question); got != answer {
		t.Fatalf("%q was answered by %q, want %q", question, got, answer)
	}
}
