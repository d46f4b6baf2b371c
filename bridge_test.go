package rondo_test

import (
	"net"
	"slices"
	"sync/atomic"
	"testing"
	"time"

	"github.com/rondo-go/rondo"
	"github.com/rondo-go/rondo/internal/backend"
	"github.com/rondo-go/rondo/internal/bridge"
	"github.com/rondo-go/rondo/internal/pick"
	"github.com/rondo-go/rondo/internal/testkit"
)

// lookalike is a user's Handler with methods of the names that package bridge has.
type lookalike struct{ rondo.HandlerFunc }

func (lookalike) Paused()    {}
func (lookalike) Ending()    {}
func (lookalike) Closing()   {}
func (lookalike) Replaced()  {}
func (lookalike) Installed() {}

// TestNoneOfOurs: no type of a user's is taken for one of ours by the names of its methods.
func TestNoneOfOurs(t *testing.T) {
	var h rondo.Handler = lookalike{}
	if _, ok := h.(bridge.Pauser); ok {
		t.Error("it is a Pauser")
	}
	if _, ok := h.(bridge.Ender); ok {
		t.Error("it is an Ender")
	}
	if _, ok := h.(bridge.Keeper); ok {
		t.Error("it is a Keeper")
	}
	var ours any = struct {
		bridge.Ours
		lookalike
	}{}
	if _, ok := ours.(bridge.Keeper); !ok {
		t.Error("one of ours is no Keeper")
	}
}

// TestBridgesCostNothing: to ask for a bridge allocates nothing.
func TestBridgesCostNothing(t *testing.T) {
	allocs := make(chan float64, 1)
	connTo(t, &rondo.Engine{NumLoops: 1}, func(c *rondo.Conn) rondo.Handler {
		allocs <- testing.AllocsPerRun(100, func() {
			if bridge.Of(c).Loop() != bridge.LoopOf(c.Loop()) {
				t.Error("the loop is another one")
			}
		})
		return nil
	})
	if n := <-allocs; n != 0 {
		t.Errorf("it makes %v allocations", n)
	}
}

// slow is a backend that takes its time to adopt a connection: the last one of some.
type slow struct {
	backend.Backend
	until *atomic.Int32
	begun chan<- bool
	end   <-chan bool
}

func (s slow) Adopt(h backend.Handle) (backend.File, error) {
	if s.until.Add(-1) == 0 {
		s.begun <- true
		<-s.end
	}
	return s.Backend.Adopt(h)
}

// leaver is a Handler that takes its time to hear that its connection has left.
type leaver struct {
	rondo.HandlerFunc
	begun chan<- bool
	end   <-chan bool
}

func (l leaver) Closed(*rondo.Conn, error) {
	l.begun <- true
	<-l.end
}

// TestStillCountsAll: a listener is not still before its last connection is open on the loop that
// gets it, from the listener or by Move, and the connection counts all the time.
func TestStillCountsAll(t *testing.T) {
	for _, name := range backends() {
		for way, adopted := range map[string]int32{"accepted": 1, "arriving": 2, "leaving": 3} {
			t.Run(name+"/"+way, func(t *testing.T) {
				open, _, err := pick.Find(name)
				if err != nil {
					t.Fatal(err)
				}
				var until atomic.Int32
				until.Store(adopted)
				begun, end := make(chan bool, 1), make(chan bool)
				defer pick.Register("slow "+name, func() (backend.Backend, error) {
					b, err := open()
					return slow{b, &until, begun, end}, err
				})()
				e := &rondo.Engine{Backend: "slow " + name, NumLoops: 3}
				defer e.Close()
				ln, err := e.Listen("tcp", "127.0.0.1:0", rondo.SocketOptions{}, func(c *rondo.Conn) rondo.Handler {
					if way == "accepted" {
						return testkit.Echo(c)
					}
					if err := c.Move(slices.Collect(e.Loops())[2], testkit.Echo); err != nil {
						t.Error(err)
					}
					if way == "leaving" {
						return leaver{begun: begun, end: end}
					}
					return nil
				})
				if err != nil {
					t.Fatal(err)
				}
				nc, err := net.Dial("tcp", ln.Addr().String())
				if err != nil {
					t.Fatal(err)
				}
				defer nc.Close()
				<-begun // on a loop that does not listen
				if n := e.Stats().Open; n != 1 {
					t.Errorf("%d connections are open at first, want 1", n)
				}
				ln.Pause()
				var goesOn atomic.Bool
				time.AfterFunc(50*time.Millisecond, func() { goesOn.Store(true); close(end) })
				testkit.Until(t, "it is still", bridge.ListenerOf(ln).IsStill)
				if !goesOn.Load() {
					t.Error("it is still before the connection is open")
				}
				if n := e.Stats().Open; n != 1 {
					t.Errorf("%d connections are open, want 1", n)
				}
				testkit.Echoes(t, nc, "a")
			})
		}
	}
}
