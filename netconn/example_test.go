package netconn_test

import (
	"bufio"
	"fmt"
	"io"
	"log"
	"net"
	"net/http"
	"strings"

	"github.com/rondo-go/rondo"
	"github.com/rondo-go/rondo/netconn"
)

// net/http's server and client on an engine's loops.
func Example() {
	engine := &rondo.Engine{}
	defer engine.Close()
	ln, err := netconn.Listen(engine, "tcp", "127.0.0.1:0", netconn.Options{})
	if err != nil {
		log.Fatal(err)
	}
	go http.Serve(ln, http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		fmt.Fprintf(w, "hello, %s", r.URL.Path[1:])
	}))

	dialer := netconn.Dialer{Engine: engine}
	client := http.Client{Transport: &http.Transport{DialContext: dialer.DialContext}}
	r, err := client.Get("http://" + ln.Addr().String() + "/world")
	if err != nil {
		log.Fatal(err)
	}
	defer r.Body.Close()
	body, err := io.ReadAll(r.Body)
	fmt.Println(string(body), err)
	// Output: hello, world <nil>
}

// A Handler serves short commands on the loop, and gives a connection that asks for a
// dialogue to a goroutine, which may block.
func ExampleNew() {
	engine := &rondo.Engine{}
	defer engine.Close()
	dialogue := func(c net.Conn) {
		defer c.Close()
		in := bufio.NewReader(c)
		fmt.Fprint(c, "your name?\n")
		name, err := in.ReadString('\n')
		if err != nil {
			return
		}
		fmt.Fprintf(c, "goodbye, %s\n", strings.TrimSpace(name))
	}
	commands := func(c *rondo.Conn, in []byte) (n int, err error) {
		for {
			line, _, complete := strings.Cut(string(in[n:]), "\n")
			if !complete {
				return n, nil
			}
			n += len(line) + 1
			if line == "TALK" {
				go dialogue(netconn.New(c)) // what follows the line is the dialogue's
				return n, nil
			}
			fmt.Fprintf(c, "%s yourself\n", line)
		}
	}
	ln, err := engine.Listen("tcp", "127.0.0.1:0", rondo.SocketOptions{}, func(*rondo.Conn) rondo.Handler {
		return rondo.HandlerFunc(commands)
	})
	if err != nil {
		log.Fatal(err)
	}

	c, err := net.Dial("tcp", ln.Addr().String())
	if err != nil {
		log.Fatal(err)
	}
	defer c.Close()
	// The client says everything and ends its stream, as printf … | nc -N does.
	io.WriteString(c, "hello\nTALK\nAnn\n")
	c.(*net.TCPConn).CloseWrite()
	answers, err := io.ReadAll(c)
	if err != nil {
		log.Fatal(err)
	}
	fmt.Print(string(answers))
	// Output:
	// hello yourself
	// your name?
	// goodbye, Ann
}
