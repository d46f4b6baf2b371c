package docs_test

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"net"
	"os"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/rondo-go/rondo"
	"github.com/rondo-go/rondo/coro"
)

// The servers of coming-from.md and README.md.

// serveEcho sends back what it gets, on so many loops; 0: one for each processor.
func serveEcho(address string, loops int) (*rondo.Engine, *rondo.Listener, error) {
	e := &rondo.Engine{NumLoops: loops}
	ln, err := e.Listen("tcp", address, rondo.SocketOptions{}, func(c *rondo.Conn) rondo.Handler {
		return rondo.HandlerFunc(func(c *rondo.Conn, in []byte) (int, error) {
			return c.Write(in)
		})
	})
	return e, ln, err
}

func Example_echo() {
	for loops := range 3 {
		e, ln, err := serveEcho("127.0.0.1:0", loops)
		if err != nil {
			fmt.Println(err)
			return
		}
		talk(ln.Addr().String(), fmt.Sprintln("echo", loops), 1)
		stop(e)
	}
	// Output:
	// echo 0
	// echo 1
	// echo 2
}

// members are the members of the chat that one loop serves, and their handler.
type members map[*rondo.Conn]bool

// chat is the members on each loop.
var chat = rondo.LoopLocal[members]{New: func(*rondo.Loop) members { return make(members) }}

// join is the chat's OpenFunc.
func join(c *rondo.Conn) rondo.Handler {
	m := chat.Get(c.Loop())
	m[c] = true
	fmt.Fprintln(c, "welcome")
	return m
}

func (m members) Data(c *rondo.Conn, in []byte) (int, error) {
	n := bytes.LastIndexByte(in, '\n') + 1
	if n > 0 {
		tellAll(c.Loop().Engine(), bytes.Clone(in[:n])) // in itself is valid until return
	}
	return n, nil
}

// EOF closes behind the lines that were posted before, so that a member whose stream has
// ended still gets its own last line.
func (m members) EOF(c *rondo.Conn) { c.Ref().Close() }

func (m members) Closed(c *rondo.Conn, _ error) { delete(m, c) }

// tellAll writes to all members. Any goroutine may call it: each loop writes to its own.
func tellAll(e *rondo.Engine, text []byte) {
	for l := range e.Loops() {
		l.Post(func() {
			for c := range chat.Get(l) {
				if !c.Full() { // a member who does not read misses lines
					c.Write(text)
				}
			}
		})
	}
}

// heartbeat tells all members the time, again and again, as long as the engine lives.
func heartbeat(e *rondo.Engine, every time.Duration) {
	for l := range e.Loops() {
		l.Post(func() {
			l.Every(every, func() { tellAll(e, l.Now().AppendFormat(nil, "it is 15:04:05\n")) })
		})
		return // one timer, on the first loop
	}
}

// TestChat: every member, on whichever loop, hears what one says, the speaker too.
func TestChat(t *testing.T) {
	e := &rondo.Engine{NumLoops: 3}
	defer e.Close()
	ln, err := e.Listen("tcp", "127.0.0.1:0", rondo.SocketOptions{}, join)
	if err != nil {
		t.Fatal(err)
	}
	var clients []net.Conn
	for range 7 {
		c := dial(t, ln.Addr().String())
		if got := readN(t, c, len("welcome\n")); got != "welcome\n" {
			t.Fatalf("%q", got)
		}
		clients = append(clients, c)
	}
	speaker := clients[0]
	io.WriteString(speaker, "hello\n")
	speaker.(*net.TCPConn).CloseWrite()
	for i, c := range clients {
		if got := readN(t, c, len("hello\n")); got != "hello\n" {
			t.Errorf("client %d got %q", i, got)
		}
	}
	if rest, err := io.ReadAll(speaker); len(rest) > 0 || err != nil {
		t.Errorf("behind its line the speaker got %q, %v; want the end", rest, err)
	}
	heartbeat(e, time.Millisecond)
	for i, c := range clients[1:] {
		if got := readN(t, c, len("it is ")); got != "it is " {
			t.Errorf("client %d got %q", i+1, got)
		}
	}
}

// forward serves connections by another server: each gets one to upstream, on the same
// loop. It is a coroutine for each direction, and copies nothing on the way.
func forward(upstream string) rondo.OpenFunc {
	return coro.Handler(func(co *coro.Co, c net.Conn) error {
		up, err := co.DialTimeout("tcp", upstream, 3*time.Second)
		if err != nil {
			return err
		}
		defer up.Close()
		co.Go(func(*coro.Co) error { return pass(up, c) })
		return errors.Join(pass(c, up), co.Wait())
	})
}

// pass sends to dst what comes from src, and then the end of the stream.
func pass(dst, src net.Conn) error {
	_, err := io.Copy(dst, src)
	return errors.Join(err, dst.(interface{ CloseWrite() error }).CloseWrite())
}

