package pool_test

import (
	"bufio"
	"bytes"
	"context"
	"fmt"
	"io"
	"net"
	"time"

	"github.com/rondo-go/rondo"
	"github.com/rondo-go/rondo/coro"
	"github.com/rondo-go/rondo/pool"
)

// serve answers "PING" with "PONG" and other lines with their length.
func serve(e *rondo.Engine) (address string) {
	ln, err := e.Listen("tcp", "127.0.0.1:0", rondo.SocketOptions{}, func(*rondo.Conn) rondo.Handler {
		return rondo.HandlerFunc(func(c *rondo.Conn, in []byte) (n int, err error) {
			for line := range bytes.Lines(in) {
				switch {
				case line[len(line)-1] != '\n':
					return n, nil
				case string(line) == "PING\n":
					io.WriteString(c, "PONG\n")
				default:
					fmt.Fprintln(c, len(line)-1)
				}
				n += len(line)
			}
			return n, nil
		})
	})
	if err != nil {
		panic(err)
	}
	return ln.Addr().String()
}

// A borrower with callbacks: the Handler that reads the answer returns the connection after
// the last byte of the answer, or when the connection breaks.
type borrower struct {
	c      *pool.Conn
	answer func(string)
}

func (b *borrower) Data(_ *rondo.Conn, in []byte) (int, error) {
	end := bytes.IndexByte(in, '\n')
	if end < 0 {
		return 0, nil
	}
	b.answer(string(in[:end]))
	b.c.Put()
	return end + 1, nil
}

func (b *borrower) Closed(_ *rondo.Conn, err error) {
	b.answer(fmt.Sprint("no answer: ", err))
	b.c.Put()
}

// Functions borrow connections. Two of the three questions go out at once, the third when
// one of the two connections is free.
func Example() {
	e := &rondo.Engine{NumLoops: 1}
	defer e.Close()
	address := serve(e)
	answers := make(chan string)
	for loop := range e.Loops() {
		loop.Post(func() {
			p := pool.New(loop, pool.Config{
				Network: "tcp", Address: address, Socket: rondo.SocketOptions{DialTimeout: time.Second},
				MaxLive: 2, MaxWait: time.Second,
			})
			for _, question := range []string{"one", "three", "seventeen"} {
				p.Get(func(c *pool.Conn, err error) {
					if err != nil {
						answers <- err.Error()
						return
					}
					c.Conn().SetHandler(&borrower{c, func(s string) {
						go func() { answers <- fmt.Sprintf("%s has %s letters", question, s) }()
					}})
					fmt.Fprintln(c.Conn(), question)
				})
			}
		})
	}
	for range 3 {
		fmt.Println(<-answers)
	}
	// Unordered output:
	// one has 3 letters
	// three has 5 letters
	// seventeen has 9 letters
}

// A coroutine borrows a connection for each request of its client. Each loop has a pool. The
// bufio.Reader of a connection stays with it. A connection that the server has closed, or on
// which it has sent something unasked, is not lent again.
func ExamplePool_Borrow() {
	backend := &rondo.Engine{NumLoops: 1}
	defer backend.Close()
	address := serve(backend)

	pools := rondo.LoopLocal[*pool.Pool]{New: func(l *rondo.Loop) *pool.Pool {
		return pool.New(l, pool.Config{Network: "tcp", Address: address, MinIdle: 1, MaxLive: 8, IdleTime: time.Minute})
	}}
	ask := func(co *coro.Co, question string) (string, error) {
		c, err := pools.Get(co.Loop()).Borrow(co)
		if err != nil {
			return "", err
		}
		nc := c.NetConn()
		if c.Value == nil {
			c.Value = bufio.NewReader(nc)
		}
		nc.SetDeadline(co.Loop().Now().Add(time.Second))
		fmt.Fprintln(nc, question)
		answer, err := c.Value.(*bufio.Reader).ReadString('\n')
		if err != nil {
			c.Discard()
			return "", err
		}
		c.Put()
		return answer, nil
	}

	front := &rondo.Engine{NumLoops: 2}
	defer front.Shutdown(context.Background())
	ln, err := front.Listen("tcp", "127.0.0.1:0", rondo.SocketOptions{}, coro.Handler(func(co *coro.Co, c net.Conn) error {
		lines := bufio.NewScanner(c)
		for lines.Scan() {
			answer, err := ask(co, lines.Text())
			if err != nil {
				return err
			}
			io.WriteString(c, answer)
		}
		return lines.Err()
	}))
	if err != nil {
		fmt.Println(err)
		return
	}
	client, err := net.Dial("tcp", ln.Addr().String())
	if err != nil {
		fmt.Println(err)
		return
	}
	defer client.Close()
	io.WriteString(client, "hello\nPING\n")
	answers := bufio.NewScanner(client)
	for range 2 {
		answers.Scan()
		fmt.Println(answers.Text())
	}
	// Output:
	// 5
	// PONG
}

// Setup logs in, and Check tests a connection after a minute without use. Both talk to the
// server as a borrower does.
func ExampleConfig() {
	ping := func(c *pool.Conn, done func(error)) {
		c.Conn().SetHandler(pinger(done))
		io.WriteString(c.Conn(), "PING\n")
	}
	config := pool.Config{Network: "tcp", Setup: ping, Check: ping, CheckAfter: time.Minute, Patience: time.Second}

	e := &rondo.Engine{NumLoops: 1}
	defer e.Close()
	config.Address = serve(e)
	got := make(chan error)
	for loop := range e.Loops() {
		loop.Post(func() {
			pool.New(loop, config).Get(func(c *pool.Conn, err error) {
				if err == nil {
					c.Put()
				}
				go func() { got <- err }()
			})
		})
	}
	fmt.Println(<-got)
	// Output: <nil>
}

// pinger waits for the answer to a ping.
type pinger func(error)

func (done pinger) Data(_ *rondo.Conn, in []byte) (int, error) {
	if len(in) < len("PONG\n") {
		return 0, nil
	}
	if string(in) != "PONG\n" {
		done(fmt.Errorf("the answer to a ping is %.20q", in))
	} else {
		done(nil)
	}
	return len(in), nil
}

func (done pinger) Closed(_ *rondo.Conn, err error) { done(fmt.Errorf("closed: %v", err)) }
