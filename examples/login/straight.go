package main

import (
	"bufio"
	"errors"
	"fmt"
	"io"
	"net"
	"os"
	"strings"
	"time"

	"github.com/rondo-go/rondo/coro"
)

// straight is the dialogue as a coroutine.
func straight(co *coro.Co, c net.Conn) error {
	in := bufio.NewReaderSize(c, maxLine)
	c.SetReadDeadline(co.Loop().Now().Add(loginTime))
	name, err := login(in, c)
	if errors.Is(err, os.ErrDeadlineExceeded) {
		fmt.Fprint(c, "\ntoo slow\n")
		return nil
	}
	if name == "" || err != nil {
		return err
	}
	c.SetReadDeadline(time.Time{})
	for {
		command, err := ask(in, c, name+"> ")
		if err != nil {
			return err
		}
		switch command {
		case "whoami":
			fmt.Fprintln(c, name)
		case "quit":
			fmt.Fprintln(c, "bye")
			return nil
		default:
			fmt.Fprintln(c, "whoami or quit?")
		}
	}
}

// login returns who has logged in, or "" if nobody could.
func login(in *bufio.Reader, out io.Writer) (string, error) {
	for range tries {
		name, err := ask(in, out, "login: ")
		if err != nil {
			return "", err
		}
		password, err := ask(in, out, "password: ")
		if err != nil {
			return "", err
		}
		if want, ok := passwords[name]; ok && password == want {
			return name, nil
		}
		fmt.Fprintln(out, "wrong")
	}
	fmt.Fprintln(out, "goodbye")
	return "", nil
}

// ask returns the answer to a question, a line.
func ask(in *bufio.Reader, out io.Writer, question string) (string, error) {
	fmt.Fprint(out, question)
	line, err := in.ReadSlice('\n')
	if err == bufio.ErrBufferFull {
		err = errLineTooLong
	}
	return strings.TrimSpace(string(line)), err
}
