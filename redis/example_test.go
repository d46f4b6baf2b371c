package redis_test

import (
	"context"
	"fmt"
	"io"
	"net"
	"time"

	"github.com/rondo-go/rondo"
	"github.com/rondo-go/rondo/redis"
	"github.com/rondo-go/rondo/resp"
	"github.com/rondo-go/rondo/rondotest"
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

// A client may end the server, if the program lets it.
func ExampleServer_shutdown() {
	var server redis.Server
	ended := make(chan error, 1)
	server.OnShutdown = func() { ended <- server.Shutdown(context.Background()) }
	ln, err := server.Listen("tcp", "127.0.0.1:0", rondo.SocketOptions{})
	if err != nil {
		panic(err)
	}
	conn, err := net.Dial("tcp", ln.Addr().String())
	if err != nil {
		panic(err)
	}
	io.WriteString(conn, "PING\r\nSHUTDOWN\r\n")
	replies, err := io.ReadAll(conn)
	fmt.Printf("%q %v\n", replies, err)
	conn.Close()
	fmt.Println(<-ended)
	// Output:
	// "+PONG\r\n" <nil>
	// <nil>
}

// On a simulated network a day passes at once, and a blocked client needs no second
// goroutine. In a test, pass the test to New, which then closes everything.
func ExampleServer_clock() {
	network := rondotest.New(nil, rondotest.Options{Seed: 1})
	defer network.Close()
	server := redis.Server{Engine: network.Engine(new(rondo.Engine)), Seed: 1}
	network.Await(func() { server.Listen("tcp", ":6379", rondo.SocketOptions{}) })

	conn := network.Dial("tcp", "127.0.0.1:6379")
	conn.Send("SET session alice EX 86400\r\nTTL session\r\n")
	conn.Expect("+OK\r\n:86400\r\n")
	network.Advance(24 * time.Hour)
	conn.Send("GET session\r\n")
	conn.Expect("$-1\r\n")

	began := network.Now()
	conn.Send("BLPOP queue 60\r\n")
	conn.Expect("*-1\r\n")
	fmt.Println("waited", network.Now().Sub(began).Round(time.Second))
	// Output: waited 1m0s
}

// A server without a listener is an application's cache: its keys take no part in
// garbage collections, expire, and make room for others.
func ExampleServer_NewClient() {
	server := redis.Server{MaxMemory: 64 << 20}
	cache, err := server.NewClient()
	if err != nil {
		panic(err)
	}
	defer server.Close()
	ctx := context.Background()
	cache.Do(ctx, "CONFIG", "SET", "maxmemory-policy", "allkeys-lru")

	page := func(path string) string {
		if v, err := cache.Do(ctx, "GET", path); err == nil && v.Kind == resp.Bulk {
			return string(v.Str) + ", from the cache"
		}
		text := "the page " + path
		cache.Do(ctx, "SET", path, text, "EX", "300")
		return text
	}
	fmt.Println(page("/start"))
	fmt.Println(page("/start"))
	// Output:
	// the page /start
	// the page /start, from the cache
}

// A server with a command of its own. TAKE key n takes n from a number, unless that would
// make it negative. No other client's command runs in between.
func ExampleCommand() {
	take := redis.Command{
		Name: "take", Arity: 3, Flags: "write fast", FirstKey: 1, LastKey: 1,
		Summary: "Takes from a number what it has.",
		Run: func(c *redis.Call, args [][]byte) {
			key, n := string(args[1]), string(args[2])
			left := c.Do("DECRBY", key, n)
			switch {
			case left.Kind == resp.Error:
				c.Error(string(left.Str))
			case left.Int < 0:
				c.Do("INCRBY", key, n)
				c.Bool(false)
			default:
				c.Bool(true)
			}
		},
	}
	server := redis.Server{Commands: []redis.Command{take}}
	client, err := server.NewClient()
	if err != nil {
		panic(err)
	}
	defer server.Close()
	for _, request := range [][]string{{"SET", "tickets", "3"}, {"TAKE", "tickets", "2"}, {"TAKE", "tickets", "2"}} {
		v, err := client.Do(context.Background(), request...)
		fmt.Println(request, string(v.Str), v.Int, err)
	}
	// Output:
	// [SET tickets 3] OK 0 <nil>
	// [TAKE tickets 2]  1 <nil>
	// [TAKE tickets 2]  0 <nil>
}
