package rondo_test

import (
	"bufio"
	"bytes"
	"encoding/binary"
	"fmt"
	"io"
	"log/slog"
	"net"
	"strings"
	"time"

	"github.com/rondo-go/rondo"
)

// An echo server on port 5000 of every interface. Data and Conn.Write have the same
// signature, so the handler can be the method itself.
func ExampleServe() {
	err := rondo.Serve("tcp://:5000", func(*rondo.Conn) rondo.Handler {
		return rondo.HandlerFunc((*rondo.Conn).Write)
	})
	fmt.Println(err)
}

// ask connects to addr, sends question and the end of its stream, as printf … | nc -N
// does, and prints the given number of lines of the answer.
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

// A line protocol: the handler takes all complete lines, and leaves the rest.
func ExampleHandlerFunc() {
	shout := func(c *rondo.Conn, in []byte) (n int, err error) {
		for {
			i := bytes.IndexByte(in[n:], '\n')
			if i < 0 {
				return n, nil
			}
			c.Write(bytes.ToUpper(in[n : n+i+1]))
			n += i + 1
		}
	}
	var e rondo.Engine
	defer e.Close()
	ln, err := e.Listen("tcp", "127.0.0.1:0", rondo.SocketOptions{}, func(*rondo.Conn) rondo.Handler {
		return rondo.HandlerFunc(shout)
	})
	if err != nil {
		fmt.Println(err)
		return
	}
	ask(ln.Addr(), "hello\nloop\n", 2)
	// Output:
	// HELLO
	// LOOP
}

// Messages with a length in front. Want avoids calls of Data for incomplete messages.
func ExampleConn_Want() {
	sum := func(c *rondo.Conn, in []byte) (n int, err error) {
		for len(in)-n >= 4 {
			size := 4 + int(binary.BigEndian.Uint32(in[n:]))
			if len(in)-n < size {
				c.Want(size)
				break
			}
			fmt.Fprintf(c, "%d bytes\n", size-4)
			n += size
		}
		return n, nil
	}
	var e rondo.Engine
	defer e.Close()
	ln, err := e.Listen("tcp", "127.0.0.1:0", rondo.SocketOptions{}, func(*rondo.Conn) rondo.Handler {
		return rondo.HandlerFunc(sum)
	})
	if err != nil {
		fmt.Println(err)
		return
	}
	message := binary.BigEndian.AppendUint32(nil, 100_000)
	ask(ln.Addr(), string(message)+strings.Repeat("x", 100_000), 1)
	// Output: 100000 bytes
}

// A server that serves one client per address at a time, and tells the others why.
func ExampleEngine_refuse() {
	e := rondo.Engine{
		MaxConnsPerAddr: 1,
		Refuse: func(c *rondo.Conn, limit string) {
			fmt.Fprintln(c, "too many connections:", limit)
		},
		Logger: slog.New(slog.DiscardHandler),
	}
	defer e.Close()
	ln, err := e.Listen("tcp", "127.0.0.1:0", rondo.SocketOptions{}, func(c *rondo.Conn) rondo.Handler {
		fmt.Fprintln(c, "welcome")
		return rondo.HandlerFunc((*rondo.Conn).Write)
	})
	if err != nil {
		fmt.Println(err)
		return
	}
	first, err := net.Dial("tcp", ln.Addr().String())
	if err != nil {
		fmt.Println(err)
		return
	}
	defer first.Close()
	line, _ := bufio.NewReader(first).ReadString('\n')
	fmt.Print(line)
	ask(ln.Addr(), "", 1)
	// Output:
	// welcome
	// too many connections: MaxConnsPerAddr
}

// A Ref lets any goroutine write to a connection. Here each goroutine runs a slow query
// that would have blocked the loop.
func ExampleRef() {
	var e rondo.Engine
	defer e.Close()
	ln, err := e.Listen("tcp", "127.0.0.1:0", rondo.SocketOptions{}, func(*rondo.Conn) rondo.Handler { return &oracle{} })
	if err != nil {
		fmt.Println(err)
		return
	}
	ask(ln.Addr(), "the answer?", 1)
	// Output: 42
}

