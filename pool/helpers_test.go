package pool_test

import (
	"bytes"
	"errors"
	"fmt"
	"os"
	"strconv"
	"testing"

	"github.com/rondo-go/rondo"
	"github.com/rondo-go/rondo/pool"
	"github.com/rondo-go/rondo/rondotest"
)

// seeds returns the number of seeds to try: RONDO_SEEDS, or a few.
func seeds(few int) uint64 {
	if n, err := strconv.ParseUint(os.Getenv("RONDO_SEEDS"), 10, 32); err == nil {
		return n
	}
	if testing.Short() {
		return uint64(few+9) / 10
	}
	return uint64(few)
}

// A world is a simulated network with a server, and an engine of one loop that has a
// pool of connections to it.
type world struct {
	*testing.T
	net    *rondotest.Network
	server *rondo.Engine
	engine *rondo.Engine
	loop   *rondo.Loop
	pool   *pool.Pool

	served []*rondo.Conn // by the server
}

// newWorld serves lines with answers, unless serve is given.
func newWorld(t *testing.T, o rondotest.Options, config pool.Config, serve rondo.OpenFunc) *world {
	t.Helper()
	w := &world{T: t, net: rondotest.New(t, o)}
	if serve == nil {
		serve = func(*rondo.Conn) rondo.Handler { return rondo.HandlerFunc(answer) }
	}
	w.server = w.net.Engine(&rondo.Engine{})
	w.net.Listen(w.server, "tcp", "127.0.0.1:7", func(c *rondo.Conn) rondo.Handler {
		w.served = append(w.served, c)
		return serve(c)
	})
	w.start(config)
	return w
}

// start makes the engine and its pool.
func (w *world) start(config pool.Config) {
	w.Helper()
	w.engine = w.net.Engine(&rondo.Engine{})
	w.net.Await(func() { w.engine.Start() })
	for l := range w.engine.Loops() {
		w.loop = l
	}
	config.Network, config.Address = "tcp", "127.0.0.1:7"
	w.do(func() { w.pool = pool.New(w.loop, config) })
}

// do runs f on the loop.
func (w *world) do(f func()) {
	w.Helper()
	done := false
	if err := w.loop.Post(func() { defer func() { done = true }(); f() }); err != nil {
		w.Fatal(err)
	}
	w.net.Until(func() bool { return done })
}

// get borrows a connection, and lets time pass until it has one.
func (w *world) get() (c *pool.Conn, err error) {
	w.Helper()
	told := 0
	w.do(func() { w.pool.Get(func(got *pool.Conn, e error) { told++; c, err = got, e }) })
	w.net.Until(func() bool { return told > 0 })
	if told != 1 || (c == nil) == (err == nil) {
		w.Fatalf("Get told %d times: %v, %v", told, c, err)
	}
	return c, err
}

func (w *world) mustGet() *pool.Conn {
	w.Helper()
	c, err := w.get()
	if err != nil {
		w.Fatal(err)
	}
	return c
}

func (w *world) put(c *pool.Conn) {
	w.Helper()
	w.do(c.Put)
	w.net.Run()
}

// atServer runs f with a connection of the server's.
func (w *world) atServer(c *rondo.Conn, f func(*rondo.Conn)) {
	w.Helper()
	c.Ref().Do(f)
	w.net.Run()
}

// expect compares what the pool has.
func (w *world) expect(idle, borrowed, pending, waiting int) {
	w.Helper()
	var s pool.Stats
	w.do(func() { s = w.pool.Stats() })
	if s.Idle != idle || s.Borrowed != borrowed || s.Pending != pending || s.Waiting != waiting {
		w.Fatalf("idle %d, borrowed %d, pending %d, waiting %d; want %d, %d, %d, %d\n%+v",
			s.Idle, s.Borrowed, s.Pending, s.Waiting, idle, borrowed, pending, waiting, s)
	}
}

func (w *world) stats() (s pool.Stats) {
	w.Helper()
	w.do(func() { s = w.pool.Stats() })
	return s
}

// answer is the server: it returns each line with "re: " in front.
func answer(c *rondo.Conn, in []byte) (n int, err error) {
	for {
		end := bytes.IndexByte(in[n:], '\n')
		if end < 0 {
			return n, nil
		}
		line := in[n : n+end+1]
		n += len(line)
		if _, err := fmt.Fprintf(c, "re: %s", line); err != nil {
			return n, err
		}
	}
}

// An asker is a borrower's Handler: it asks, and passes on the answer.
type asker struct {
	question string
	told     func(answer string, err error)
}

func ask(c *pool.Conn, question string, told func(string, error)) {
	c.Conn().SetHandler(&asker{question, told})
	c.Conn().Write([]byte(question + "\n"))
}

func (a *asker) Data(_ *rondo.Conn, in []byte) (int, error) {
	end := bytes.IndexByte(in, '\n')
	if end < 0 {
		return 0, nil
	}
	a.told(string(in[:end]), nil)
	return end + 1, nil
}

func (a *asker) Closed(_ *rondo.Conn, err error) {
	if err == nil {
		err = errors.New("it was closed")
	}
	a.told("", err)
}
