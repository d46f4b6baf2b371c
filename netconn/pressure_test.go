package netconn_test

import (
	"io"
	"net"
	"runtime"
	"sync"
	"testing"
	"time"

	"github.com/rondo-go/rondo"
	"github.com/rondo-go/rondo/internal/sys"
	"github.com/rondo-go/rondo/netconn"
)

// TestNobodyReads: of a peer that sends without end the loop takes no more than ReadAhead
// and one receive; then all of it can be read.
func TestNobodyReads(t *testing.T) {
	const size, most = 32 << 20, netconn.DefaultReadAhead + 72<<10
	onEach(t, func(t *testing.T, backend string) {
		e := engine(t, &rondo.Engine{Backend: backend, NumLoops: 1})
		c, peer := withPeer(t, e)
		want := pattern(size)
		sent := make(chan error, 1)
		go func() {
			_, err := peer.Write(want)
			sent <- err
		}()
		time.Sleep(100 * time.Millisecond)
		// The backend may have received one buffer more that the loop has not taken.
		if n := e.Stats().BytesIn; n > most+72<<10 {
			t.Errorf("the loop has taken %d bytes", n)
		}
		select {
		case err := <-sent:
			t.Fatalf("the peer has sent everything: %v", err)
		default:
		}
		c.SetDeadline(time.Now().Add(patience))
		got := make([]byte, size)
		_, err := io.ReadFull(c, got)
		must(t, err)
		equal(t, got, want)
		must(t, <-sent)
		if n := e.Stats().BytesIn; n == size && (backend == "epoll" || backend == "poll" || backend == "kqueue") {
			t.Error("no Read has read the socket by itself")
		}
	})
}

// TestIndependent: full output does not stop the reading.
func TestIndependent(t *testing.T) {
	everywhere(t, func(t *testing.T, e *rondo.Engine, k kind) {
		c, peer := pair(t, e, k)
		accepted := full(t, c)
		if accepted > 32<<20 {
			t.Errorf("%d bytes were accepted", accepted)
		}
		c.SetDeadline(time.Now().Add(patience))
		peer.SetDeadline(time.Now().Add(patience))
		want := pattern(4 << 20)
		go peer.Write(want)
		got := make([]byte, len(want))
		_, err := io.ReadFull(c, got)
		must(t, err)
		equal(t, got, want)
		_, err = io.CopyN(io.Discard, peer, int64(accepted))
		must(t, err)
		send(t, c, "and on it goes")
		expect(t, peer, "and on it goes")
	})
}

// TestSmallLimits: an engine with little HighWater and MaxOutput delivers all the same.
func TestSmallLimits(t *testing.T) {
	limits := []rondo.Engine{
		{HighWater: 1, LowWater: 1},
		{HighWater: 1000, LowWater: 10},
		{MaxOutput: 100},
		{MaxInput: 100, MaxOutput: 1 << 10, HighWater: 1 << 20, LowWater: 1 << 10},
	}
	onEach(t, func(t *testing.T, backend string) {
		for i := range limits {
			l := &limits[i]
			for _, k := range kinds() {
				e := engine(t, &rondo.Engine{Backend: backend, NumLoops: 1, MaxInput: l.MaxInput, MaxOutput: l.MaxOutput,
					HighWater: l.HighWater, LowWater: l.LowWater})
				if l.MaxOutput > 0 && k.name == "tls" {
					continue // what a handshake sends is longer
				}
				c, peer := pair(t, e, k)
				want := pattern(20 << 10)
				if l.HighWater == 1 {
					want = want[:500]
				}
				go func() {
					c.Write(want)
					c.CloseWrite()
				}()
				peer.SetDeadline(time.Now().Add(patience))
				got, err := io.ReadAll(peer)
				if err != nil {
					t.Fatalf("limits %d, %s: %v", i, k.name, err)
				}
				equal(t, got, want)
				e.Close()
			}
		}
	})
}

// TestByteByByte: one byte at a time, in both directions.
func TestByteByByte(t *testing.T) {
	everywhere(t, func(t *testing.T, e *rondo.Engine, k kind) {
		c, peer := pair(t, e, k)
		want := pattern(2000)
		var both sync.WaitGroup
		for _, ends := range [][2]net.Conn{{c, peer}, {peer, c}} {
			both.Add(2)
			go func() {
				defer both.Done()
				for i := range want {
					if n, err := ends[0].Write(want[i : i+1]); n != 1 || err != nil {
						t.Errorf("byte %d: %d, %v", i, n, err)
						return
					}
				}
			}()
			go func() {
				defer both.Done()
				b := make([]byte, 1)
				for i := range want {
					if n, err := ends[1].Read(b); n != 1 || err != nil || b[0] != want[i] {
						t.Errorf("byte %d: %d, %v, %d for %d", i, n, err, b[0], want[i])
						return
					}
				}
			}()
		}
		both.Wait()
	})
}

// TestMany: ten thousand connections, each echoed to; idle ones have no goroutine.
func TestMany(t *testing.T) {
	n := 10_000
	if testing.Short() || sys.Race {
		n = 1000
	}
	if limit, ok := sys.OpenFiles(); ok {
		n = min(n, int(limit)/2-200)
	}
	onEach(t, func(t *testing.T, backend string) {
		e := engine(t, &rondo.Engine{Backend: backend, NumLoops: 2})
		ln, err := netconn.Listen(e, "tcp", "127.0.0.1:0", netconn.Options{})
		must(t, err)
		accepted := make(chan net.Conn, n)
		go func() {
			for {
				c, err := ln.Accept()
				if err != nil {
					close(accepted)
					return
				}
				accepted <- c
			}
		}()
		before := runtime.NumGoroutine()
		d := netconn.Dialer{Engine: e}
		all := make([]net.Conn, n)
		slots := make(chan struct{}, 64)
		var dials sync.WaitGroup
		for i := range all {
			slots <- struct{}{}
			dials.Add(1)
			go func() {
				defer dials.Done()
				c, err := d.Dial("tcp", ln.Addr().String())
				if err != nil {
					t.Error(err)
				} else {
					all[i] = c
				}
				<-slots
			}()
		}
		dials.Wait()
		if t.Failed() {
			return
		}
		servers := make([]net.Conn, n)
		for i := range servers {
			servers[i] = <-accepted
		}
		if backend != "std" {
			if now := runtime.NumGoroutine(); now > before+20 {
				t.Errorf("%d goroutines more for %d idle connections", now-before, 2*n)
			}
		}
		for i, c := range all {
			c.SetDeadline(time.Now().Add(patience))
			send(t, c, string(rune('a'+i%26)))
		}
		b := make([]byte, 1)
		for _, s := range servers {
			s.SetDeadline(time.Now().Add(patience))
			if _, err := s.Read(b); err != nil {
				t.Fatal(err)
			}
			s.Write(b)
		}
		for i, c := range all {
			expect(t, c, string(rune('a'+i%26)))
			c.Close()
		}
		for _, s := range servers {
			s.Close()
		}
		must(t, ln.Close())
		eventually(t, "all are gone", func() bool { return e.Stats().Open == 0 })
	})
}
