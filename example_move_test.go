package rondo_test

import (
	"bufio"
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"syscall"
	"time"

	"github.com/rondo-go/rondo"
)

// One engine accepts, another one serves. The first engine's loops only accept, so a
// busy server does not keep new clients waiting.
func ExampleEngine_Adopt() {
	serve := &rondo.Engine{NumLoops: 2, Balance: rondo.LeastConns}
	defer serve.Close()
	accept := &rondo.Engine{NumLoops: 1}
	defer accept.Close()
	ln, err := accept.Listen("tcp", "127.0.0.1:0", rondo.SocketOptions{}, serve.Adopt(func(c *rondo.Conn) rondo.Handler {
		fmt.Fprintln(c, "served by the second engine:", c.Loop().Engine() == serve)
		return rondo.HandlerFunc((*rondo.Conn).Write)
	}))
	if err != nil {
		fmt.Println(err)
		return
	}
	ask(ln.Addr(), "hello\n", 2)
	// Output:
	// served by the second engine: true
	// hello
}

// A connection moves to another loop, once the server knows which one it belongs to. Here
// each room of a chat has a loop. Bytes that the client has already sent move along.
func ExampleConn_Move() {
	e := &rondo.Engine{NumLoops: 2}
	defer e.Close()
	rooms := map[string]*rondo.Loop{}
	if err := e.Start(); err != nil {
		fmt.Println(err)
		return
	}
	for l := range e.Loops() {
		rooms[fmt.Sprint("room", l.ID())] = l
	}
	chat := func(c *rondo.Conn) rondo.Handler {
		fmt.Fprintln(c, "this is loop", c.Loop().ID())
		return rondo.HandlerFunc((*rondo.Conn).Write)
	}
	ln, err := e.Listen("tcp", "127.0.0.1:0", rondo.SocketOptions{}, func(c *rondo.Conn) rondo.Handler {
		return rondo.HandlerFunc(func(c *rondo.Conn, in []byte) (int, error) {
			end := bytes.IndexByte(in, '\n')
			if end < 0 {
				return 0, nil
			}
			room, ok := rooms[string(in[:end])]
			if !ok {
				return 0, errors.New("no such room")
			}
			return end + 1, c.Move(room, chat)
		})
	})
	if err != nil {
		fmt.Println(err)
		return
	}
	ask(ln.Addr(), "room0\nhello\n", 2)
	ask(ln.Addr(), "room1\nhello\n", 2)
	// Output:
	// this is loop 0
	// hello
	// this is loop 1
	// hello
}

// A net.Conn joins a loop after a handshake, and leaves it as a net.Conn. No byte is lost
// on either way.
func ExampleEngine_Attach() {
	var e rondo.Engine
	defer e.Close()
	ln, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		fmt.Println(err)
		return
	}
	defer ln.Close()
	go func() {
		nc, err := ln.Accept()
		if err != nil {
			return
		}
		// The handshake may read ahead: rondo.PrefixConn puts those bytes back.
		in := bufio.NewReader(nc)
		hello, _ := in.ReadString('\n')
		ahead, _ := in.Peek(in.Buffered())
		fmt.Fprintf(nc, "handshake: %s", hello)
		e.Attach(rondo.PrefixConn(nc, ahead), func(*rondo.Conn) rondo.Handler {
			return rondo.HandlerFunc(func(c *rondo.Conn, in []byte) (int, error) {
				end := bytes.IndexByte(in, '\n') + 1
				if end == 0 {
					return 0, nil
				}
				fmt.Fprintf(c, "loop: %s", in[:end])
				return end, c.Detach(func(nc net.Conn, err error) {
					if err != nil {
						return
					}
					go func() { // this goroutine may block
						defer nc.Close()
						line, _ := bufio.NewReader(nc).ReadString('\n')
						fmt.Fprintf(nc, "goroutine: %s", line)
					}()
				})
			})
		})
	}()
	ask(ln.Addr(), "one\ntwo\nthree\n", 3)
	// Output:
	// handshake: one
	// loop: two
	// goroutine: three
}

// A client on a loop. The errors are like package net's.
func ExampleEngine_Dial() {
	var e rondo.Engine
	defer e.Close()
	ln, err := e.Listen("tcp", "127.0.0.1:0", rondo.SocketOptions{}, func(*rondo.Conn) rondo.Handler {
		return rondo.HandlerFunc((*rondo.Conn).Write)
	})
	if err != nil {
		fmt.Println(err)
		return
	}
	answer := make(chan string, 1)
	dial := func() error {
		_, err := e.Dial(context.Background(), "tcp", ln.Addr().String(), rondo.SocketOptions{DialTimeout: 5 * time.Second}, func(c *rondo.Conn) rondo.Handler {
			io.WriteString(c, "hello")
			return rondo.HandlerFunc(func(c *rondo.Conn, in []byte) (int, error) {
				if len(in) < len("hello") {
					return 0, nil
				}
				answer <- string(in)
				c.Close()
				return len(in), nil
			})
		})
		return err
	}
	fmt.Println(dial(), <-answer)
	ln.Close()
	fmt.Println(errors.Is(dial(), syscall.ECONNREFUSED))
	// Output:
	// <nil> hello
	// true
}
