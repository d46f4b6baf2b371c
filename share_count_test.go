//go:build rondo_countshared && linux

package rondo_test

import (
	"net"
	"sync"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"github.com/rondo-go/rondo"
	"github.com/rondo-go/rondo/internal/share"
	"github.com/rondo-go/rondo/loopstats"
)

// countedMessages is how many messages each connection sends while the words are counted.
const countedMessages = 50

// countShared lets loops echo, and returns the lines that a loop has written to and another
// goroutine has used meanwhile, with the number of messages.
func countShared(t *testing.T, e *rondo.Engine, open rondo.OpenFunc, size int) (shared []share.Shared, messages int) {
	t.Helper()
	// Each loop keeps its thread, which names it also while one of its coroutines runs.
	e.LockThreads = true
	conns := startSharing(t, e, open)
	for _, c := range conns {
		sayTo(t, c, size) // queues and pools are as large as they get
	}
	loops, threads := map[int]int{}, sync.Mutex{}
	onEach(t, e, func(l *rondo.Loop) { loops[unix.Gettid()] = l.ID() })
	if len(loops) != sharingLoops {
		t.Fatalf("%d loops have %d threads", sharingLoops, len(loops))
	}
	const others = 1000 // goroutines that are no loop's
	stop := share.Watch(func() int {
		threads.Lock()
		defer threads.Unlock()
		if id, ok := loops[unix.Gettid()]; ok {
			return id
		}
		return others
	})
	var talking sync.WaitGroup
	for _, c := range conns {
		talking.Add(1)
		go func() {
			defer talking.Done()
			for range countedMessages {
				sayAll(t, c, size)
			}
		}()
	}
	talking.Wait()
	time.Sleep(10 * time.Millisecond) // the loops go to sleep
	shared, uses := stop()
	if uses == 0 {
		t.Error("nothing was counted")
	}
	return shared, countedMessages * len(conns)
}

// sayAll is sayTo for another goroutine than the test's.
func sayAll(t *testing.T, c net.Conn, n int) {
	go c.Write(make([]byte, n))
	for got, b := 0, make([]byte, n); got < n; {
		k, err := c.Read(b)
		if err != nil {
			t.Error(err)
			return
		}
		got += k
	}
}

// TestEchoWritesNothingShared: while all loops echo, none of them writes to a line of the caches
// that another goroutine uses.
func TestEchoWritesNothingShared(t *testing.T) {
	for _, backend := range loopBackends() {
		for name, open := range sharingEchoes {
			for limits, e := range map[string]*rondo.Engine{
				"plain":  {Backend: backend},
				"limits": {Backend: backend, MaxConns: 1000, MaxConnsPerAddr: 1000, MaxBufferBytes: 1 << 30},
				"spin":   {Backend: backend, Spin: 50 * time.Microsecond},
			} {
				t.Run(backend+"/"+name+"/"+limits, func(t *testing.T) {
					shared, messages := countShared(t, e, open, 64)
					for _, s := range shared {
						t.Errorf("of %d messages: %v", messages, s)
					}
				})
			}
		}
	}
}

// TestMeasuredEchoWritesNothingShared is the same while package loopstats measures.
func TestMeasuredEchoWritesNothingShared(t *testing.T) {
	for _, backend := range loopBackends() {
		e := &rondo.Engine{Backend: backend, NumLoops: sharingLoops}
		if err := e.Start(); err != nil {
			t.Fatal(err)
		}
		stop, err := loopstats.Measure(e)
		if err != nil {
			t.Fatal(err)
		}
		shared, messages := countShared(t, e, echo, 64)
		for _, s := range shared {
			t.Errorf("%s: of %d messages: %v", backend, messages, s)
		}
		stop()
	}
}

// TestSharedCounterIsCounted: a counter that all loops share is found, with each message.
func TestSharedCounterIsCounted(t *testing.T) {
	var count share.Int64
	shared, messages := countShared(t, &rondo.Engine{}, func(*rondo.Conn) rondo.Handler {
		return rondo.HandlerFunc(func(c *rondo.Conn, in []byte) (int, error) {
			count.Add(1)
			return c.Write(in)
		})
	}, 64)
	if len(shared) != 1 {
		t.Fatalf("%d lines are shared, want that of the counter: %v", len(shared), shared)
	}
	writes := 0
	for _, n := range shared[0].Writes {
		writes += n
	}
	if writes < messages {
		t.Errorf("%d messages have written %d times to a shared counter", messages, writes)
	}
}

// TestPostIsCounted: a post from a loop to another one is found.
func TestPostIsCounted(t *testing.T) {
	e := &rondo.Engine{NumLoops: sharingLoops}
	next := func(c *rondo.Conn) *rondo.Loop {
		for l := range e.Loops() {
			if l != c.Loop() {
				return l
			}
		}
		return nil
	}
	shared, _ := countShared(t, e, func(*rondo.Conn) rondo.Handler {
		return rondo.HandlerFunc(func(c *rondo.Conn, in []byte) (int, error) {
			if l := next(c); l != nil {
				l.Post(func() {})
			}
			return c.Write(in)
		})
	}, 64)
	if len(shared) == 0 {
		t.Error("loops post to each other, and no line is shared")
	}
}
