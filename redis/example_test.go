package redis_test

import (
	"context"
	"fmt"
	"io"
	"net"

	"github.com/rondo-go/rondo"
	"github.com/rondo-go/rondo/redis"
)

// A server in a test, for a program that needs a Redis.
func ExampleServer() {
	var server redis.Server
	ln, err := server.Listen("tcp", "127.0.0.1:0", rondo.SocketOptions{})
	if err != nil {
		panic(err)
	}
	conn, err := net.Dial("tcp", ln.Addr().String())
	if err != nil {
		panic(err)
	}
	io.WriteString(conn, "SET greeting hello\r\nGET greeting\r\nQUIT\r\n")
	replies, err := io.ReadAll(conn)
	fmt.Printf("%q %v\n", replies, err)
	conn.Close()
	fmt.Println(server.Shutdown(context.Background()))
	// Output:
	// "+OK\r\n$5\r\nhello\r\n+OK\r\n" <nil>
	// <nil>
}
