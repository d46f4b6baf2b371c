package evio_test

import (
	"crypto/tls"
	"errors"
	"fmt"
	"net"
	"os"
	"path/filepath"
	"sync"
	"syscall"
	"time"

	"github.com/rondo-go/rondo"
	"github.com/rondo-go/rondo/internal/testcert"
	"github.com/rondo-go/rondo/rtls"
)

// These examples show features that evio had in 2017 and v1 lacks, with package rondo.

var echo = rondo.HandlerFunc((*rondo.Conn).Write)

func echoing(*rondo.Conn) rondo.Handler { return echo }

// Prewrite(id, amount) and Postwrite(id, amount, remaining) are hooks of the engine.
func Example_prewrite() {
	e := rondo.Engine{NumLoops: 1, Trace: &rondo.Trace{
		BeforeWrite: func(c *rondo.Conn, amount int) { fmt.Println("prewrite", amount) },
		AfterWrite:  func(c *rondo.Conn, amount int) { fmt.Println("postwrite", amount, c.Buffered()) },
	}}
	defer e.Close()
	ln, err := e.Listen("tcp", "127.0.0.1:0", rondo.SocketOptions{}, echoing)
	if err != nil {
		fmt.Println(err)
		return
	}
	c, err := net.Dial("tcp", ln.Addr().String())
	if err != nil {
		fmt.Println(err)
		return
	}
	defer c.Close()
	answer(c, "hello", 5)
	// Output:
	// prewrite 5
	// postwrite 5 0
}

// Translate(events, should, translate), whose translate made a TLS connection of a
// NopConn, is a Filter; an OpenFunc chooses its connections. The Example of rondo.Filter
// shows how to write a filter. A library that wants a net.Conn or an io.ReadWriter works
// unchanged in a coroutine.
func Example_translate() {
	authority := testcert.New("example CA")
	config := &tls.Config{Certificates: []tls.Certificate{authority.Issue(testcert.ECDSA, "localhost")}}

	secure := rondo.Filtered(echoing, rtls.Server(config))
	should := func(c *rondo.Conn) bool { return c.LocalAddr().Network() != "unix" }
	open := func(c *rondo.Conn) rondo.Handler {
		if should(c) {
			return secure(c)
		}
		return echoing(c)
	}

	dir, err := os.MkdirTemp("", "rondo")
	if err != nil {
		fmt.Println(err)
		return
	}
	defer os.RemoveAll(dir)
	var e rondo.Engine
	defer e.Close()
	local, err := e.Listen("unix", filepath.Join(dir, "socket"), rondo.SocketOptions{}, open)
	if err != nil {
		fmt.Println(err)
		return
	}
	far, err := e.Listen("tcp", "127.0.0.1:0", rondo.SocketOptions{}, open)
	if err != nil {
		fmt.Println(err)
		return
	}

	ask(local.Addr(), "plain\n", 6)
	c, err := tls.Dial("tcp", far.Addr().String(), &tls.Config{RootCAs: authority.Pool(), ServerName: "localhost"})
	if err != nil {
		fmt.Println(err)
		return
	}
	defer c.Close()
	fmt.Print(answer(c, "translated\n", 11))
	// Output:
	// plain
	// translated
}

// dial is evio's Dial(addr, timeout). Call it on a loop. It calls opened and closed exactly
// once each, in any case. c is nil if there is no connection.
func dial(l *rondo.Loop, address string, timeout time.Duration,
	opened func(c *rondo.Conn), data rondo.HandlerFunc, closed func(err error)) {
	l.Dial("tcp", address, rondo.SocketOptions{DialTimeout: timeout}, func(c *rondo.Conn, err error) rondo.Handler {
		opened(c)
		if err != nil {
			closed(err)
			return nil
		}
		return &dialed{data, closed}
	})
}

type dialed struct {
	rondo.HandlerFunc
	closed func(error)
}

func (d *dialed) Closed(_ *rondo.Conn, err error) { d.closed(err) }

// evio's Dial is Loop.Dial, or Engine.Dial from other goroutines.
func Example_dial() {
	e := rondo.Engine{NumLoops: 1}
	defer e.Close()
	ln, err := e.Listen("tcp", "127.0.0.1:0", rondo.SocketOptions{}, echoing)
	if err != nil {
		fmt.Println(err)
		return
	}
	connect := func() {
		done := make(chan struct{})
		for l := range e.Loops() {
			l.Post(func() {
				dial(l, ln.Addr().String(), time.Minute, func(c *rondo.Conn) {
					fmt.Println("opened", c != nil)
					if c != nil {
						c.Write([]byte("hello"))
					}
				}, func(c *rondo.Conn, in []byte) (int, error) {
					fmt.Printf("data %q\n", in)
					c.Close()
					return len(in), nil
				}, func(err error) {
					fmt.Println("closed", err == nil, errors.Is(err, syscall.ECONNREFUSED))
					close(done)
				})
			})
		}
		<-done
	}
	connect()
	ln.Close()
	connect()
	// Output:
	// opened true
	// data "hello"
	// closed true false
	// opened false
	// closed false true
}

// ids gives connections integers, as evio did, for programs that keep such ids in tables.
// A Ref does the same without a table: it is comparable, and harmless once its connection
// has gone.
type ids struct {
	mu   sync.Mutex
	last int
	refs map[int]rondo.Ref
}

func (s *ids) add(c *rondo.Conn) int {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.last++
	s.refs[s.last] = c.Ref()
	return s.last
}

func (s *ids) remove(id int) {
	s.mu.Lock()
	defer s.mu.Unlock()
	delete(s.refs, id)
}

// wake is evio's wake(id) bool: any goroutine may call it.
func (s *ids) wake(id int, f func(*rondo.Conn)) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.refs[id].Do(f) == nil // false for the zero Ref
}

// numbered is the Handler of a connection with an id.
type numbered struct {
	rondo.HandlerFunc
	set *ids
	id  int
}

func (n *numbered) Closed(*rondo.Conn, error) { n.set.remove(n.id) }

// Connections have no ids here, but a program may give them some.
func Example_ids() {
	set := &ids{refs: make(map[int]rondo.Ref)}
	opened := make(chan int, 1)
	var e rondo.Engine
	defer e.Close()
	ln, err := e.Listen("tcp", "127.0.0.1:0", rondo.SocketOptions{}, func(c *rondo.Conn) rondo.Handler {
		n := &numbered{echo, set, set.add(c)}
		opened <- n.id
		return n
	})
	if err != nil {
		fmt.Println(err)
		return
	}
	go func() {
		id := <-opened
		fmt.Println("woken", set.wake(id, func(c *rondo.Conn) { fmt.Fprintf(c, "wake up, %d\n", id) }))
		fmt.Println("woken", set.wake(id+1, func(*rondo.Conn) {}))
		opened <- id
	}()
	c, err := net.Dial("tcp", ln.Addr().String())
	if err != nil {
		fmt.Println(err)
		return
	}
	defer c.Close()
	got := answer(c, "", len("wake up, 1\n"))
	<-opened
	fmt.Print(got)
	// Output:
	// woken true
	// woken false
	// wake up, 1
}
