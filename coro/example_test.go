package coro_test

import (
	"bufio"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"strings"
	"time"

	"github.com/rondo-go/rondo"
	"github.com/rondo-go/rondo/coro"
	"github.com/rondo-go/rondo/rondotest"
	"github.com/rondo-go/rondo/workers"
)

// serveCoroutine serves f on a port of its own.
func serveCoroutine(e *rondo.Engine, f func(co *coro.Co, c net.Conn) error) net.Addr {
	ln, err := e.Listen("tcp", "127.0.0.1:0", rondo.SocketOptions{}, coro.Handler(f))
	if err != nil {
		panic(err)
	}
	return ln.Addr()
}

// ask connects to addr, sends question and the end of its stream, as printf … | nc -N
// does, and reads so many lines of the answer.
func ask(addr net.Addr, question string, lines int) {
	c, err := net.Dial(addr.Network(), addr.String())
	if err != nil {
		fmt.Println(err)
		return
	}
	defer c.Close()
	io.WriteString(c, question)
	c.(*net.TCPConn).CloseWrite()
	for r := bufio.NewReader(c); lines > 0; lines-- {
		line, err := r.ReadString('\n')
		if err != nil {
			fmt.Println(err)
			return
		}
		fmt.Print(line)
	}
}

// A dialogue in straight-line code, as one writes it for package net. Its Reads
// do not block the loop.
func ExampleHandler() {
	var e rondo.Engine
	defer e.Close()
	address := serveCoroutine(&e, func(co *coro.Co, c net.Conn) error {
		in := bufio.NewScanner(c)
		fmt.Fprintln(c, "what is your name?")
		in.Scan()
		name := in.Text()
		fmt.Fprintln(c, "and your favourite animal?")
		in.Scan()
		fmt.Fprintf(c, "%s likes the %s\n", name, in.Text())
		return in.Err()
	})
	ask(address, "ann\ngoat\n", 3)
	// Output:
	// what is your name?
	// and your favourite animal?
	// ann likes the goat
}

// http.ReadRequest takes a header of any size. Who reads it for strangers bounds what
// it may read.
func ExampleHandler_http() {
	var e rondo.Engine
	defer e.Close()
	address := serveCoroutine(&e, func(co *coro.Co, c net.Conn) error {
		limited := &io.LimitedReader{R: c}
		in := bufio.NewReader(limited)
		for {
			limited.N = 64 << 10 // a header, and what comes with it
			request, err := http.ReadRequest(in)
			if limited.N <= 0 {
				fmt.Fprint(c, "HTTP/1.1 431 Request Header Fields Too Large\r\n\r\n")
				return nil
			}
			if err != nil {
				return err
			}
			fmt.Fprintf(c, "HTTP/1.1 200 OK\r\nContent-Length: 3\r\n\r\n%s\n", request.Method[:2])
		}
	})
	ask(address, "GET / HTTP/1.1\r\nHost: a\r\nX: "+strings.Repeat("x", 70_000)+"\r\n\r\n", 1)
	// Output: HTTP/1.1 431 Request Header Fields Too Large
}

// What blocks is done on another goroutine, while the loop goes on.
func ExampleAwait() {
	var e rondo.Engine
	defer e.Close()
	address := serveCoroutine(&e, func(co *coro.Co, c net.Conn) error {
		answer, err := coro.Await(co, func() (int, error) {
			time.Sleep(time.Millisecond) // a query; it may use co.Context()
			return 42, nil
		})
		fmt.Fprintln(c, answer)
		return err
	})
	ask(address, "", 1)
	// Output: 42
}

// What blocks is done by a pool, so no more than two queries run at once, however many
// clients ask.
func ExampleAwaitOn() {
	var e rondo.Engine
	defer e.Close()
	pool := &workers.Pool{MaxWorkers: 2}
	address := serveCoroutine(&e, func(co *coro.Co, c net.Conn) error {
		answer, err := coro.AwaitOn(co, pool.Go, func() (int, error) {
			time.Sleep(time.Millisecond) // a query
			return 42, nil
		})
		fmt.Fprintln(c, answer)
		return err
	})
	ask(address, "", 1)
	// Output: 42
}

// A proxy. Each direction is a coroutine, whose io.Copy sends what was received
// from where it lies, and passes the end of the stream on.
func ExampleCo_Dial() {
	var e rondo.Engine
	defer e.Close()
	upstream := serveCoroutine(&e, func(co *coro.Co, c net.Conn) error {
		fmt.Fprintln(c, "hello from upstream")
		_, err := io.Copy(c, c)
		return err
	})
	pass := func(dst, src net.Conn) error {
		_, err := io.Copy(dst, src)
		return errors.Join(err, dst.(interface{ CloseWrite() error }).CloseWrite())
	}
	proxy := serveCoroutine(&e, func(co *coro.Co, c net.Conn) error {
		up, err := co.DialTimeout("tcp", upstream.String(), 5*time.Second)
		if err != nil {
			return err
		}
		defer up.Close()
		co.Go(func(*coro.Co) error { return pass(up, c) })
		return errors.Join(pass(c, up), co.Wait())
	})
	ask(proxy, "and back\n", 2)
	// Output:
	// hello from upstream
	// and back
}

// One coroutine writes what another one, or a callback, puts into a queue. A peer that has
// ended its stream still gets every line: the first coroutine waits for the writer.
func ExampleCond() {
	var e rondo.Engine
	defer e.Close()
	address := serveCoroutine(&e, func(co *coro.Co, c net.Conn) error {
		var queue []string
		var more coro.Cond // there is a line, or there will be none
		ended := false     // the peer says no more
		timers := 0        // that will put a line
		put := func(line string) {
			queue = append(queue, line)
			more.Signal()
		}
		co.Go(func(co *coro.Co) error {
			for {
				for len(queue) == 0 {
					if ended && timers == 0 {
						return nil
					}
					if err := more.Wait(co); err != nil {
						return err
					}
				}
				fmt.Fprintln(c, queue[0])
				queue = queue[1:]
			}
		})
		in := bufio.NewScanner(c)
		for in.Scan() {
			put("from the peer: " + in.Text())
			timers++
			co.Loop().AfterFunc(time.Millisecond, func() {
				timers--
				put("from a timer")
			})
		}
		ended = true
		more.Signal()
		return errors.Join(in.Err(), co.Wait())
	})
	ask(address, "hello\n", 2)
	// Output:
	// from the peer: hello
	// from a timer
}

// In a test, an hour takes no time.
func ExampleCo_Sleep() {
	n := rondotest.New(nil, rondotest.Options{Seed: 1})
	defer n.Close()
	n.Serve(":7", coro.Handler(func(co *coro.Co, c net.Conn) error {
		for hour := 1; ; hour++ {
			if err := co.Sleep(time.Hour); err != nil {
				return err
			}
			if _, err := fmt.Fprintln(c, hour, "o'clock"); err != nil {
				return err
			}
		}
	}))
	c := n.Dial("tcp", "127.0.0.1:7")
	c.Expect("1 o'clock\n2 o'clock\n3 o'clock\n")
	fmt.Println("all is well")
	// Output: all is well
}
