package rondo_test

import (
	"runtime"
	"testing"

	"github.com/rondo-go/rondo"
	"github.com/rondo-go/rondo/rondotest"
)

// A loop that has nothing to do keeps no memory of the connections that it had: a
// garbage collection takes its free buffers.
func TestAnIdleLoopKeepsNoBuffers(t *testing.T) {
	net := rondotest.New(t, rondotest.Options{Seed: 1})
	var h rondo.HandlerFunc = func(c *rondo.Conn, in []byte) (int, error) {
		_, err := c.Write(make([]byte, 300_000))
		return len(in), err
	}
	e := net.Engine(&rondo.Engine{NumLoops: 1})
	net.Listen(e, "tcp", "127.0.0.1:7", func(*rondo.Conn) rondo.Handler { return h })
	burst := func() {
		var conns []*rondotest.Conn
		for range 200 {
			c := net.Dial("tcp", "127.0.0.1:7")
			c.Send("x")
			conns = append(conns, c)
		}
		net.Run()
		for _, c := range conns {
			c.Close()
		}
		net.Run()
	}
	before := heap() // of other tests
	burst()
	if after := heap(); after > before+1<<20 {
		t.Errorf("%d bytes are left, %d before", after, before)
	}
	runtime.KeepAlive(e)
}

func heap() uint64 {
	runtime.GC()
	var m runtime.MemStats
	runtime.ReadMemStats(&m)
	return m.HeapAlloc
}
