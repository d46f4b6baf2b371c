package docs_test

import (
	"bufio"
	"bytes"
	"context"
	"fmt"
	"io"
	"net"
	"os"
	"testing"
	"time"

	"github.com/rondo-go/rondo"
	"github.com/rondo-go/rondo/coro"
	"github.com/rondo-go/rondo/proactor"
)

// The code of coming-from.md, as Examples. TestComingFrom compares the two.

// shout answers lines in capitals.
func shout(c *rondo.Conn, in []byte) (n int, err error) {
	for {
		i := bytes.IndexByte(in[n:], '\n')
		if i < 0 {
			return n, nil // what is left comes again, with more behind it
		}
		c.Write(bytes.ToUpper(in[n : n+i+1]))
		n += i + 1
	}
}

func Example_lines() {
	address, end := serve(func(*rondo.Conn) rondo.Handler { return rondo.HandlerFunc(shout) })
	defer end()
	talk(address, "hello\nand\n", 2)
	// Output:
	// HELLO
	// AND
}

// A session is a connection's state, and its handler.
type session struct {
	lines int
}

func open(c *rondo.Conn) rondo.Handler {
	fmt.Fprintln(c, "welcome") // what Opened returned in out
	return &session{}
}

func (s *session) Data(c *rondo.Conn, in []byte) (int, error) {
	n := bytes.LastIndexByte(in, '\n') + 1
	s.lines += bytes.Count(in[:n], []byte("\n"))
	if s.lines >= 2 {
		fmt.Fprintln(c, "bye after", s.lines)
		c.Close() // after that line has been delivered
	}
	return n, nil
}

func (s *session) Closed(c *rondo.Conn, err error) {}

func Example_session() {
	address, end := serve(open)
	defer end()
	talk(address, "a\nb\n", 2)
	// Output:
	// welcome
	// bye after 2
}

// An oracle has its answers found by other goroutines. Its fields belong to the loop.
type oracle struct {
	asked int  // questions without an answer yet
	ended bool // no further questions come
}

func (o *oracle) Data(c *rondo.Conn, in []byte) (int, error) {
	ref, question := c.Ref(), string(in) // in itself is valid until return
	o.asked++
	go func() {
		answer := slowly(question)
		ref.Do(func(c *rondo.Conn) { // on the loop
			io.WriteString(c, answer)
			o.asked--
			o.closeIfDone(c)
		})
	}()
	return len(in), nil
}

// EOF keeps the connection open for the answers: without it the connection would close
// when the client has ended its stream.
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

func slowly(question string) string {
	time.Sleep(time.Millisecond)
	return "42\n"
}

func Example_oracle() {
	address, end := serve(func(*rondo.Conn) rondo.Handler { return &oracle{} })
	defer end()
	talk(address, "the answer?", 1)
	// Output: 42
}

// ticking calls f on the engine's first loop, as long as it returns a delay.
func ticking(e *rondo.Engine, f func() time.Duration) {
	for l := range e.Loops() {
		var tick func()
		tick = func() {
			if delay := f(); delay > 0 {
				l.AfterFunc(delay, tick)
			}
		}
		l.Post(tick)
		return
	}
}

func Example_ticking() {
	var e rondo.Engine
	defer e.Close()
	if err := e.Start(); err != nil {
		fmt.Println(err)
		return
	}
	done := make(chan struct{})
	ticks := 0
	ticking(&e, func() time.Duration {
		if ticks++; ticks == 3 {
			close(done)
			return 0
		}
		return time.Millisecond
	})
	<-done
	fmt.Println(ticks)
	// Output: 3
}

// away gives the connection to a goroutine of its own.
func away(c *rondo.Conn, in []byte) (int, error) {
	fmt.Fprintln(c, "detached") // is sent before
	c.Detach(func(nc net.Conn, err error) {
		if err != nil {
			return
		}
		go func() {
			defer nc.Close()
			io.WriteString(nc, "from a goroutine\n")
		}()
	})
	return len(in), nil
}

func Example_away() {
	address, end := serve(func(*rondo.Conn) rondo.Handler { return rondo.HandlerFunc(away) })
	defer end()
	talk(address, "x", 2)
	// Output:
	// detached
	// from a goroutine
}

// pipe connects c to upstream, by a connection on the same loop.
func pipe(c *rondo.Conn, upstream string) rondo.Handler {
	c.Pause() // until the other connection is there
	socket := rondo.SocketOptions{DialTimeout: time.Second}
	c.Loop().Dial("tcp", upstream, socket, func(up *rondo.Conn, err error) rondo.Handler {
		if err != nil {
			c.CloseWith(err)
			return nil
		}
		c.SetHandler(half{up})
		c.Resume()
		return half{c}
	})
	return rondo.HandlerFunc(nil)
}

// half passes on what one connection says to the other.
type half struct{ to *rondo.Conn }

func (h half) Data(_ *rondo.Conn, in []byte) (int, error) { return h.to.Write(in) }

