package workers_test

import (
	"bytes"
	"context"
	"fmt"
	"io"
	"runtime"
	"strings"
	"sync"
	"testing"

	"github.com/rondo-go/rondo"
	"github.com/rondo-go/rondo/internal/pick"
	"github.com/rondo-go/rondo/internal/testkit"
	"github.com/rondo-go/rondo/workers"
)

var (
	serve = testkit.Listen
	dial  = testkit.Dial
	until = testkit.Until
)

// A reply is what a test's pool is to do with a line.
type reply func(ctx context.Context, line string) ([]byte, error)

// A session submits each line that comes.
type session struct {
	q      *workers.Queue
	reply  reply
	closed func(error) // nil: nobody asks
	lines  int         // that were taken
}

func (s *session) Data(_ *rondo.Conn, in []byte) (n int, err error) {
	for {
		end := bytes.IndexByte(in[n:], '\n')
		if end < 0 {
			return n, nil
		}
		line := string(in[n : n+end])
		if !s.q.Submit(func(ctx context.Context) ([]byte, error) { return s.reply(ctx, line) }) {
			return n, nil
		}
		s.lines++
		n += end + 1
	}
}

func (s *session) Closed(_ *rondo.Conn, err error) {
	if s.closed != nil {
		s.closed(err)
	}
}

// open serves sessions.
func (r reply) open(p *workers.Pool) rondo.OpenFunc {
	return p.Open(func(_ *rondo.Conn, q *workers.Queue) rondo.Handler { return &session{q: q, reply: r} })
}

// answer says what was asked.
func answer(_ context.Context, line string) ([]byte, error) {
	return fmt.Appendf(nil, "re: %s\n", line), nil
}

// A gate holds work until it is let through, in any order.
type gate struct {
	mu      sync.Mutex
	cond    *sync.Cond
	open    map[string]bool
	all     bool
	inside  map[string]bool
	most    int // at the same time
	entered []string
}

func newGate() *gate {
	g := &gate{open: map[string]bool{}, inside: map[string]bool{}}
	g.cond = sync.NewCond(&g.mu)
	return g
}

func (g *gate) pass(line string) {
	g.mu.Lock()
	defer g.mu.Unlock()
	g.inside[line] = true
	g.entered = append(g.entered, line)
	g.most = max(g.most, len(g.inside))
	g.cond.Broadcast()
	for !g.all && !g.open[line] {
		g.cond.Wait()
	}
	delete(g.inside, line)
}

// reply is the reply of a server whose work waits in g.
func (g *gate) reply(ctx context.Context, line string) ([]byte, error) {
	g.pass(line)
	return answer(ctx, line)
}

func (g *gate) let(line string) {
	g.mu.Lock()
	defer g.mu.Unlock()
	g.open[line] = true
	g.cond.Broadcast()
}

func (g *gate) letAll() {
	g.mu.Lock()
	defer g.mu.Unlock()
	g.all = true
	g.cond.Broadcast()
}

// has waits until n functions are inside.
func (g *gate) has(n int) {
	g.mu.Lock()
	defer g.mu.Unlock()
	for len(g.inside) < n {
		g.cond.Wait()
	}
}

// mostInside is how many there were at the same time.
func (g *gate) mostInside() int {
	g.mu.Lock()
	defer g.mu.Unlock()
	return g.most
}

func (g *gate) order() []string {
	g.mu.Lock()
	defer g.mu.Unlock()
	return append([]string(nil), g.entered...)
}

// eachBackend runs a test on all that there are.
func eachBackend(t *testing.T, f func(t *testing.T, backend string)) {
	for _, backend := range pick.Available() {
		t.Run(backend, func(t *testing.T) { f(t, backend) })
	}
}

// ask sends lines and ends the stream, as printf … | nc -N does, and returns what came
// until the server's end.
func ask(t testing.TB, c interface {
	io.ReadWriter
	CloseWrite() error
}, lines ...string) string {
	t.Helper()
	if len(lines) > 0 {
		if _, err := io.WriteString(c, strings.Join(lines, "\n")+"\n"); err != nil {
			t.Fatal(err)
		}
	}
	if err := c.CloseWrite(); err != nil {
		t.Fatal(err)
	}
	b, err := io.ReadAll(c)
	if err != nil {
		t.Fatalf("after %q: %v", b, err)
	}
	return string(b)
}

// numbers are lines from to below to, and answers what a server makes of them.
func numbers(from, to int) (lines []string) {
	for i := from; i < to; i++ {
		lines = append(lines, fmt.Sprint(i))
	}
	return lines
}

func answers(lines []string) string {
	var b strings.Builder
	for _, line := range lines {
		fmt.Fprintf(&b, "re: %s\n", line)
	}
	return b.String()
}

// leakless fails a test after which goroutines of the pool are left.
func leakless(t *testing.T) {
	t.Helper()
	t.Cleanup(func() { noWorkers(t) })
}

// noWorkers waits until no pool has a goroutine.
func noWorkers(t *testing.T) {
	t.Helper()
	buf := make([]byte, 256<<10)
	until(t, "the pools' goroutines to end", func() bool {
		return !bytes.Contains(buf[:runtime.Stack(buf, true)], []byte("workers.(*Pool).work"))
	})
}
