package evio

import (
	"crypto/tls"
	"fmt"
	"io"
	"math/rand/v2"
	"net"
	"runtime"
	"sync"
	"testing"
	"time"
)

// Whatever peers do, beside whatever the program does, each connection has one Opened and
// one Closed or Detached, and Serve returns.
func TestHostilePeers(t *testing.T) {
	before := runtime.NumGoroutine()
	config, client := configs(0)
	for _, scheme := range []string{"tcp", "tcp-net"} {
		for _, translated := range []bool{false, true} {
			t.Run(fmt.Sprint(scheme, translated), func(t *testing.T) {
				events := randomEvents()
				if translated {
					events = Translate(events, func(id int, _ Info) bool { return id%3 > 0 }, secure(config))
				}
				w := serve(t, events, scheme+"://127.0.0.1:0")
				to := w.server.Addrs[0]
				var all sync.WaitGroup
				for range 8 {
					all.Add(1)
					go func() {
						defer all.Done()
						for range 20 {
							if c, err := net.Dial("tcp", to.String()); err == nil {
								misbehave(c.(*net.TCPConn), client)
							}
						}
					}()
				}
				for i := range 2000 {
					w.server.Wake(i % 200)
					if i%50 == 0 {
						w.server.Dial("tcp://"+to.String(), time.Duration(rand.IntN(3))*time.Millisecond)
					}
				}
				all.Wait()
				w.stop.Store(true)
				w.end()
				w.wantPairs()
			})
		}
	}
	for begin := time.Now(); runtime.NumGoroutine() > before+3; time.Sleep(10 * time.Millisecond) {
		if time.Since(begin) > patience {
			b := make([]byte, 1<<20)
			t.Fatalf("%d goroutines, %d before:\n%s", runtime.NumGoroutine(), before, b[:runtime.Stack(b, true)])
		}
	}
}

// randomEvents answer with random sizes and actions.
func randomEvents() Events {
	answer := func() ([]byte, Action) {
		var out []byte
		switch rand.IntN(10) {
		case 0:
			out = make([]byte, rand.IntN(4<<20))
		case 1, 2, 3:
			out = make([]byte, rand.IntN(20000))
		}
		switch rand.IntN(12) {
		case 0:
			return out, Close
		case 1:
			return out, Detach
		}
		return out, None
	}
	return Events{
		Opened: func(int, Info) ([]byte, Options, Action) {
			out, action := answer()
			return out, Options{ReuseInputBuffer: rand.IntN(2) == 0, TCPKeepAlive: time.Duration(rand.IntN(3)) * time.Second / 2}, action
		},
		Data:      func(_ int, in []byte) ([]byte, Action) { return answer() },
		Prewrite:  func(int, int) Action { return None },
		Postwrite: func(int, int, int) Action { return None },
		Detached: func(_ int, rwc io.ReadWriteCloser) Action {
			go func() {
				io.WriteString(rwc, "away")
				rwc.Close()
			}()
			return None
		},
	}
}

// misbehave is a random peer.
func misbehave(c *net.TCPConn, config *tls.Config) {
	defer c.Close()
	c.SetDeadline(time.Now().Add(time.Duration(1+rand.IntN(30)) * time.Millisecond))
	var rw io.ReadWriter = c
	if rand.IntN(3) > 0 {
		rw = tls.Client(c, config)
	}
	for range rand.IntN(6) {
		switch rand.IntN(8) {
		case 0:
			c.CloseWrite()
		case 1:
			c.SetLinger(0)
		case 2:
			c.CloseRead()
		case 3:
			c.Write([]byte{22, 3, 1, 0, 200, 1}) // the head of a handshake
		case 4, 5:
			rw.Write(make([]byte, rand.IntN(100000)))
		default:
			io.CopyN(io.Discard, rw, rand.Int64N(100000))
		}
	}
}
