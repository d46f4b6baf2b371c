package main

import (
	"errors"
	"fmt"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"time"
)

var trackingCases = []testCase{
	{name: "100,000 keys tracked by 10,000 clients", peak: 700, run: (*attack).trackedKeys},
	{name: "100 keys, each tracked by 10,000 clients", peak: 700, run: (*attack).hotKeys},
	{name: "2,000 clients of BCAST", peak: 900, run: (*attack).broadcast},
	{name: "1,000,000 prefixes", peak: 700, run: (*attack).prefixes},
	{name: "100 clients that read no invalidations", peak: 400, options: "--maxmemory-clients 64mb", run: (*attack).deaf},
}

// A crowd is clients that track keys. Other goroutines read what they get.
type crowd struct {
	conns           []*conn
	replies, pushes atomic.Int64
	lost            atomic.Int64
}

// gather connects clients, and sends each some requests.
func (a *attack) gather(n int, requests func(i int) [][]string) (*crowd, error) {
	g := &crowd{conns: make([]*conn, n)}
	var workers sync.WaitGroup
	errs := make(chan error, 32)
	sent := atomic.Int64{}
	for w := range 32 {
		workers.Add(1)
		go func() {
			defer workers.Done()
			for i := w; i < n; i += 32 {
				c, err := dial(a.server.address)
				if err != nil {
					errs <- err
					return
				}
				g.conns[i] = c
				for _, r := range requests(i) {
					c.send(r...)
					sent.Add(1)
				}
				if err := c.w.Flush(); err != nil {
					errs <- err
					return
				}
				go g.read(c)
			}
		}()
	}
	workers.Wait()
	select {
	case err := <-errs:
		g.leave()
		return nil, err
	default:
	}
	return g, g.settled(&g.replies, sent.Load())
}

// read counts replies and messages.
func (g *crowd) read(c *conn) {
	for {
		head, err := c.reply()
		switch {
		case err != nil:
			g.lost.Add(1)
			return
		case head[0] == '>':
			g.pushes.Add(1)
		default:
			g.replies.Add(1)
		}
	}
}

// settled waits until a count has reached a number, as long as it moves.
func (g *crowd) settled(count *atomic.Int64, want int64) error {
	for last, still := int64(-1), 0; count.Load() < want; {
		if now := count.Load(); now != last {
			last, still = now, 0
		} else if still++; still > 200 {
			return fmt.Errorf("%d of %d replies or messages have come, %d clients have gone", now, want, g.lost.Load())
		}
		time.Sleep(50 * time.Millisecond)
	}
	return nil
}

// ask has all clients send a request.
func (g *crowd) ask(request func(i int) []string) error {
	before := g.replies.Load()
	for i, c := range g.conns {
		c.SetDeadline(time.Now().Add(patience))
		c.send(request(i)...)
		if err := c.w.Flush(); err != nil {
			return err
		}
	}
	return g.settled(&g.replies, before+int64(len(g.conns)))
}

func (g *crowd) leave() {
	for _, c := range g.conns {
		if c != nil {
			c.Close()
		}
	}
}

// start is what a client that tracks sends first.
func start(more ...string) [][]string {
	return [][]string{{"HELLO", "3"}, append([]string{"CLIENT", "TRACKING", "ON"}, more...)}
}

func key(i int) string { return "key:" + strconv.Itoa(i) }

// setKeys sets keys from 0, 50 with each request.
func setKeys(c *conn, n int, value string) error {
	return c.pipeline((n+49)/50, func(i int) []string {
		r := []string{"MSET"}
		for j := 50 * i; j < min(n, 50*i+50); j++ {
			r = append(r, key(j), value)
		}
		return r
	})
}

func (a *attack) trackedKeys() error { return a.tracked(scaled(100000), 100) }

func (a *attack) hotKeys() error { return a.tracked(100, 100) }

// tracked has all clients read some of the keys, which then change, expire, and are all deleted.
func (a *attack) tracked(keys, each int) error {
	writer, err := dial(a.server.address)
	if err != nil {
		return err
	}
	defer writer.Close()
	clients := scaled(10000)
	read := func(i int) []string {
		r := []string{"MGET"}
		for j := range each {
			r = append(r, key((i*each+j)%keys))
		}
		return r
	}
	notes := int64(clients * each)
	var g *crowd
	steps := []struct {
		name string
		f    func() error
	}{
		{"the keys are set", func() error { return setKeys(writer, keys, "v") }},
		{"the clients connect", func() (err error) {
			g, err = a.gather(clients, func(int) [][]string { return start() })
			return err
		}},
		{"they read", func() error { return g.ask(read) }},
		{"the keys change", func() error {
			if err := setKeys(writer, keys, "w"); err != nil {
				return err
			}
			return g.settled(&g.pushes, notes)
		}},
		{"they read again", func() error { return g.ask(read) }},
		{"the keys expire", func() error {
			err := writer.pipeline(keys, func(i int) []string { return []string{"PEXPIRE", key(i), "1000"} })
			if err != nil {
				return err
			}
			return g.settled(&g.pushes, 2*notes) // PEXPIRE changes a key; nobody has read it since
		}},
		{"they read what expires", func() error { return g.ask(read) }},
		{"it expires", func() error { time.Sleep(3 * time.Second); return nil }},
		{"they read what is not there", func() error { return g.ask(read) }},
		{"FLUSHALL", func() error {
			before := g.pushes.Load()
			if err := a.want(writer, "+OK", "FLUSHALL"); err != nil {
				return err
			}
			return g.settled(&g.pushes, before+int64(clients))
		}},
		{"they read, and all leave", func() error {
			if err := g.ask(read); err != nil {
				return err
			}
			g.leave()
			return a.alone(writer)
		}},
	}
	defer func() {
		if g != nil {
			g.leave()
		}
	}()
	for _, s := range steps {
		if err := a.step(s.name, s.f); err != nil {
			return err
		}
	}
	return nil
}

