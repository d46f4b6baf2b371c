package proactor_test

import (
	"bufio"
	"context"
	"fmt"
	"io"
	"log"
	"net"
	"sync"
	"time"

	"github.com/rondo-go/rondo"
	"github.com/rondo-go/rondo/proactor"
)

// accept passes each connection of a new listener to serve, and returns the
// listener's address.
func accept(serve func(net.Conn)) (address string, stop func() error) {
	ln, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		log.Fatal(err)
	}
	go func() {
		for {
			c, err := ln.Accept()
			if err != nil {
				return
			}
			serve(c)
		}
	}()
	return ln.Addr().String(), ln.Close
}

// An echo server with one goroutine for all connections. Each connection has one
// buffer, which belongs to the queue or to the program, never to both.
func Example() {
	q, err := proactor.New(&rondo.Engine{}, proactor.Options{})
	if err != nil {
		log.Fatal(err)
	}
	defer q.Close()
	address, stop := accept(func(c net.Conn) { q.Read(c, make([]byte, 4096), nil) })
	defer stop()
	go func() {
		for {
			results, err := q.Wait(context.Background())
			if err != nil {
				return // closed
			}
			for _, r := range results {
				switch {
				case r.Err != nil: // io.EOF, most often
					q.Free(r.Conn)
				case r.Kind == proactor.Read:
					q.Write(r.Conn, r.Buf[:r.N], nil)
				case r.Kind == proactor.Write:
					q.Read(r.Conn, r.Buf[:cap(r.Buf)], nil)
				}
			}
		}
	}()

	c, err := net.Dial("tcp", address)
	if err != nil {
		log.Fatal(err)
	}
	defer c.Close()
	fmt.Fprintln(c, "hello")
	line, err := bufio.NewReader(c).ReadString('\n')
	fmt.Printf("%q %v\n", line, err)
	// Output: "hello\n" <nil>
}

// A server that pushes a message to all clients at each tick. A client that has not
// taken the last message gets no other one, so nothing piles up.
func Example_push() {
	q, err := proactor.New(&rondo.Engine{}, proactor.Options{})
	if err != nil {
		log.Fatal(err)
	}
	defer q.Close()
	var mu sync.Mutex
	ready := make(map[net.Conn]bool) // clients without a message on its way
	address, stop := accept(func(c net.Conn) {
		mu.Lock()
		ready[c] = true
		mu.Unlock()
	})
	defer stop()

	ticker := time.NewTicker(time.Millisecond)
	defer ticker.Stop()
	go func() {
		tick := 0
		for range ticker.C {
			tick++
			news := fmt.Appendf(nil, "tick %d\n", tick)
			mu.Lock()
			for c := range ready {
				delete(ready, c)
				if q.Write(c, news, nil) != nil {
					mu.Unlock()
					return
				}
			}
			mu.Unlock()
		}
	}()
	go func() {
		for {
			results, err := q.Wait(context.Background())
			if err != nil {
				return
			}
			mu.Lock()
			for _, r := range results {
				if r.Err != nil {
					q.Free(r.Conn)
				} else {
					ready[r.Conn] = true
				}
			}
			mu.Unlock()
		}
	}()

	c, err := net.Dial("tcp", address)
	if err != nil {
		log.Fatal(err)
	}
	defer c.Close()
	in := bufio.NewReader(c)
	last := 0
	for range 3 {
		var tick int
		if _, err := fmt.Fscanf(in, "tick %d\n", &tick); err != nil || tick <= last {
			log.Fatal(tick, err)
		}
		last = tick
	}
	fmt.Println("three ticks, in order")
	// Output: three ticks, in order
}

// A relay from A to B. It reads from A only when B has taken the previous bytes. If B is
// slower, TCP holds A up, and the relay holds one buffer, however much A sends.
func Example_relay() {
	q, err := proactor.New(&rondo.Engine{}, proactor.Options{})
	if err != nil {
		log.Fatal(err)
	}
	defer q.Close()

	// B takes its time.
	const size = 1 << 20
	received := make(chan int64)
	addressB, stopB := accept(func(c net.Conn) {
		var total int64
		buf := make([]byte, 64<<10)
		for {
			n, err := c.Read(buf)
			total += int64(n)
			if err != nil {
				break
			}
			time.Sleep(time.Millisecond)
		}
		received <- total
	})
	defer stopB()

	address, stop := accept(func(a net.Conn) {
		b, err := net.Dial("tcp", addressB)
		if err != nil {
			a.Close()
			return
		}
		q.Read(a, make([]byte, 16<<10), b) // the Value is the other end
	})
	defer stop()
	go func() {
		for {
			results, err := q.Wait(context.Background())
			if err != nil {
				return
			}
			for _, r := range results {
				other := r.Value.(net.Conn)
				switch {
				case r.Err != nil:
					q.Free(r.Conn)
					q.Free(other)
				case r.Kind == proactor.Read:
					q.Write(other, r.Buf[:r.N], r.Conn)
				case r.Kind == proactor.Write:
					q.Read(other, r.Buf[:cap(r.Buf)], r.Conn)
				}
			}
		}
	}()

	a, err := net.Dial("tcp", address)
	if err != nil {
		log.Fatal(err)
	}
	io.CopyN(a, zeros{}, size)
	a.Close()
	fmt.Println("B has", <-received, "bytes")
	// Output: B has 1048576 bytes
}

type zeros struct{}

func (zeros) Read(p []byte) (int, error) { clear(p); return len(p), nil }
