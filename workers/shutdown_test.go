package workers_test

import (
	"context"
	"errors"
	"io"
	"strings"
	"testing"
	"time"

	"github.com/rondo-go/rondo"
	"github.com/rondo-go/rondo/rondotest"
	"github.com/rondo-go/rondo/workers"
)

// TestShutdown: Engine.Shutdown waits for work that was taken, and its answers go out.
func TestShutdown(t *testing.T) {
	eachBackend(t, func(t *testing.T, backend string) {
		leakless(t)
		p, g := &workers.Pool{MaxPerConn: 2, MaxWorkers: 1}, newGate()
		e := &rondo.Engine{Backend: backend, NumLoops: 2}
		address := serve(t, e, reply(g.reply).open(p))
		c, idle := dial(t, address), dial(t, address)
		io.WriteString(c, "1\n2\n3\n")
		until(t, "work", func() bool { s := p.Stats(); return s.Running == 1 && s.Queued == 1 })
		until(t, "both connections", func() bool { return e.Stats().Open == 2 }) // not in the system's queue
		over := make(chan error)
		go func() { over <- e.Shutdown(context.Background()) }()
		if b, err := io.ReadAll(idle); len(b) > 0 || err != nil {
			t.Errorf("an idle connection got %q, %v", b, err)
		}
		idle.Close()
		select {
		case err := <-over:
			t.Fatalf("Shutdown did not wait: %v", err)
		case <-time.After(10 * time.Millisecond):
		}
		g.letAll()
		if b, err := io.ReadAll(c); string(b) != "re: 1\nre: 2\n" || err != nil { // the third was not taken
			t.Errorf("the answers are %q, %v", b, err)
		}
		c.Close()
		if err := <-over; err != nil {
			t.Error(err)
		}
		p.Wait()
	})
}

// TestShutdownEnds: what has not ended with Shutdown's context is canceled.
func TestShutdownEnds(t *testing.T) {
	eachBackend(t, func(t *testing.T, backend string) {
		p, work := &workers.Pool{}, newCanceled()
		e := &rondo.Engine{Backend: backend, NumLoops: 2}
		c := dial(t, serve(t, e, reply(work.reply).open(p)))
		io.WriteString(c, "1\n2\n")
		<-work.started
		<-work.started
		ctx, cancel := context.WithTimeout(context.Background(), 10*time.Millisecond)
		defer cancel()
		if err := e.Shutdown(ctx); !errors.Is(err, context.DeadlineExceeded) {
			t.Errorf("Shutdown: %v", err)
		}
		p.Wait()
		for range 2 {
			if cause := <-work.causes; cause != workers.ErrClosed {
				t.Errorf("the cause is %v", cause)
			}
		}
	})
}

// says is a session that says something when the engine shuts down.
type says struct{ session }

func (s *says) Shutdown(c *rondo.Conn) {
	s.q.Write([]byte("shutting down\n"))
	s.q.Close()
}

// TestShutdownHandler: the user's Handler may decide how.
func TestShutdownHandler(t *testing.T) {
	bySeed(t, 20, func(t *testing.T, seed uint64, o rondotest.Options) {
		p, g := &workers.Pool{MaxWorkers: 2}, newGate()
		w := newWorld(t, o, p, nil, p.Open(func(_ *rondo.Conn, q *workers.Queue) rondo.Handler {
			return &says{session{q: q, reply: g.reply}}
		}))
		asked := numbers(0, int(seed%8))
		c := w.dial()
		if len(asked) > 0 {
			c.Send(strings.Join(asked, "\n") + "\n")
		}
		w.expect(min(2, len(asked)), max(0, len(asked)-2), 0)
		g.letAll()
		over := make(chan error, 1)
		w.net.Await(func() {
			go func() { over <- w.engine.Shutdown(context.Background()) }()
			b, err := io.ReadAll(c)
			if string(b) != answers(asked)+"shutting down\n" || err != nil {
				t.Errorf("the answers are %q, %v", b, err)
			}
			c.Close()
			if err := <-over; err != nil {
				t.Error(err)
			}
		})
		w.net.Close()
	})
}
