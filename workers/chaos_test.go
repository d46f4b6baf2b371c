package workers_test

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"math/rand/v2"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/rondo-go/rondo"
	"github.com/rondo-go/rondo/internal/testkit"
	"github.com/rondo-go/rondo/rondotest"
	"github.com/rondo-go/rondo/workers"
)

// TestChaos: connections that do all there is, on a network that does all that it may.
// Answers are right and in order as far as they go, a connection that was left alone
// gets all of them, no bound is passed, and in the end nothing is left.
func TestChaos(t *testing.T) {
	whole, cut := 0, 0
	for seed := range uint64(60) {
		c := &chaos{T: t, seed: seed + 1, random: rand.New(rand.NewPCG(seed, 2))}
		c.run()
		whole += c.whole
		cut += c.cut
		if t.Failed() {
			t.Fatalf("seed %d", seed+1)
		}
	}
	if whole < 100 || cut < 100 {
		t.Errorf("%d connections got all answers, %d did not", whole, cut)
	}
}

type chaos struct {
	*testing.T
	seed       uint64
	random     *rand.Rand
	pool       *workers.Pool
	queue      int // MaxQueue, with the default
	whole, cut int
}

var errChaos = errors.New("chaos")

func (c *chaos) run() {
	o := rondotest.Options{Seed: c.seed, Faults: rondotest.Harmless(0.1)}
	if c.seed%2 == 0 {
		o.Faults.Reset = 0.02
	}
	c.pool = &workers.Pool{MaxWorkers: 1 + c.random.IntN(4), MaxQueue: c.random.IntN(6) - 1, MaxPerConn: 1 + c.random.IntN(5)}
	if c.queue = c.pool.MaxQueue; c.queue == 0 {
		c.queue = workers.DefaultMaxQueue
	}
	e := &rondo.Engine{NumLoops: 1 + int(c.seed%3), Linger: 50 * time.Millisecond, Logger: new(testkit.Log).Logger()}
	if c.seed%5 == 0 {
		e.MaxOutput, e.HighWater, e.LowWater = 400, 40, 10
	}
	open := c.pool.Open(func(conn *rondo.Conn, q *workers.Queue) rondo.Handler {
		return &chaosConn{q: q, bound: c.bound, random: rand.New(rand.NewPCG(c.seed, c.random.Uint64()))}
	})
	if c.seed%3 == 0 {
		open = rondo.Filtered(open, func(*rondo.Conn) rondo.Filter { return &rondo.PassThrough{} })
	}
	w := newWorld(c.T, o, c.pool, e, open)
	for range 8 {
		c.clients(w)
		if c.Failed() {
			return
		}
	}
	w.net.Advance(time.Minute)
	w.expect(0, 0, 0)
	if n := w.engine.Stats().Open; n != 0 {
		c.Errorf("%d connections are open", n)
	}
	w.net.Close()
	c.pool.Wait()
}

// bound looks whether more work was taken than may be.
func (c *chaos) bound() {
	workers := c.pool.MaxWorkers
	if s := c.pool.Stats(); s.Running > workers || s.Running+s.Queued > workers+max(0, c.queue) || s.Goroutines > workers {
		c.Errorf("%+v, of a pool of %d with a queue of %d", s, workers, c.queue)
	}
}

