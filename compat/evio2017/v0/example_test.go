package evio_test

import (
	"fmt"
	"net"

	evio "github.com/rondo-go/rondo/compat/evio2017/v0" // instead of github.com/tidwall/evio
)

// A client: a connection of Dial has the same events as those of the addresses.
func ExampleServer() {
	upstream, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		fmt.Println(err)
		return
	}
	defer upstream.Close()
	go func() {
		c, err := upstream.Accept()
		if err != nil {
			return
		}
		defer c.Close()
		fmt.Fprint(c, "welcome\n")
	}()

	var events evio.Events
	events.Serving = func(srv evio.Server) (action evio.Action) {
		fmt.Println("dialed", srv.Dial("tcp://"+upstream.Addr().String(), 0))
		return
	}
	events.Opened = func(id int, info evio.Info) (out []byte, opts evio.Options, action evio.Action) {
		fmt.Println("opened", id, !info.Closing)
		return
	}
	events.Data = func(id int, in []byte) (out []byte, action evio.Action) {
		fmt.Printf("got %q\n", in)
		return
	}
	events.Closed = func(id int, err error) (action evio.Action) {
		fmt.Println("closed", id, err)
		return evio.Shutdown
	}
	if err := evio.Serve(events); err != nil {
		fmt.Println(err)
	}
	// Output:
	// dialed 1
	// opened 1 true
	// got "welcome\n"
	// closed 1 <nil>
}
