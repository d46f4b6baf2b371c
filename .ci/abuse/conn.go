package main

import (
	"bufio"
	"fmt"
	"io"
	"net"
	"strconv"
	"time"
)

// patience is how long a reply may take.
const patience = 3 * time.Minute

// A conn is a client. It does not look into replies further than it must.
type conn struct {
	net.Conn
	r *bufio.Reader
	w *bufio.Writer
}

func dial(address string) (*conn, error) {
	c, err := net.DialTimeout("tcp", address, 20*time.Second)
	if err != nil {
		return nil, err
	}
	return &conn{c, bufio.NewReaderSize(c, 2<<10), bufio.NewWriterSize(c, 2<<10)}, nil
}

// send writes a request into the buffer.
func (c *conn) send(args ...string) error {
	fmt.Fprintf(c.w, "*%d\r\n", len(args))
	for _, arg := range args {
		c.w.WriteByte('$')
		c.w.WriteString(strconv.Itoa(len(arg)))
		c.w.WriteString("\r\n")
		c.w.WriteString(arg)
		if _, err := c.w.WriteString("\r\n"); err != nil {
			return err
		}
	}
	return nil
}

// do sends a request and returns the head of its reply; see reply.
func (c *conn) do(args ...string) (string, error) {
	c.SetDeadline(time.Now().Add(patience))
	if err := c.send(args...); err != nil {
		return "", err
	}
	if err := c.w.Flush(); err != nil {
		return "", err
	}
	return c.reply()
}

// reply reads a reply and returns its first line, and behind a blank the text of a string.
func (c *conn) reply() (string, error) {
	head, text, err := c.element()
	if err != nil {
		return "", err
	}
	if text != "" {
		head += " " + text
	}
	return head, c.skip(head)
}

// skip reads what an array, a map or the like has.
func (c *conn) skip(head string) error {
	for left := elements(head); left > 0; left-- {
		next, _, err := c.element()
		if err != nil {
			return err
		}
		left += elements(next)
	}
	return nil
}

// elements is how many replies follow a line.
func elements(line string) int {
	n := 0
	switch line[0] {
	case '*', '~', '>', '%':
		n, _ = strconv.Atoi(line[1:])
	}
	if line[0] == '%' {
		n *= 2
	}
	return max(n, 0)
}

// maxText is how much of a string is kept.
const maxText = 256

// element reads a line, and the string that it announces.
func (c *conn) element() (line, text string, err error) {
	b, err := c.r.ReadSlice('\n')
	if err == bufio.ErrBufferFull {
		line = string(b[:maxText])
		for err == bufio.ErrBufferFull {
			_, err = c.r.ReadSlice('\n')
		}
		return line, "", err
	}
	if err != nil {
		return "", "", err
	}
	if len(b) < 3 {
		return "", "", fmt.Errorf("a reply begins with %q", b)
	}
	line = string(b[:len(b)-2])
	if line[0] != '$' && line[0] != '=' {
		return line, "", nil
	}
	n, err := strconv.Atoi(line[1:])
	if err != nil || n < 0 {
		return line, "", err
	}
	kept := make([]byte, min(n, maxText))
	if _, err := io.ReadFull(c.r, kept); err != nil {
		return "", "", err
	}
	_, err = c.r.Discard(n - len(kept) + 2)
	return line, string(kept), err
}

// pipeline sends n requests of f, and reads as many replies, of which none may be an error.
func (c *conn) pipeline(n int, f func(i int) []string) error {
	c.SetDeadline(time.Now().Add(patience))
	const window = 500
	for done := 0; done < n; {
		m := min(window, n-done)
		for i := range m {
			if err := c.send(f(done + i)...); err != nil {
				return err
			}
		}
		if err := c.w.Flush(); err != nil {
			return err
		}
		for range m {
			head, err := c.reply()
			if err != nil {
				return err
			}
			if head[0] == '-' {
				return fmt.Errorf("a request failed: %s", head)
			}
		}
		done += m
	}
	return nil
}
