package evio_test

import (
	"bytes"
	"fmt"
	"io"
	"net"
	"strings"
	"time"

	"github.com/rondo-go/rondo/compat/evio" // instead of github.com/tidwall/evio
)

// The echo server of evio's README, with another import.
func Example() {
	var events evio.Events
	events.Data = func(c evio.Conn, in []byte) (out []byte, action evio.Action) {
		out = in
		return
	}

	// The rest is the client of the example.
	events.Serving = func(s evio.Server) (action evio.Action) {
		go ask(s.Addrs[0], "hello", 5)
		return
	}
	stopLater(&events)
	if err := evio.Serve(events, "tcp://127.0.0.1:0"); err != nil {
		panic(err.Error())
	}
	// Output: hello
}

// Messages that arrive in pieces, or several at once, as in evio's http-server: an
// InputStream keeps incomplete ones.
func ExampleInputStream() {
	var events evio.Events
	events.Opened = func(c evio.Conn) (out []byte, opts evio.Options, action evio.Action) {
		c.SetContext(&evio.InputStream{})
		opts.ReuseInputBuffer = true
		return
	}
	events.Data = func(c evio.Conn, in []byte) (out []byte, action evio.Action) {
		if in == nil {
			return
		}
		is := c.Context().(*evio.InputStream)
		data := is.Begin(in)
		for {
			i := bytes.Index(data, []byte("\r\n\r\n"))
			if i < 0 {
				break
			}
			data = data[i+4:]
			out = append(out, "HTTP/1.1 200 OK\r\nContent-Length: 6\r\n\r\nhello\n"...)
		}
		is.End(data)
		return
	}

	events.Serving = func(s evio.Server) (action evio.Action) {
		go ask(s.Addrs[0], "GET / HTTP/1.1\r\n\r\nGET / HTTP/1.1\r\n\r\nGET / HTT", 88)
		return
	}
	stopLater(&events)
	if err := evio.Serve(events, "tcp://127.0.0.1:0"); err != nil {
		fmt.Println(err)
	}
	// Output:
	// HTTP/1.1 200 OK
	// Content-Length: 6
	//
	// hello
	// HTTP/1.1 200 OK
	// Content-Length: 6
	//
	// hello
}

// stopLater ends the server after its last connection.
func stopLater(events *evio.Events) {
	events.Closed = func(evio.Conn, error) evio.Action { return evio.Shutdown }
}

// ask sends a question, and prints the first n bytes of the answer.
func ask(to net.Addr, question string, n int) {
	c, err := net.Dial(to.Network(), to.String())
	if err != nil {
		fmt.Println(err)
		return
	}
	defer c.Close() // after printing, since it ends the server
	fmt.Print(strings.ReplaceAll(answer(c, question, n), "\r\n", "\n"))
}

// answer sends a question, and returns the first n bytes of the answer.
func answer(c net.Conn, question string, n int) string {
	c.SetDeadline(time.Now().Add(time.Minute))
	io.WriteString(c, question)
	p := make([]byte, n)
	n, err := io.ReadFull(c, p)
	if err != nil {
		fmt.Println(err)
	}
	return string(p[:n])
}