// TestForward: a client that ends its stream gets all that upstream then says; one that
// does not read stops upstream, and nothing is lost.
func TestForward(t *testing.T) {
	const size = 8 << 20
	upstream, end := serve(coro.Handler(func(_ *coro.Co, c net.Conn) error {
		n, err := io.Copy(io.Discard, c)
		if err != nil {
			return err
		}
		fmt.Fprintln(c, n, "bytes")
		_, err = c.Write(bytes.Repeat([]byte("x"), size))
		return err
	}))
	defer end()
	address, endToo := serve(forward(upstream))
	defer endToo()
	c := dial(t, address)
	io.WriteString(c, "hello")
	c.(*net.TCPConn).CloseWrite()
	time.Sleep(50 * time.Millisecond) // it does not read
	answer, err := io.ReadAll(c)
	head, rest, _ := strings.Cut(string(answer), "\n")
	if head != "5 bytes" || len(rest) != size || err != nil {
		t.Errorf("%q and %d bytes, %v", head, len(rest), err)
	}
}

// oneLoop: the callbacks of one loop never run at the same time. No lock.
func oneLoop() (*rondo.Engine, rondo.OpenFunc) {
	visits := 0
	return &rondo.Engine{NumLoops: 1}, func(c *rondo.Conn) rondo.Handler {
		visits++
		fmt.Fprintln(c, "visitor", visits)
		return rondo.HandlerFunc((*rondo.Conn).Write)
	}
}

// loopLocal: each loop has its own count. No lock.
func loopLocal() (*rondo.Engine, rondo.OpenFunc) {
	visits := rondo.LoopLocal[*int]{New: func(*rondo.Loop) *int { return new(int) }}
	return &rondo.Engine{}, func(c *rondo.Conn) rondo.Handler {
		n := visits.Get(c.Loop())
		*n++
		fmt.Fprintln(c, "visitor", *n, "on this loop")
		return rondo.HandlerFunc((*rondo.Conn).Write)
	}
}

// mutex: all loops share one count. A callback must not keep the lock for long.
func mutex() (*rondo.Engine, rondo.OpenFunc) {
	var mu sync.Mutex
	visits := 0
	return &rondo.Engine{}, func(c *rondo.Conn) rondo.Handler {
		mu.Lock()
		visits++
		n := visits
		mu.Unlock()
		fmt.Fprintln(c, "visitor", n)
		return rondo.HandlerFunc((*rondo.Conn).Write)
	}
}

// TestSharedState: no visitor is lost in any of README.md's three ways. The race detector
// watches.
func TestSharedState(t *testing.T) {
	const visitors = 50
	for name, way := range map[string]func() (*rondo.Engine, rondo.OpenFunc){"oneLoop": oneLoop, "loopLocal": loopLocal, "mutex": mutex} {
		t.Run(name, func(t *testing.T) {
			e, open := way()
			ln, err := e.Listen("tcp", "127.0.0.1:0", rondo.SocketOptions{}, open)
			if err != nil {
				t.Fatal(err)
			}
			defer e.Close()
			var mu sync.Mutex
			told := map[int]int{} // how many visitors were given a number
			var all sync.WaitGroup
			for range visitors {
				c := dial(t, ln.Addr().String())
				all.Add(1)
				go func() {
					defer all.Done()
					io.WriteString(c, "hello\n")
					c.(*net.TCPConn).CloseWrite()
					answer, err := io.ReadAll(c)
					var n int
					if _, e := fmt.Sscanf(string(answer), "visitor %d", &n); e != nil || err != nil || !strings.HasSuffix(string(answer), "\nhello\n") {
						t.Errorf("%q, %v", answer, err)
					}
					mu.Lock()
					defer mu.Unlock()
					told[n]++
				}()
			}
			all.Wait()
			loops := len(e.Stats().Loops)
			most := 1
			if name == "loopLocal" {
				most = loops
			}
			sum := 0
			for n, times := range told {
				sum += times
				if times > most || n < 1 || n > visitors {
					t.Errorf("%d visitors were given number %d", times, n)
				}
			}
			if sum != visitors {
				t.Errorf("%d visitors were counted, want %d", sum, visitors)
			}
		})
	}
}

// TestREADME: README.md's code behind its first program, which CI builds and runs, is the
// code here.
func TestREADME(t *testing.T) {
	page, err := os.ReadFile("../README.md")
	if err != nil {
		t.Fatal(err)
	}
	_, rest, _ := strings.Cut(string(page), "\n```go\n")
	if n := checkBlocks(t, rest); n == 0 {
		t.Error("no pieces of code")
	}
}

func dial(t *testing.T, address string) net.Conn {
	t.Helper()
	c, err := net.DialTimeout("tcp", address, time.Minute)
	if err != nil {
		t.Fatal(err)
	}
	c.SetDeadline(time.Now().Add(time.Minute))
	t.Cleanup(func() { c.Close() })
	return c
}

func readN(t *testing.T, c net.Conn, n int) string {
	t.Helper()
	p := make([]byte, n)
	if _, err := io.ReadFull(c, p); err != nil {
		t.Fatal(err)
	}
	return string(p)
}
