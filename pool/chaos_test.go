package pool_test

import (
	"bufio"
	"context"
	"fmt"
	"math/rand/v2"
	"testing"
	"time"

	"github.com/rondo-go/rondo"
	"github.com/rondo-go/rondo/coro"
	"github.com/rondo-go/rondo/pool"
	"github.com/rondo-go/rondo/rondotest"
)

// All kinds of borrowers, on a faulty network with a faulty server. Each borrower gets its
// own answer and one result. There are never more connections than MaxLive, and in the end
// none is missing.
func TestChaos(t *testing.T) {
	begun, right := 0, 0
	for seed := range seeds(8) {
		o := rondotest.Options{Seed: seed + 1, Faults: rondotest.Harmless(0.1)}
		o.Faults.Reset = 0.01
		random := rand.New(rand.NewPCG(seed, 0))
		c := &chaos{random: random, told: map[int]int{}}
		config := pool.Config{
			MaxLive: 1 + random.IntN(4), MinIdle: random.IntN(3), IdleTime: 50 * time.Millisecond,
			MaxWaiters: 5 + random.IntN(20), MaxWait: 20 * time.Millisecond,
			Socket: rondo.SocketOptions{DialTimeout: 30 * time.Millisecond}, Patience: 10 * time.Millisecond,
		}
		if seed%2 == 0 {
			config.Setup = greet
		}
		if seed%3 == 0 {
			config.Check, config.CheckAfter = greet, 5*time.Millisecond
		}
		c.world = newWorld(t, o, config, func(*rondo.Conn) rondo.Handler { return rondo.HandlerFunc(c.serve) })
		c.most = config.MaxLive
		c.run(seed + 1)
		begun += c.begun
		right += c.right
	}
	if right < begun/3 {
		t.Errorf("of %d borrowers only %d got an answer", begun, right)
	}
}

type chaos struct {
	*world
	random *rand.Rand
	most   int
	begun  int
	told   map[int]int // by borrower: how often
	held   int         // connections with borrowers
	right  int         // answers
}

// serve mostly sends complete answers.
func (s *chaos) serve(c *rondo.Conn, in []byte) (int, error) {
	if in[len(in)-1] != '\n' {
		return 0, nil
	}
	switch s.random.IntN(40) {
	case 0:
		c.Close()
		return len(in), nil
	case 1:
		c.Abort(nil)
		return len(in), nil
	case 2:
		c.Loop().AfterFunc(15*time.Millisecond, func() { c.Write([]byte("too late\n")) })
		return len(in), nil
	case 3:
		c.Write([]byte("and one more thing\n"))
	}
	return answer(c, in)
}

func (s *chaos) run(seed uint64) {
	home := s.home()
	s.do(func() { s.replace(home) })
	for range 150 {
		s.begun++
		i := s.begun
		s.do(func() {
			if s.random.IntN(3) == 0 {
				home.run(func(co *coro.Co) { s.borrow(co, i) })
				return
			}
			waiting := s.pool.Get(func(c *pool.Conn, err error) { s.got(i, c, err) })
			if s.random.IntN(10) == 0 {
				waiting.Cancel()
			}
		})
		if s.random.IntN(3) == 0 {
			s.net.Advance(time.Duration(s.random.IntN(3000)) * time.Microsecond)
		}
		s.look(seed)
	}
	s.net.Advance(time.Second)
	s.look(seed)
	for i := 1; i <= s.begun; i++ {
		if s.told[i] != 1 {
			s.Fatalf("seed %d: borrower %d was told %d times", seed, i, s.told[i])
		}
	}
	st := s.stats()
	if s.Failed() {
		s.FailNow()
	}
	if st.Borrowed != 0 || st.Waiting != 0 || s.held != 0 {
		s.Fatalf("seed %d: in the end %d are held, %d answers of %d; %+v", seed, s.held, s.right, s.begun, st)
	}
	if st.Gets != uint64(s.begun) || st.Gets < st.Reused+st.Waited+st.Refused+st.TimedOut {
		s.Errorf("seed %d: %+v", seed, st)
	}
	s.do(s.pool.Close)
	s.net.Advance(time.Minute)
	if n := s.server.Stats().Open; n != 0 {
		s.Errorf("seed %d: the server has %d connections", seed, n)
	}
}

// replace continues for coroutines whose connection is broken.
func (s *chaos) replace(h *home) {
	s.do(func() {
		s.loop.Every(time.Millisecond, func() {
			if h.over && len(h.todo) > 0 {
				for _, f := range h.todo {
					f(nil)
				}
				h.todo = nil
			}
		})
	})
}

func (s *chaos) look(seed uint64) {
	s.Helper()
	s.do(func() {
		st := s.pool.Stats()
		if n := st.Idle + st.Borrowed + st.Pending; n > s.most || st.Borrowed < s.held || st.Idle < 0 || st.Pending < 0 {
			s.Errorf("seed %d: %d are held, of %d; %+v", seed, s.held, s.most, st)
		}
	})
}

// got takes the result of a Get.
func (s *chaos) got(i int, c *pool.Conn, err error) {
	s.told[i]++
	if err != nil {
		return
	}
	s.held++
	back := func(put func()) {
		s.held--
		put()
	}
	question, over := fmt.Sprintf("question %d", i), false
	var limit *rondo.Timer
	end := func(answer string, err error) {
		if over {
			return
		}
		over = true
		limit.Stop()
		switch {
		case err != nil:
			back(c.Put)
		case answer == "re: "+question:
			s.right++
			back(c.Put)
		case answer == "and one more thing" || answer == "too late":
			back(c.Discard)
		default:
			s.Errorf("%s was answered by %q", question, answer)
			back(c.Discard)
		}
	}
	limit = s.loop.AfterFunc(10*time.Millisecond, func() {
		if !over {
			over = true
			back(c.Discard)
		}
	})
	ask(c, question, end)
}

// borrow is got for a coroutine.
func (s *chaos) borrow(co *coro.Co, i int) {
	if co == nil { // its connection is broken
		s.told[i]++
		s.pool.Get(func(c *pool.Conn, err error) {
			if err == nil {
				c.Put()
			}
		})
		return
	}
	ctx, cancel := context.WithCancel(context.Background())
	defer cancel()
	if s.random.IntN(10) == 0 {
		s.loop.AfterFunc(time.Millisecond, cancel)
	}
	c, err := s.pool.BorrowContext(ctx, co)
	s.told[i]++
	if err != nil {
		return
	}
	s.held++
	nc := c.NetConn()
	nc.SetDeadline(co.Loop().Now().Add(10 * time.Millisecond))
	fmt.Fprintf(nc, "question %d\n", i)
	in := bufio.NewReader(nc)
	line, err := in.ReadString('\n')
	s.held--
	switch {
	case err != nil || in.Buffered() > 0 || line == "and one more thing\n" || line == "too late\n":
		c.Discard()
	case line == fmt.Sprintf("re: question %d\n", i):
		s.right++
		c.Put()
	default:
		s.Errorf("question %d was answered by %q", i, line)
		c.Discard()
	}
}
