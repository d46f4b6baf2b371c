package workers_test

import (
	"bytes"
	"context"
	"fmt"
	"io"
	"net"
	"time"

	"github.com/rondo-go/rondo"
	"github.com/rondo-go/rondo/workers"
)

// A shop answers each line by a slow lookup.
type shop struct{ queue *workers.Queue }

func (s *shop) Data(_ *rondo.Conn, in []byte) (n int, err error) {
	for {
		end := bytes.IndexByte(in[n:], '\n')
		if end < 0 {
			return n, nil
		}
		item := string(in[n : n+end]) // in is the loop's again when Data returns
		taken := s.queue.Submit(func(ctx context.Context) ([]byte, error) {
			price, err := lookUp(ctx, item)
			return fmt.Appendf(nil, "%s costs %d\n", item, price), err
		})
		if !taken {
			return n, nil // full: Data is called again with the rest
		}
		n += end + 1
	}
}

func (s *shop) Closed(*rondo.Conn, error) {}

// lookUp stands for a query. The longer the name, the sooner it is found.
func lookUp(_ context.Context, item string) (int, error) {
	time.Sleep(20*time.Millisecond - time.Duration(len(item))*time.Millisecond)
	return 10 * len(item), nil
}

// The client ends its stream behind its questions, as printf … | nc -N does. They are
// looked up at the same time; the answers come in their order, all of them.
func Example() {
	var pool workers.Pool
	var engine rondo.Engine
	defer engine.Close()
	ln, err := engine.Listen("tcp", "127.0.0.1:0", rondo.SocketOptions{}, pool.Open(
		func(_ *rondo.Conn, q *workers.Queue) rondo.Handler { return &shop{q} }))
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
	io.WriteString(client, "tea\nbread\ntomatoes\n")
	client.(*net.TCPConn).CloseWrite()
	answers, err := io.ReadAll(client)
	fmt.Print(string(answers))
	fmt.Println(err)
	// Output:
	// tea costs 30
	// bread costs 50
	// tomatoes costs 80
	// <nil>
}

// A cachedShop remembers what it looked up. The cache belongs to the loop, so it needs no
// lock.
type cachedShop struct {
	queue *workers.Queue
	cache map[string]int
}

func (s *cachedShop) Data(_ *rondo.Conn, in []byte) (n int, err error) {
	for !s.queue.Full() {
		end := bytes.IndexByte(in[n:], '\n')
		if end < 0 {
			break
		}
		item := string(in[n : n+end])
		if price, ok := s.cache[item]; ok {
			fmt.Fprintf(s.queue, "%s costs %d, I remember\n", item, price) // in its turn
		} else if !s.ask(item) {
			break
		}
		n += end + 1
	}
	return n, nil
}

func (s *cachedShop) Closed(*rondo.Conn, error) {}

func (s *cachedShop) ask(item string) (taken bool) {
	var price int
	var err error
	return s.queue.Do(func(ctx context.Context) {
		price, err = lookUp(ctx, item) // on a goroutine of the pool
	}, func(c *rondo.Conn) error {
		if err != nil {
			return err
		}
		s.cache[item] = price // on the loop
		fmt.Fprintf(c, "%s costs %d\n", item, price)
		return nil
	})
}

// An answer that is more than bytes.
func ExampleQueue_Do() {
	var pool workers.Pool
	engine := rondo.Engine{NumLoops: 1}
	defer engine.Close()
	cache := map[string]int{}
	open := func(_ *rondo.Conn, q *workers.Queue) rondo.Handler { return &cachedShop{q, cache} }
	ln, err := engine.Listen("tcp", "127.0.0.1:0", rondo.SocketOptions{}, pool.Open(open))
	if err != nil {
		fmt.Println(err)
		return
	}

	for range 2 {
		client, err := net.Dial("tcp", ln.Addr().String())
		if err != nil {
			fmt.Println(err)
			return
		}
		defer client.Close()
		io.WriteString(client, "bread\n")
		client.(*net.TCPConn).CloseWrite()
		answer, _ := io.ReadAll(client)
		fmt.Print(string(answer))
	}
	// Output:
	// bread costs 50
	// bread costs 50, I remember
}

// Whoever waits for a function has it run by Go: here there are never more than two at
// once.
func ExamplePool_Go() {
	pool := workers.Pool{MaxWorkers: 2}
	sums := make([]int, 5)
	for i := range sums {
		pool.Go(func() {
			for n := range 1000 * (i + 1) {
				sums[i] += n
			}
		})
	}
	pool.Wait()
	fmt.Println(sums)
	// Output: [499500 1999000 4498500 7998000 12497500]
}