// EOF ends the other's output and not its input, of which there may be more to come.
// Each of the two closes when it has ended both ways.
func (h half) EOF(*rondo.Conn) { h.to.CloseWrite() }

func (h half) Closed(_ *rondo.Conn, err error) { h.to.CloseWith(err) }

func Example_pipe() {
	upstream, end := serve(func(*rondo.Conn) rondo.Handler { return rondo.HandlerFunc(shout) })
	defer end()
	address, endToo := serve(func(c *rondo.Conn) rondo.Handler { return pipe(c, upstream) })
	defer endToo()
	talk(address, "through\n", 1)
	// Output: THROUGH
}

// counts answers with the number of bytes when its peer has ended its stream.
func counts(_ *coro.Co, c net.Conn) error {
	n, err := io.Copy(io.Discard, c)
	fmt.Fprintln(c, n, "bytes")
	return err
}

// TestPipeHalfCloses: what upstream sends after the end of the client's stream comes through.
func TestPipeHalfCloses(t *testing.T) {
	upstream, end := serve(coro.Handler(counts))
	defer end()
	address, endToo := serve(func(c *rondo.Conn) rondo.Handler { return pipe(c, upstream) })
	defer endToo()
	for _, size := range []int{1, 1 << 20} {
		c, err := net.Dial("tcp", address)
		if err != nil {
			t.Fatal(err)
		}
		defer c.Close()
		c.Write(make([]byte, size))
		c.(*net.TCPConn).CloseWrite()
		answer, err := io.ReadAll(c)
		if want := fmt.Sprintln(size, "bytes"); string(answer) != want || err != nil {
			t.Errorf("%q, %v; want %q", answer, err, want)
		}
	}
}

// greet is code for a net.Conn, as a goroutine for each connection runs it.
func greet(co *coro.Co, c net.Conn) error {
	c.SetReadDeadline(time.Now().Add(time.Minute))
	name, err := bufio.NewReader(c).ReadString('\n')
	if err != nil {
		return err
	}
	_, err = fmt.Fprintf(c, "hello, %s", name)
	return err
}

func Example_greet() {
	address, end := serve(coro.Handler(greet))
	defer end()
	talk(address, "ann\n", 1)
	// Output: hello, ann
}

// stop lets connections deliver what they have, for ten seconds.
func stop(e *rondo.Engine) error {
	ctx, cancel := context.WithTimeout(context.Background(), 10*time.Second)
	defer cancel()
	return e.Shutdown(ctx)
}

// serve serves on a port of its own, until end is called.
func serve(open rondo.OpenFunc) (address string, end func()) {
	e := new(rondo.Engine)
	ln, err := e.Listen("tcp", "127.0.0.1:0", rondo.SocketOptions{}, open)
	if err != nil {
		fmt.Println(err)
		os.Exit(1)
	}
	return ln.Addr().String(), func() {
		if err := stop(e); err != nil {
			fmt.Println(err)
		}
	}
}

// talk sends words and the end of its stream, as printf … | nc -N does, and prints so many
// lines of the answer.
func talk(address, words string, lines int) {
	c, err := net.DialTimeout("tcp", address, time.Minute)
	if err != nil {
		fmt.Println(err)
		return
	}
	defer c.Close()
	c.SetDeadline(time.Now().Add(time.Minute))
	io.WriteString(c, words)
	c.(*net.TCPConn).CloseWrite()
	for in := bufio.NewReader(c); lines > 0; lines-- {
		line, err := in.ReadString('\n')
		if err != nil {
			fmt.Println(err)
			return
		}
		fmt.Print(line)
	}
}

// echo answers what comes on the queue's connections.
func echo(q *proactor.Queue) error {
	for {
		results, err := q.Wait(context.Background())
		if err != nil {
			return err // closed
		}
		for _, r := range results {
			switch {
			case r.Err != nil: // the end, a failure, or os.ErrDeadlineExceeded
				q.Free(r.Conn)
			case r.Kind == proactor.Write:
				read(q, r.Conn, r.Buf[:cap(r.Buf)])
			default:
				q.Write(r.Conn, r.Buf[:r.N], nil)
			}
		}
	}
}

// read submits a read with a deadline.
func read(q *proactor.Queue, c net.Conn, buf []byte) {
	q.Submit(proactor.Op{Kind: proactor.Read, Conn: c, Buf: buf, Deadline: time.Now().Add(time.Minute)})
}

func Example_queue() {
	q, err := proactor.New(&rondo.Engine{}, proactor.Options{})
	if err != nil {
		fmt.Println(err)
		return
	}
	defer q.Close()
	go echo(q)
	ln, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		fmt.Println(err)
		return
	}
	defer ln.Close()
	go func() {
		for c, err := ln.Accept(); err == nil; c, err = ln.Accept() {
			read(q, c, make([]byte, 4096))
		}
	}()
	talk(ln.Addr().String(), "hello\n", 1)
	// Output: hello
}