// alone waits until the server has only this client and the bystander.
func (a *attack) alone(c *conn) error {
	for range 600 {
		head, err := c.do("CLIENT", "LIST")
		if err != nil {
			return err
		}
		length, _, _ := strings.Cut(head[1:], " ")
		if n, _ := strconv.Atoi(length); n < 1200 { // each takes some 300 bytes
			return nil
		}
		time.Sleep(50 * time.Millisecond)
	}
	return errors.New("clients do not leave")
}

// broadcast has clients that want to know of all keys, and others that want their own ones.
func (a *attack) broadcast() error {
	writer, err := dial(a.server.address)
	if err != nil {
		return err
	}
	defer writer.Close()
	clients, keys := scaled(2000), scaled(20000)
	var g *crowd
	err = a.step("the clients connect", func() (err error) {
		g, err = a.gather(clients, func(i int) [][]string {
			if i%2 == 0 {
				return start("BCAST")
			}
			return start("BCAST", "NOLOOP", "PREFIX", "key:"+strconv.Itoa(i%10))
		})
		return err
	})
	if err != nil {
		return err
	}
	defer g.leave()
	for range 3 {
		err := a.step("the keys change", func() error {
			before := g.pushes.Load()
			if err := setKeys(writer, keys, "v"); err != nil {
				return err
			}
			return g.settled(&g.pushes, before+int64(clients/2))
		})
		if err != nil {
			return err
		}
	}
	err = a.step("FLUSHALL", func() error { return a.want(writer, "+OK", "FLUSHALL") })
	if err != nil {
		return err
	}
	return a.step("all leave", func() error { g.leave(); return a.alone(writer) })
}

// prefixes has clients with as many prefixes as they may have, and one that wants more.
func (a *attack) prefixes() error {
	c, err := dial(a.server.address)
	if err != nil {
		return err
	}
	defer c.Close()
	args := func(from, n int) []string {
		r := []string{"CLIENT", "TRACKING", "ON", "BCAST"}
		for i := range n {
			r = append(r, "PREFIX", fmt.Sprintf("%08d", (from+i)*7919%100000007))
		}
		return r
	}
	if *redis == "" {
		err := a.step("500,000 of one client", func() error { return a.want(c, "-ERR", args(0, 500000)...) })
		if err != nil {
			return err
		}
	}
	each := 20000 // with more, redis-server takes minutes
	var all []*conn
	defer func() {
		for _, c := range all {
			c.Close()
		}
	}()
	err = a.step(fmt.Sprintf("%d each of 50 clients", each), func() error {
		for i := range scaled(50) {
			x, err := dial(a.server.address)
			if err != nil {
				return err
			}
			all = append(all, x)
			x.do("HELLO", "3")
			if err := a.want(x, "+OK", args(i*each, each)...); err != nil {
				return err
			}
		}
		return nil
	})
	if err != nil {
		return err
	}
	err = a.step("keys change", func() error {
		return c.pipeline(10000, func(i int) []string { return []string{"SET", fmt.Sprintf("%08d", i*7919), "v"} })
	})
	if err != nil {
		return err
	}
	return a.step("the clients leave", func() error {
		for _, c := range all {
			c.Close()
		}
		return a.want(c, "+OK", "FLUSHALL")
	})
}

// deaf has clients that want to know of all keys, and do not read what they are told.
func (a *attack) deaf() error {
	writer, err := dial(a.server.address)
	if err != nil {
		return err
	}
	defer writer.Close()
	if err := a.want(writer, "+OK", "CLIENT", "NO-EVICT", "ON"); err != nil {
		return err
	}
	var all []*conn
	defer func() {
		for _, c := range all {
			c.Close()
		}
	}()
	for range 100 {
		c, err := dial(a.server.address)
		if err != nil {
			return err
		}
		all = append(all, c)
		for _, r := range start("BCAST") {
			if _, err := c.do(r...); err != nil {
				return err
			}
		}
	}
	for range 5 {
		if err := a.step("keys change", func() error { return setKeys(writer, scaled(50000), "v") }); err != nil {
			return err
		}
	}
	return a.step("FLUSHALL", func() error { return a.want(writer, "+OK", "FLUSHALL") })
}
