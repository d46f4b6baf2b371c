package redis

import (
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/rondo-go/rondo"
	"github.com/rondo-go/rondo/resp"
	"github.com/rondo-go/rondo/rondotest"
)

// show writes a Value for comparison.
func show(v resp.Value) string {
	switch v.Kind {
	case 0:
		return "nothing"
	case resp.Null:
		return "null"
	case resp.Int, resp.Bool:
		return fmt.Sprint(v.Int)
	case resp.Array, resp.Set, resp.Map, resp.Push:
		var parts []string
		for _, e := range v.Elems {
			parts = append(parts, show(e))
		}
		return string(v.Kind) + "[" + strings.Join(parts, " ") + "]"
	case resp.Error:
		return "-" + string(v.Str)
	}
	return string(v.Str)
}

// ask runs a command of a Client, and shows the reply.
func ask(c *Client, ctx context.Context, line string) string {
	v, err := c.Do(ctx, splitWords(line)...)
	if err != nil {
		return err.Error()
	}
	return show(v)
}

// newClient returns a Client, with which a test talks within net.Await.
func newClient(t *testing.T, net *rondotest.Network, s *Server) *Client {
	t.Helper()
	var c *Client
	var err error
	net.Await(func() { c, err = s.NewClient() })
	if err != nil {
		t.Fatal(err)
	}
	return c
}

func TestClient(t *testing.T) {
	seeds(t, 10, func(t *testing.T, net *rondotest.Network, loops int) {
		s := &Server{Password: "secret", MaxClients: 1}
		serve(t, net, loops, s)
		a, b := newClient(t, net, s), newClient(t, net, s)
		p := dial(t, net)
		p.do("AUTH secret", "+OK")
		for i, line := range []string{
			"a: SET k v => OK", "a: GET k => v", "a: GET none => null", "a: HSET h f 1 => 1", "a: HGETALL h => %[f 1]",
			"a: nope => -ERR unknown command 'nope', with args beginning with: ",
			"a: INCR k => -ERR value is not an integer or out of range",
			"a: SELECT 3 => OK", "a: DBSIZE => 0", "b: DBSIZE => 2", "a: SELECT 0 => OK",
			"a: MULTI => OK", "a: SET k w => QUEUED", "b: GET k => v", "a: EXEC => *[OK]", "b: GET k => w",
			"a: WATCH k => OK", "a: MULTI => OK", "a: GET k => QUEUED", "b: SET k x => OK", "a: EXEC => null",
			"a: SUBSCRIBE c => -ERR 'subscribe' sends messages, which a client within the program can't take",
			"a: PUBLISH c m => 0", "a: CLIENT SETNAME me => OK", "b: CLIENT NO-EVICT on => OK",
			"a: CLIENT REPLY SKIP => nothing", "a: GET k => nothing", "a: GET k => x",
			"a: HELLO 2 => *[server redis version 7.0.15 proto 2 id 2 mode standalone role master modules *[]]",
			"a: HGETALL h => *[f 1]", "a: BLPOP list 0.1 => null", "a: RPUSH list 1 2 => 2", "a: BLPOP list 0 => *[list 1]",
			"a: RESET => RESET", "a: GET k => x", "a: QUIT => OK", "a: GET k => " + rondo.ErrClosed.Error(),
		} {
			name, request, _ := strings.Cut(line, ": ")
			request, want, _ := strings.Cut(request, " => ")
			c := map[string]*Client{"a": a, "b": b}[name]
			var got string
			net.Await(func() { got = ask(c, context.Background(), request) })
			if strings.HasPrefix(request, "HELLO") {
				got = strings.Replace(got, "id 3", "id 2", 1) // whoever was first
			}
			if got != want {
				t.Errorf("seed %d, line %d: %s\ngot %s", net.Seed(), i, line, got)
			}
		}
		p.do("LLEN list", ":1")
	})
}

// A blocked Do gets what another client pushes, and ends with its context, the client, and
// the server.
func TestClientWaits(t *testing.T) {
	seeds(t, 20, func(t *testing.T, net *rondotest.Network, loops int) {
		s := &Server{}
		serve(t, net, loops, s)
		c := newClient(t, net, s)
		p := dial(t, net)
		wait := func(ctx context.Context, how string, end func()) string {
			t.Helper()
			got := make(chan string, 1)
			go func() { got <- ask(c, ctx, "BLPOP list 0") }()
			net.Until(func() bool { return s.blocking.count == 1 })
			end()
			var v string
			net.Await(func() { v = <-got })
			if s.blocking.count != 0 {
				t.Errorf("%s: the client still waits", how)
			}
			return v
		}
		if got := wait(context.Background(), "push", func() { p.do("RPUSH list x", ":1") }); got != "*[list x]" {
			t.Errorf("after a push: %s", got)
		}
		ctx, cancel := context.WithCancel(context.Background())
		if got := wait(ctx, "cancel", cancel); got != context.Canceled.Error() {
			t.Errorf("after cancel: %s", got)
		}
		if got := wait(context.Background(), "unblock", func() { p.do(fmt.Sprint("CLIENT UNBLOCK ", c.local.client.id, " ERROR"), ":1") }); got != "-UNBLOCKED client unblocked via CLIENT UNBLOCK" {
			t.Errorf("after CLIENT UNBLOCK: %s", got)
		}
		if got := wait(context.Background(), "close", c.Close); got != rondo.ErrClosed.Error() {
			t.Errorf("after Close: %s", got)
		}
		c = newClient(t, net, s)
		if got := wait(context.Background(), "kill", func() { p.do(fmt.Sprint("CLIENT KILL ID ", 3), ":1") }); got != rondo.ErrClosed.Error() {
			t.Errorf("after CLIENT KILL: %s", got)
		}
		c = newClient(t, net, s)
		if got := wait(context.Background(), "shutdown", func() { net.Await(func() { s.Shutdown(context.Background()) }) }); got != rondo.ErrClosed.Error() {
			t.Errorf("after Shutdown: %s", got)
		}
		var err error
		net.Await(func() { _, err = s.NewClient() })
		if !errors.Is(err, rondo.ErrClosed) {
			t.Errorf("NewClient after Shutdown: %v", err)
		}
	})
}

