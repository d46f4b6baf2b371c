package cookbook_test

import (
	"errors"
	"fmt"
	"net"
	"strings"
	"time"

	"github.com/rondo-go/rondo"
	"github.com/rondo-go/rondo/coro"
)

// login is a dialogue, so it is a coroutine: coro.Handler(login). Then a handler, which
// costs less memory, serves the connection.
func login(co *coro.Co, c net.Conn) error {
	c.SetReadDeadline(co.Loop().Now().Add(30 * time.Second))
	for range 3 {
		name, err := ask(c, "login: ")
		if err != nil {
			return err
		}
		password, err := ask(c, "password: ")
		if err != nil {
			return err
		}
		// The check may block: Await calls it on another goroutine.
		ok, err := coro.Await(co, func() (bool, error) { return check(name, password) })
		if err != nil {
			return err
		}
		if ok {
			fmt.Fprintf(c, "hello, %s\n", name)
			co.Conn().SetHandler(rondo.HandlerFunc((*rondo.Conn).Write))
			return nil // the connection stays
		}
		fmt.Fprintln(c, "wrong")
	}
	return errors.New("three wrong passwords")
}

// ask returns the answer to a question, a line. It reads no byte behind the line, as a
// bufio.Reader would: these bytes are the handler's.
func ask(c net.Conn, question string) (string, error) {
	fmt.Fprint(c, question)
	var line []byte
	for b := make([]byte, 1); len(line) < 100; line = append(line, b[0]) {
		if _, err := c.Read(b); err != nil {
			return "", err
		}
		if b[0] == '\n' {
			return strings.TrimSpace(string(line)), nil
		}
	}
	return "", errors.New("the line is too long")
}

// check stands for a query of a database.
func check(name, password string) (bool, error) {
	return name == "ann" && password == "goat", nil
}
