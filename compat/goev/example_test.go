//go:build linux

package goev_test

import (
	"fmt"
	"io"
	"net"
	"time"

	"github.com/rondo-go/rondo/compat/goev" // instead of github.com/shaovie/goev
	"github.com/rondo-go/rondo/compat/goev/netfd"
)

// A Conn answers what it reads.
type Conn struct {
	goev.IOHandle
	reactor *goev.Reactor // that serves it
}

func (c *Conn) OnOpen() bool {
	return c.reactor.AddEvHandler(c, c.Fd(), goev.EvIn) == nil
}

func (c *Conn) OnRead() bool {
	buf, n, _ := c.Read()
	if n == 0 { // the end
		return false
	}
	answer := append(c.WriteBuff()[:0], "you said "...)
	answer = append(answer, buf...)
	c.Write(answer)
	return true
}

func (c *Conn) OnClose() {
	c.Destroy(c)
}

// One Reactor accepts, and another serves, as in the README of goev.
func Example() {
	listenReactor, err := goev.NewReactor(goev.EvPollNum(1))
	if err != nil {
		panic(err.Error())
	}
	connReactor, err := goev.NewReactor(goev.EvPollNum(2))
	if err != nil {
		panic(err.Error())
	}
	a, err := goev.NewAcceptor(listenReactor, "127.0.0.1:0", func() goev.EvHandler { return &Conn{reactor: connReactor} })
	if err != nil {
		panic(err.Error())
	}
	go listenReactor.Run()
	go connReactor.Run()

	// The rest is the client of the example.
	c, err := net.Dial("tcp", netfd.LocalAddr(a.Fd()))
	if err != nil {
		fmt.Println(err)
		return
	}
	defer c.Close()
	io.WriteString(c, "hello")
	answer := make([]byte, len("you said hello"))
	io.ReadFull(c, answer)
	fmt.Printf("%s\n", answer)
	// Output: you said hello
}

// A Clock tells the time to a connection, in a way.
type Clock struct {
	goev.IOHandle
	reactor *goev.Reactor
	ticks   int
}

func (c *Clock) OnOpen() bool {
	// The handler comes first, and then its timer, so that both have the same poller.
	return c.reactor.AddEvHandler(c, c.Fd(), goev.EvIn) == nil && c.ScheduleTimer(c, 1, 2) == nil
}

func (c *Clock) OnRead() bool {
	_, n, _ := c.Read()
	return n != 0
}

func (c *Clock) OnTimeout(now int64) bool {
	c.ticks++
	fmt.Fprintf(c, "tick %d\n", c.ticks)
	return c.ticks < 3
}

func (c *Clock) OnClose() {
	c.CancelTimer(c)
	c.Destroy(c)
}

// A handler's timer runs on the poller that serves the handler's descriptor.
func ExampleIOHandle_ScheduleTimer() {
	r, err := goev.NewReactor()
	if err != nil {
		panic(err.Error())
	}
	a, err := goev.NewAcceptor(r, "127.0.0.1:0", func() goev.EvHandler { return &Clock{reactor: r} })
	if err != nil {
		panic(err.Error())
	}
	go r.Run()

	c, err := net.Dial("tcp", netfd.LocalAddr(a.Fd()))
	if err != nil {
		fmt.Println(err)
		return
	}
	defer c.Close()
	ticks := make([]byte, len("tick 1\ntick 2\ntick 3\n"))
	io.ReadFull(c, ticks)
	fmt.Print(string(ticks))
	// Output:
	// tick 1
	// tick 2
	// tick 3
}

// A Question is a connection of a pool.
type Question struct {
	goev.ConnectPoolItem
	reactor *goev.Reactor
	answers chan string
}

func (q *Question) OnOpen() bool {
	return q.reactor.AddEvHandler(q, q.Fd(), goev.EvIn) == nil
}

func (q *Question) OnRead() bool {
	buf, n, _ := q.Read()
	if n > 0 {
		q.answers <- string(buf)
	}
	return n != 0
}

func (q *Question) OnClose() {
	q.Closed()
	q.Destroy(q)
}

// A goroutine takes a connection from a pool, and gives it back.
func ExampleConnectPool() {
	r, err := goev.NewReactor(goev.EvPollNum(2))
	if err != nil {
		panic(err.Error())
	}
	a, err := goev.NewAcceptor(r, "127.0.0.1:0", func() goev.EvHandler { return &Conn{reactor: r} })
	if err != nil {
		panic(err.Error())
	}
	go r.Run()
	connector, err := goev.NewConnector(r)
	if err != nil {
		panic(err.Error())
	}
	answers := make(chan string)
	pool, err := goev.NewConnectPool(connector, netfd.LocalAddr(a.Fd()), 1, 1, 4, 1000, 10,
		func() goev.ConnectPoolHandler { return &Question{reactor: r, answers: answers} })
	if err != nil {
		panic(err.Error())
	}

	conn := pool.Acquire()
	for ; conn == nil; conn = pool.Acquire() {
		time.Sleep(time.Millisecond)
	}
	conn.Write([]byte("hello"))
	fmt.Println(<-answers)
	pool.Release(conn)
	// Output: you said hello
}
