package rondo_test

import (
	"cmp"
	"fmt"
	"iter"
	"net"
	"os"
	"runtime/debug"
	"strings"
	"testing"

	"github.com/rondo-go/rondo"
	"github.com/rondo-go/rondo/coro"
)

// wrongly calls f on a goroutine of its own and returns what it panics with.
func wrongly(f func()) string {
	told := make(chan string)
	go func() {
		defer func() { told <- fmt.Sprint(recover()) }()
		f()
	}()
	return <-told
}

// TestCheckTellsWhoCalls: with Engine.Check a call from a wrong goroutine panics with
// both stacks, coroutines of other loops among them; the loop's own ones may call.
func TestCheckTellsWhoCalls(t *testing.T) {
	for _, backend := range []string{"", "std"} {
		e := &rondo.Engine{NumLoops: 1, Backend: backend, Check: true}
		conns := make(chan *rondo.Conn, 1)
		c := connTo(t, e, coro.Handler(func(co *coro.Co, c net.Conn) error {
			conn := co.Conn()
			next, stop := iter.Pull(func(yield func(int) bool) { yield(conn.Buffered()) })
			defer stop()
			next()
			conn.Write([]byte("a"))
			conns <- conn
			_, err := c.Read(make([]byte, 1))
			return err
		}))
		if _, err := c.Read(make([]byte, 1)); err != nil {
			t.Fatal(err)
		}
		conn := <-conns
		for what, f := range map[string]func(){
			"Buffered": func() { conn.Buffered() },
			"Write":    func() { conn.Write([]byte("b")) },
			"Now":      func() { conn.Ref().Loop().Now() },
		} {
			text := wrongly(f)
			for _, want := range []string{"Engine.Check", "the caller:\ngoroutine ", "TestCheckTellsWhoCalls", "the loop:\ngoroutine ", "rondo.(*Loop).run("} {
				if !strings.Contains(text, want) {
					t.Errorf("%s: %q is not in the panic: %s", what, want, text)
				}
			}
		}
		done := make(chan string, 1)
		connTo(t, &rondo.Engine{NumLoops: 1}, coro.Handler(func(*coro.Co, net.Conn) error {
			defer func() { done <- fmt.Sprint(recover()) }()
			conn.Buffered()
			return nil
		}))
		if text := <-done; !strings.Contains(text, "Engine.Check") {
			t.Errorf("a coroutine of another loop: %s", text)
		}
	}
}

// The loop's stack is found however much traces tell, as with GOTRACEBACK=crash.
func TestCheckWithLongTraces(t *testing.T) {
	debug.SetTraceback("system")
	defer debug.SetTraceback(cmp.Or(os.Getenv("GOTRACEBACK"), "single"))
	e := &rondo.Engine{NumLoops: 1, Check: true}
	if err := e.Start(); err != nil {
		t.Fatal(err)
	}
	defer e.Close()
	for l := range e.Loops() {
		begun := make(chan bool)
		l.Post(func() { close(begun) })
		<-begun
		if text := wrongly(func() { l.Now() }); !strings.Contains(text, "rondo.(*Loop).run(") {
			t.Error(text)
		}
	}
}

// A loop that has not begun yet has no stack to show.
func TestCheckBeforeTheLoopBegins(t *testing.T) {
	for range 100 {
		e := &rondo.Engine{NumLoops: 4, Check: true}
		if err := e.Start(); err != nil {
			t.Fatal(err)
		}
		for l := range e.Loops() {
			if text := wrongly(func() { l.Now() }); strings.Count(text, "TestCheckBeforeTheLoopBegins.func") > 1 {
				t.Errorf("the caller's stack passes for the loop's: %s", text)
			}
		}
		e.Close()
	}
}

// RONDO_CHECK=1 checks without the field.
func TestCheckByTheEnvironment(t *testing.T) {
	t.Setenv("RONDO_CHECK", "1")
	e := &rondo.Engine{NumLoops: 1}
	if err := e.Start(); err != nil {
		t.Fatal(err)
	}
	defer e.Close()
	for l := range e.Loops() {
		if text := wrongly(func() { l.Now() }); !strings.Contains(text, "Engine.Check") {
			t.Errorf("a call from another goroutine: %s, want a panic", text)
		}
	}
}
