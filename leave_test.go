package rondo_test

import (
	"errors"
	"io"
	"net"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/rondo-go/rondo"
)

// A connection leaves, though other goroutines go on writing to it by Refs: neither
// writes that are refused nor such as are accepted keep it, and what was accepted is
// sent.
func TestDetachBesideRefWrites(t *testing.T) {
	for _, backend := range backends() {
		for _, size := range []int{1<<16 + 1, 100} { // more than MaxOutput, and little
			for range 20 {
				e := &rondo.Engine{NumLoops: 1, MaxOutput: 1 << 16, Backend: backend}
				opened := make(chan rondo.Ref, 1)
				c := connTo(t, e, func(c *rondo.Conn) rondo.Handler {
					setLimits(c, func(l *rondo.Limits) { l.MaxOutput = 1 << 30 }) // a slow peer is not cut off
					opened <- c.Ref()
					return &closes{}
				})
				detachBesideWrites(t, c, <-opened, make([]byte, size))
				e.Close()
			}
		}
	}
}

func detachBesideWrites(t *testing.T, c net.Conn, ref rondo.Ref, p []byte) {
	t.Helper()
	received := make(chan int64, 1)
	go func() {
		n, _ := io.Copy(io.Discard, c)
		received <- n
	}()
	var accepted atomic.Int64
	var writers sync.WaitGroup
	for range 2 {
		writers.Add(1)
		go func() {
			defer writers.Done()
			for {
				switch err := ref.Write(p); {
				case err == nil:
					accepted.Add(int64(len(p)))
				case errors.Is(err, rondo.ErrClosed):
					return
				}
			}
		}()
	}
	left := make(chan error, 1)
	ref.Do(func(c *rondo.Conn) {
		c.Detach(func(nc net.Conn, err error) {
			if nc != nil {
				nc.Close()
			}
			left <- err
		})
	})
	select {
	case err := <-left:
		if err != nil {
			t.Error(err)
		}
	case <-time.After(30 * time.Second):
		t.Fatalf("the connection does not leave beside writes of %d bytes", len(p))
	}
	writers.Wait()
	if n := <-received; n != accepted.Load() {
		t.Errorf("the peer got %d bytes of %d that Ref.Write accepted", n, accepted.Load())
	}
}