// clients connects several, which send what they like in turns, and looks at the answers.
func (c *chaos) clients(w *world) {
	type client struct {
		*rondotest.Conn
		asked []string
		harm  bool // it may be that not all is answered
	}
	var clients []*client
	for range 1 + c.random.IntN(5) {
		nc, err := w.net.DialContext(context.Background(), "tcp", "127.0.0.1:7")
		if err == nil {
			clients = append(clients, &client{Conn: nc.(*rondotest.Conn), harm: c.seed%2 == 0})
		}
	}
	for range 30 {
		k := clients[c.random.IntN(len(clients)):]
		if len(k) == 0 {
			continue
		}
		line := fmt.Sprint(len(k[0].asked))
		switch c.random.IntN(12) {
		case 0:
			line += " quick"
		case 1:
			line += " do"
		case 2:
			line += " pause"
		case 3:
			line += " long"
		case 4:
			if c.random.IntN(20) == 0 {
				line += [...]string{" panic", " exit", " error", " fail", " close", " abort", " shut"}[c.random.IntN(7)]
				k[0].harm = true
			}
		case 5:
			w.net.Advance(time.Duration(c.random.IntN(1000)) * time.Microsecond)
		}
		k[0].asked = append(k[0].asked, line)
		io.WriteString(k[0], line+"\n")
	}
	if len(clients) > 1 && c.random.IntN(2) == 0 {
		clients[0].harm = true
		clients[0].Reset()
	}
	for _, k := range clients {
		k.CloseWrite()
		got, err := io.ReadAll(k)
		if errors.Is(err, rondotest.ErrIdle) || errors.Is(err, rondotest.ErrSpin) {
			c.Errorf("%d questions, %d bytes of answers, and then: %v; %+v", len(k.asked), len(got), err, c.pool.Stats())
			return
		}
		k.Close()
		var want bytes.Buffer
		for _, line := range k.asked {
			want.Write(chaosAnswer(line))
		}
		switch {
		case bytes.Equal(got, want.Bytes()):
			c.whole++
		case !bytes.HasPrefix(want.Bytes(), got):
			c.Errorf("the answers are wrong: %q, of %q", got, want.Bytes())
		case !k.harm:
			c.Errorf("%d bytes came of %d, %v", len(got), want.Len(), err)
		default:
			c.cut++
		}
	}
}

func chaosAnswer(line string) []byte {
	if strings.HasSuffix(line, "long") {
		return fmt.Appendf(nil, "%s%s\n", line, strings.Repeat("!", 1000))
	}
	return fmt.Appendf(nil, "re: %s\n", line)
}

// A chaosConn does what its lines say.
type chaosConn struct {
	q      *workers.Queue
	bound  func() // is called at work
	random *rand.Rand
	next   int
	closed bool
}

func (h *chaosConn) Data(c *rondo.Conn, in []byte) (n int, err error) {
	for line := range bytes.Lines(in) {
		if line[len(line)-1] != '\n' {
			break
		}
		taken, err := h.line(c, string(line[:len(line)-1]))
		if err != nil {
			return n, err
		}
		if !taken {
			break
		}
		n += len(line)
		if i, _, _ := strings.Cut(string(line), " "); strings.TrimSpace(i) != strconv.Itoa(h.next) {
			panic(fmt.Sprintf("line %q is given for line %d", line, h.next))
		}
		h.next++
	}
	return n, nil
}

func (h *chaosConn) line(c *rondo.Conn, line string) (taken bool, err error) {
	_, what, _ := strings.Cut(line, " ")
	answer := func(c *rondo.Conn) error { _, err := c.Write(chaosAnswer(line)); return err }
	switch what {
	case "quick":
		if h.q.Full() {
			return false, nil
		}
		_, err := h.q.Write(chaosAnswer(line))
		return true, err
	case "pause":
		if !h.q.Do(func(context.Context) {}, answer) {
			return false, nil
		}
		h.q.Pause()
		c.Loop().AfterFunc(time.Duration(h.random.IntN(1000))*time.Microsecond, h.q.Resume)
		return true, nil
	case "do":
		return h.q.Do(nil, answer), nil
	case "fail":
		return true, errChaos
	case "close":
		h.q.Close()
		return true, nil
	case "abort":
		c.Abort(nil)
		return true, nil
	case "shut":
		c.Close()
		return true, nil
	}
	return h.q.Submit(func(context.Context) ([]byte, error) {
		h.bound()
		switch what {
		case "panic":
			panic(errChaos)
		case "error":
			return nil, errChaos
		}
		return chaosAnswer(line), nil
	}), nil
}

func (h *chaosConn) Room(*rondo.Conn) {
	if h.closed {
		panic("Room after Closed")
	}
}

func (h *chaosConn) Closed(*rondo.Conn, error) {
	if h.closed {
		panic("Closed twice")
	}
	h.closed = true
}
