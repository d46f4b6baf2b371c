package evio_test

import (
	"crypto/tls"
	"fmt"
	"io"
	"net"
	"strings"
	"sync"
	"time"

	evio "github.com/rondo-go/rondo/compat/evio2017" // instead of github.com/tidwall/evio
	"github.com/rondo-go/rondo/internal/testcert"
)

// The echo server of the README, with another import.
func Example() {
	var events evio.Events
	events.Data = func(id int, in []byte) (out []byte, action evio.Action) {
		out = in
		return
	}

	// The rest is the client of the example.
	events.Serving = func(wake func(id int) bool, addrs []net.Addr) (action evio.Action) {
		go ask(addrs[0], nil, "hello", 5)
		return
	}
	stopLater(&events)
	if err := evio.Serve(events, "tcp://127.0.0.1:0"); err != nil {
		panic(err.Error())
	}
	// Output: hello
}

// A background goroutine finds an answer, and wakes the connection that sends it.
func Example_wake() {
	var events evio.Events
	var wake func(id int) bool
	var mu sync.Mutex
	answers := make(map[int][]string)

	events.Serving = func(wakefn func(id int) bool, addrs []net.Addr) (action evio.Action) {
		wake = wakefn
		go ask(addrs[0], nil, "exec", 4)
		return
	}
	events.Data = func(id int, in []byte) (out []byte, action evio.Action) {
		if in == nil { // after wake
			mu.Lock()
			defer mu.Unlock()
			for _, answer := range answers[id] {
				out = append(out, answer...)
			}
			delete(answers, id)
			return
		}
		command := string(in)
		go func() {
			time.Sleep(time.Millisecond) // something long
			mu.Lock()
			answers[id] = append(answers[id], strings.ToUpper(command))
			mu.Unlock()
			wake(id)
		}()
		return
	}
	stopLater(&events)
	if err := evio.Serve(events, "tcp://127.0.0.1:0"); err != nil {
		fmt.Println(err)
	}
	// Output: EXEC
}

// Two addresses, of which the second one has TLS.
func ExampleTranslate() {
	authority := testcert.New("example CA")
	config := &tls.Config{Certificates: []tls.Certificate{authority.Issue(testcert.ECDSA, "localhost")}}

	var events evio.Events
	events.Serving = func(wake func(id int) bool, addrs []net.Addr) (action evio.Action) {
		go func() {
			ask(addrs[0], nil, "plain\n", 6)
			ask(addrs[1], &tls.Config{RootCAs: authority.Pool(), ServerName: "localhost"}, "translated\n", 11)
		}()
		return
	}
	events.Data = func(id int, in []byte) (out []byte, action evio.Action) {
		out = in
		return
	}
	events.Closed = func(id int, err error) (action evio.Action) {
		if id == 2 {
			action = evio.Shutdown
		}
		return
	}
	events = evio.Translate(events,
		func(id int, addr evio.Addr) bool { return addr.Index == 1 },
		func(id int, rw io.ReadWriter) io.ReadWriter {
			return tls.Server(evio.NopConn(rw), config)
		},
	)
	if err := evio.Serve(events, "tcp://127.0.0.1:0", "tcp://127.0.0.1:0"); err != nil {
		fmt.Println(err)
	}
	// Output:
	// plain
	// translated
}

// Before and after each write, with the amounts.
func Example_prewrite() {
	var events evio.Events
	events.Serving = func(wake func(id int) bool, addrs []net.Addr) (action evio.Action) {
		go ask(addrs[0], nil, "hello\n", 6)
		return
	}
	events.Data = func(id int, in []byte) (out []byte, action evio.Action) { return in, evio.None }
	events.Prewrite = func(id int, amount int) (action evio.Action) {
		fmt.Println("prewrite", amount)
		return
	}
	events.Postwrite = func(id int, amount, remaining int) (action evio.Action) {
		fmt.Println("postwrite", amount, remaining)
		return
	}
	events.Closed = func(id int, err error) (action evio.Action) { return evio.Shutdown }
	if err := evio.Serve(events, "tcp://127.0.0.1:0"); err != nil {
		fmt.Println(err)
	}
	// Unordered output:
	// prewrite 6
	// postwrite 6 0
	// hello
}

// stopLater ends the server after its last connection.
func stopLater(events *evio.Events) {
	events.Closed = func(id int, err error) evio.Action { return evio.Shutdown }
}

// ask sends a question, by TLS if there is a config, and prints the first n bytes of the
// answer.
func ask(to net.Addr, config *tls.Config, question string, n int) {
	c, err := net.Dial(to.Network(), to.String())
	if err != nil {
		fmt.Println(err)
		return
	}
	if config != nil {
		c = tls.Client(c, config)
	}
	defer c.Close() // after printing, since it ends the server
	fmt.Print(answer(c, question, n))
}

// answer sends a question, and returns the first n bytes of the answer.
func answer(c net.Conn, question string, n int) string {
	c.SetDeadline(time.Now().Add(time.Minute))
	io.WriteString(c, question)
	p := make([]byte, n)
	if _, err := io.ReadFull(c, p); err != nil {
		return err.Error()
	}
	return string(p)
}
