package proxy_test

import (
	"fmt"
	"io"
	"math/rand/v2"
	"strings"
	"testing"
	"time"

	"github.com/rondo-go/rondo"
	"github.com/rondo-go/rondo/proxy"
	"github.com/rondo-go/rondo/rondotest"
)

// Clients, targets and configurations come and go at random on a network that loses
// connections and delays everything. At the end no target has a connection or a place that
// nobody uses, no client waits, and what clients got was the beginning of what they should
// get.
func TestRandom(t *testing.T) {
	seeds := uint64(12)
	if testing.Short() {
		seeds = 5
	}
	for seed := uint64(1); seed <= seeds && !t.Failed(); seed++ {
		t.Run(fmt.Sprint(seed), func(t *testing.T) { runRandom(t, seed) })
	}
}

func runRandom(t *testing.T, seed uint64) {
	faults := rondotest.Harmless(0.1)
	if seed%2 == 0 {
		faults.Reset = 0.01
		faults.NoFiles = 0.05
	}
	w := newWorld(t, rondotest.Options{Seed: seed, Faults: faults})
	r := rand.New(rand.NewPCG(w.Seed(), 18))
	w.proxy.Engine.NumLoops = 1 + r.IntN(3)
	w.Blackhole("192.0.2.1")
	lns := make([]*rondo.Listener, 4)
	for i := range lns {
		lns[i] = w.serve(i + 2)
	}
	w.apply(randomPool(r))
	var clients []*rondotest.Conn
	for range 150 {
		switch what := r.IntN(20); {
		case what < 8:
			if c, err := w.DialContext(t.Context(), "tcp", front); err == nil {
				clients = append(clients, c.(*rondotest.Conn))
			}
		case what < 12 && len(clients) > 0:
			c := clients[r.IntN(len(clients))]
			c.SetDeadline(w.Now().Add(time.Second))
			io.WriteString(c, strings.Repeat("x", r.IntN(40_000)))
		case what < 15 && len(clients) > 0:
			i := r.IntN(len(clients))
			leaveAtRandom(t, w, r, clients[i])
			clients[i] = clients[len(clients)-1]
			clients = clients[:len(clients)-1]
		case what == 15:
			i := r.IntN(len(lns))
			if lns[i] != nil {
				w.stop(lns[i])
				lns[i] = nil
			} else {
				lns[i] = w.serve(i + 2)
			}
		case what == 16:
			w.apply(randomPool(r))
		default:
			w.Advance(time.Duration(r.IntN(3000)) * time.Millisecond)
		}
	}
	for _, c := range clients {
		leaveAtRandom(t, w, r, c)
	}
	w.Await(func() { w.proxy.Close() })
	w.Advance(2 * time.Minute)
	w.idle()
	if n := w.pool().Waiting; n != 0 {
		t.Errorf("%d clients still wait", n)
	}
	if log := w.events.String(); strings.Contains(log, "panic") {
		t.Errorf("the log is %s", log)
	}
}

// leaveAtRandom ends a client in one of the ways in which clients end.
func leaveAtRandom(t *testing.T, w *world, r *rand.Rand, c *rondotest.Conn) {
	c.SetDeadline(w.Now().Add(time.Second))
	switch r.IntN(4) {
	case 0:
		c.Reset()
	case 1:
		c.CloseWrite()
		got, _ := io.ReadAll(c)
		if s := strings.TrimLeft(string(got), "2345"); s != "" && strings.Trim(s[1:], "x") != "" || s != "" && s[0] != '.' {
			t.Errorf("a client got %.100q", got)
		}
		c.Close()
	default:
		c.Close()
	}
}

// randomPool makes a pool of some of the targets 2 to 5, of one that nobody has, and of a
// silent one.
func randomPool(r *rand.Rand) proxy.Pool {
	p := proxy.Pool{
		Balance:        proxy.Balance(r.IntN(3)),
		ConnectTimeout: time.Second,
		Tries:          1 + r.IntN(4),
		EjectAfter:     r.IntN(4) - 1,
		EjectTime:      time.Duration(1+r.IntN(10)) * time.Second,
		SlowStart:      time.Duration(r.IntN(2)*r.IntN(10)) * time.Second,
		Queue:          r.IntN(3) * r.IntN(5),
		QueueTime:      time.Duration(1+r.IntN(5)) * time.Second,
		Idle:           30 * time.Second,
	}
	if r.IntN(2) == 0 {
		p.Check = proxy.Check{Kind: proxy.CheckTCP, Interval: time.Second, Timeout: time.Second, Rise: 1 + r.IntN(2), Fall: 1 + r.IntN(2)}
	}
	for _, i := range r.Perm(6)[:1+r.IntN(5)] {
		target := proxy.Target{Network: "tcp", Address: fmt.Sprintf("127.0.0.1:%d", i+2), Weight: r.IntN(4), MaxConns: r.IntN(4), Drain: r.IntN(10) == 0}
		if i == 5 {
			target.Address = "192.0.2.1:80"
		}
		p.Targets = append(p.Targets, target)
	}
	return p
}