// An oracle answers on other goroutines. A client may ask, end its stream and wait for the
// answer. So the oracle has an EOF method, and closes after the last answer.
type oracle struct {
	asked int // questions without an answer yet
	ended bool
}

func (o *oracle) Data(c *rondo.Conn, in []byte) (int, error) {
	ref := c.Ref()
	o.asked++
	go func() {
		time.Sleep(time.Millisecond) // a slow query
		ref.Do(func(c *rondo.Conn) {
			c.Write([]byte("42\n"))
			o.asked--
			o.closeIfDone(c)
		})
	}()
	return len(in), nil
}

func (o *oracle) EOF(c *rondo.Conn) {
	o.ended = true
	o.closeIfDone(c)
}

func (o *oracle) closeIfDone(c *rondo.Conn) {
	if o.ended && o.asked == 0 {
		c.Close()
	}
}

func (o *oracle) Closed(*rondo.Conn, error) {}

// A clock writes ticks, by a timer on its connection's loop, without a lock.
type clock struct{ timer *rondo.Timer }

func newClock(c *rondo.Conn) rondo.Handler {
	ticks := 0
	return &clock{c.Loop().Every(time.Millisecond, func() {
		ticks++
		fmt.Fprintln(c, "tick", ticks)
	})}
}

func (k *clock) Data(_ *rondo.Conn, in []byte) (int, error) { return len(in), nil }

// EOF keeps the connection open: a client that sends nothing more still reads.
func (k *clock) EOF(*rondo.Conn) {}

// Closed is called when the client has gone.
func (k *clock) Closed(*rondo.Conn, error) { k.timer.Stop() }

// A timer runs on its connection's loop, so it uses the connection without a lock.
func ExampleLoop_Every() {
	var e rondo.Engine
	defer e.Close()
	ln, err := e.Listen("tcp", "127.0.0.1:0", rondo.SocketOptions{}, newClock)
	if err != nil {
		fmt.Println(err)
		return
	}
	ask(ln.Addr(), "", 3)
	// Output:
	// tick 1
	// tick 2
	// tick 3
}

// Each loop makes its value once, and uses it without a lock.
func ExampleLoopLocal() {
	hits := rondo.LoopLocal[*int]{New: func(*rondo.Loop) *int { return new(int) }}
	e := rondo.Engine{NumLoops: 1}
	defer e.Close()
	ln, err := e.Listen("tcp", "127.0.0.1:0", rondo.SocketOptions{}, func(c *rondo.Conn) rondo.Handler {
		n := hits.Get(c.Loop())
		*n++
		fmt.Fprintln(c, "visitor", *n)
		return nil // send the output, and close
	})
	if err != nil {
		fmt.Println(err)
		return
	}
	ask(ln.Addr(), "", 1)
	ask(ln.Addr(), "", 1)
	// Output:
	// visitor 1
	// visitor 2
}

// caesar shifts characters by three places on their way out, and back on their way in.
type caesar struct{ rondo.PassThrough }

func (caesar) Inbound(s *rondo.FilterPort, in []byte) (int, error) {
	s.Deliver(bytes.Map(func(r rune) rune { return r - 3 }, in))
	return len(in), nil
}

func (caesar) Outbound(s *rondo.FilterPort, out []byte) error {
	s.Send(bytes.Map(func(r rune) rune { return r + 3 }, out))
	return nil
}

// A Filter translates all bytes in both directions. The handler does not notice: it reads
// "ave, Caesar".
func ExampleFilter() {
	var e rondo.Engine
	defer e.Close()
	salute := func(*rondo.Conn) rondo.Handler {
		return rondo.HandlerFunc(func(c *rondo.Conn, in []byte) (int, error) {
			fmt.Printf("%s\n", in)
			fmt.Fprint(c, "morituri te salutant\a")
			return len(in), nil
		})
	}
	newFilter := func(*rondo.Conn) rondo.Filter { return caesar{} }
	ln, err := e.Listen("tcp", "127.0.0.1:0", rondo.SocketOptions{}, rondo.Filtered(salute, newFilter))
	if err != nil {
		fmt.Println(err)
		return
	}
	ask(ln.Addr(), "dyh/#Fdhvdu", 1)
	// Output:
	// ave, Caesar
	// prulwxul#wh#vdoxwdqw
}