// On the loop Do runs at once, also within a command, and does not block.
func TestClientOnTheLoop(t *testing.T) {
	seeds(t, 5, func(t *testing.T, net *rondotest.Network, loops int) {
		var c *Client
		s := &Server{}
		within := func(x *Call, args [][]byte) {
			x.BulkString(ask(c, context.Background(), string(args[1])))
		}
		s.Commands = []Command{{Name: "within", Arity: 2, Run: within}}
		serve(t, net, loops, s)
		c = newClient(t, net, s)
		var got []string
		do := func(line string) { got = append(got, ask(c, context.Background(), line)) }
		net.Await(func() {
			done := make(chan struct{})
			s.loop.Post(func() {
				do("SET k v")
				do("BLPOP none 0")
				do("GET k")
				close(done)
			})
			<-done
		})
		if want := "OK null v"; strings.Join(got, " ") != want {
			t.Errorf("got %s, want %s", got, want)
		}
		p := dial(t, net)
		p.do(`WITHIN "GET k"`, "$1 v")
		waiter := dial(t, net)
		waiter.request("BLPOP list 0")
		net.Until(func() bool { return s.blocking.count == 1 })
		p.do(`WITHIN "RPUSH list x y"`, "$1 2")
		waiter.expect("*2 $4 list $1 x")
		if loops == 1 {
			return
		}
		net.Await(func() {
			said := make(chan any)
			for l := range s.Engine.Loops() {
				if l != s.loop {
					l.Post(func() {
						defer func() { said <- recover() }()
						c.Do(context.Background(), "PING")
					})
					break
				}
			}
			if text := fmt.Sprint(<-said); !strings.Contains(text, "Client.Do was called on loop") {
				t.Errorf("on another loop: %s", text)
			}
		})
	})
}

func TestClientArguments(t *testing.T) {
	var s Server
	c, err := s.NewClient()
	if err != nil {
		t.Fatal(err)
	}
	defer s.Close()
	var none context.Context
	if _, err := c.Do(none, "PING"); err == nil || !strings.Contains(err.Error(), "ctx is nil") {
		t.Errorf("without a context: %v", err)
	}
	if _, err := c.Do(context.Background()); err == nil || !strings.Contains(err.Error(), "no arguments") {
		t.Errorf("without arguments: %v", err)
	}
	ctx, cancel := context.WithCancel(context.Background())
	cancel()
	if _, err := c.Do(ctx, "BLPOP", "l", "0"); err != context.Canceled {
		t.Errorf("with a context that has ended: %v", err)
	}
	big := strings.Repeat("x", 1<<20)
	if v, err := c.Do(context.Background(), "SET", "k", big); err != nil || string(v.Str) != "OK" {
		t.Errorf("SET of 1 MiB: %s %v", show(v), err)
	}
	if v, err := c.Do(context.Background(), "GET", "k"); err != nil || string(v.Str) != big {
		t.Errorf("GET of 1 MiB: %d bytes, %v", len(v.Str), err)
	}
}

// Many goroutines share clients while the server closes.
func TestClientsOfManyGoroutines(t *testing.T) {
	for range 20 {
		s := Server{Engine: &rondo.Engine{NumLoops: 2}, Logger: slog.New(slog.NewTextHandler(io.Discard, nil))}
		shared, err := s.NewClient()
		if err != nil {
			t.Fatal(err)
		}
		var all sync.WaitGroup
		for i := range 8 {
			all.Add(1)
			go func() {
				defer all.Done()
				own, err := s.NewClient()
				if err != nil {
					return
				}
				for n := range 1000 {
					ctx, cancel := context.WithTimeout(context.Background(), time.Millisecond)
					_, err1 := shared.Do(ctx, "BLPOP", "l", "0")
					v, err2 := own.Do(context.Background(), "INCR", fmt.Sprint("k", i))
					cancel()
					if errors.Is(err1, rondo.ErrClosed) || errors.Is(err2, rondo.ErrClosed) {
						return
					}
					if err2 != nil || v.Int != int64(n+1) {
						t.Errorf("INCR: %s %v", show(v), err2)
						return
					}
				}
			}()
		}
		time.Sleep(5 * time.Millisecond)
		if err := s.Close(); err != nil {
			t.Error(err)
		}
		s.Engine.Close()
		all.Wait()
	}
}

// The seed decides every random choice.
func TestSeed(t *testing.T) {
	run := func() (text string) {
		net := rondotest.New(t, rondotest.Options{Seed: 7})
		defer net.Close()
		s := &Server{Seed: 7}
		serve(t, net, 1, s)
		c := newClient(t, net, s)
		net.Await(func() {
			for i := range 200 {
				ask(c, context.Background(), fmt.Sprint("SET k", i, " v"))
				ask(c, context.Background(), fmt.Sprint("SADD s x", i))
			}
			for _, line := range []string{"SCAN 0", "RANDOMKEY", "SRANDMEMBER s 5", "SPOP s 5", "SSCAN s 0"} {
				text += ask(c, context.Background(), line) + "\n"
			}
		})
		return text + s.runID
	}
	a, b := run(), run()
	if a != b {
		t.Errorf("two runs with one seed:\n%s\n%s", a, b)
	}
}
