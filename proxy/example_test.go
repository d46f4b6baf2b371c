package proxy_test

import (
	"context"
	"fmt"
	"io"
	"net"

	"github.com/rondo-go/rondo"
	"github.com/rondo-go/rondo/proxy"
)

// Two servers get clients in turn. One of them does not listen any more: its clients get the
// other one.
func Example() {
	name := func(name string) rondo.OpenFunc {
		return func(c *rondo.Conn) rondo.Handler {
			fmt.Fprintln(c, name)
			return nil // says its name, and closes
		}
	}
	var servers rondo.Engine
	defer servers.Close()
	one, err := servers.Listen("tcp", "127.0.0.1:0", rondo.SocketOptions{}, name("one"))
	if err != nil {
		fmt.Println(err)
		return
	}
	two, err := servers.Listen("tcp", "127.0.0.1:0", rondo.SocketOptions{}, name("two"))
	if err != nil {
		fmt.Println(err)
		return
	}

	p := proxy.Server{Engine: &rondo.Engine{NumLoops: 1}}
	err = p.Apply(proxy.Config{
		Listeners: []proxy.Listener{{Network: "tcp", Address: "127.0.0.1:0"}},
		Pools: []proxy.Pool{{Targets: []proxy.Target{
			{Network: "tcp", Address: one.Addr().String()},
			{Network: "tcp", Address: two.Addr().String()},
		}}},
	})
	if err != nil {
		fmt.Println(err)
		return
	}
	defer p.Engine.Shutdown(context.Background())

	ask := func() {
		c, err := net.Dial("tcp", p.Addrs()[0].String())
		if err != nil {
			fmt.Println(err)
			return
		}
		defer c.Close()
		text, err := io.ReadAll(c)
		fmt.Print(string(text))
		if err != nil {
			fmt.Println(err)
		}
	}
	ask()
	ask()
	one.Close()
	ask()
	ask()
	// Output:
	// one
	// two
	// two
	// two
}
