package netconn_test

import (
	"crypto/sha256"
	"errors"
	"hash"
	"io"
	"math/rand/v2"
	"net"
	"os"
	"sync"
	"testing"
	"time"

	"github.com/rondo-go/rondo"
	"github.com/rondo-go/rondo/rondotest"

	"github.com/rondo-go/rondo/netconn"
)

// pump writes size bytes in pieces of any size, with deadlines that pass in the middle of
// Writes, and then ends the stream.
func pump(c halfCloser, r *rand.Rand, size int, sum hash.Hash) error {
	for left := size; left > 0; {
		p := pattern(min(left, 1+r.IntN(1<<r.IntN(19))))
		sum.Write(p)
		left -= len(p)
		for len(p) > 0 {
			if r.IntN(8) == 0 {
				c.SetWriteDeadline(time.Now().Add(time.Duration(r.IntN(int(time.Millisecond)))))
			}
			n, err := c.Write(p)
			p = p[n:]
			if errors.Is(err, os.ErrDeadlineExceeded) {
				c.SetWriteDeadline(time.Time{})
			} else if err != nil {
				return err
			}
		}
		if r.IntN(20) == 0 {
			time.Sleep(time.Duration(r.IntN(int(time.Millisecond))))
		}
	}
	return c.CloseWrite()
}

// drain reads to the end likewise.
func drain(c halfCloser, r *rand.Rand, sum hash.Hash) (total int, err error) {
	for {
		if r.IntN(8) == 0 {
			c.SetReadDeadline(time.Now().Add(time.Duration(r.IntN(int(time.Millisecond)))))
		}
		p := make([]byte, 1+r.IntN(1<<r.IntN(19)))
		n, err := c.Read(p)
		total += n
		sum.Write(p[:n])
		switch {
		case err == io.EOF:
			return total, nil
		case errors.Is(err, os.ErrDeadlineExceeded):
			c.SetReadDeadline(time.Time{})
		case err != nil:
			return total, err
		}
		if r.IntN(20) == 0 {
			time.Sleep(time.Duration(r.IntN(int(time.Millisecond))))
		}
	}
}

// exchange sends streams in both directions at once, and compares.
func exchange(t testing.TB, a, b halfCloser, seed uint64, size int) {
	var all sync.WaitGroup
	for i, ends := range [][2]halfCloser{{a, b}, {b, a}} {
		out, in := sha256.New(), sha256.New()
		var both sync.WaitGroup
		both.Add(2)
		go func() {
			defer both.Done()
			if err := pump(ends[0], rand.New(rand.NewPCG(seed, uint64(i))), size, out); err != nil {
				t.Errorf("seed %d: write: %v", seed, err)
			}
		}()
		go func() {
			defer both.Done()
			if n, err := drain(ends[1], rand.New(rand.NewPCG(seed, uint64(i+2))), in); err != nil || n != size {
				t.Errorf("seed %d: read %d of %d: %v", seed, n, size, err)
			}
		}()
		all.Add(1)
		go func() {
			defer all.Done()
			both.Wait()
			if string(out.Sum(nil)) != string(in.Sum(nil)) {
				t.Errorf("seed %d: the streams differ", seed)
			}
		}()
	}
	all.Wait()
}

// TestAnySplit: whatever the sizes of Writes and Reads, and whenever deadlines pass, no byte
// is lost, doubled or moved.
func TestAnySplit(t *testing.T) {
	everywhere(t, func(t *testing.T, e *rondo.Engine, k kind) {
		for range 2 {
			a, b := pair(t, e, k)
			within(t, "an exchange", func() { exchange(t, a, b, rand.Uint64(), 2<<20) })
			must(t, a.Close())
			must(t, b.Close())
		}
		eventually(t, "all are gone", func() bool { return e.Stats().Open == 0 })
	})
}

// TestConcurrentClose closes at any time what others use.
func TestConcurrentClose(t *testing.T) {
	everywhere(t, func(t *testing.T, e *rondo.Engine, k kind) {
		for range 8 {
			a, b := pair(t, e, k)
			var all sync.WaitGroup
			for _, c := range []*netconn.Conn{a, b} {
				for _, f := range []func() error{
					func() error { _, err := c.Read(make([]byte, 1000)); return err },
					func() error { _, err := c.Write(make([]byte, 100_000)); return err },
					func() error { return c.SetDeadline(time.Now().Add(time.Second)) },
				} {
					all.Add(1)
					go func() {
						defer all.Done()
						for f() == nil {
						}
					}()
				}
			}
			time.Sleep(time.Duration(rand.IntN(int(3 * time.Millisecond))))
			a.Close()
			time.Sleep(time.Duration(rand.IntN(int(time.Millisecond))))
			b.Close()
			within(t, "a call of a closed connection", all.Wait)
		}
		eventually(t, "all are gone", func() bool { return e.Stats().Open == 0 })
	})
}

// simulate echoes through a netconn on a simulated network. The seed decides what is sent
// in pieces, and how much each Read and Write of the server has.
func simulate(tb testing.TB, seed uint64, size int) {
	r := rand.New(rand.NewPCG(seed, 1))
	n := rondotest.New(tb, rondotest.Options{Seed: seed, Buffer: 1 + r.IntN(1<<17), Faults: rondotest.Harmless(0.2)})
	defer n.Close()
	e := n.Engine(&rondo.Engine{NumLoops: 1 + r.IntN(2), HighWater: 1 + r.IntN(1<<17)})
	var ln *netconn.Listener
	var err error
	o := netconn.Options{ReadAhead: 1 + r.IntN(1<<16)}
	if r.IntN(2) == 0 {
		o.Filters = append(o.Filters, pass)
	}
	n.Await(func() { ln, err = netconn.Listen(e, "tcp", ":7", o) })
	must(tb, err)
	peer := n.Dial("tcp", "127.0.0.1:7")
	go func() {
		c, err := ln.Accept()
		if err != nil {
			return
		}
		buf := make([]byte, 1+r.IntN(1<<17))
		for {
			k, err := c.Read(buf)
			if err != nil {
				break
			}
			c.Write(buf[:k])
		}
		c.Close()
	}()
	want := pattern(size)
	got := make([]byte, 0, size)
	n.Await(func() {
		done := make(chan error)
		go func() {
			_, err := peer.Write(want)
			peer.CloseWrite()
			done <- err
		}()
		buf := make([]byte, 10_000)
		for {
			k, err := peer.Read(buf)
			got = append(got, buf[:k]...)
			if err != nil {
				if err != io.EOF {
					tb.Errorf("seed %d: read %v", seed, err)
				}
				break
			}
		}
		if err := <-done; err != nil {
			tb.Errorf("seed %d: write %v", seed, err)
		}
	})
	equal(tb, got, want)
}

func TestSimulated(t *testing.T) {
	for seed := range uint64(40) {
		simulate(t, seed+1, 1+int(seed)*5000)
	}
}

func FuzzSimulated(f *testing.F) {
	f.Add(uint64(1), uint16(1000))
	f.Fuzz(func(t *testing.T, seed uint64, size uint16) { simulate(t, max(1, seed), int(size)) })
}

var _ net.Conn = (*netconn.Conn)(nil)
