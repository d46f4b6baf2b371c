package rondo_test

import (
	"net"
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

// slow is a backend that takes its time to adopt a connection.
type slow struct {
	backend.Backend
	begun chan<- bool
	end   <-chan bool
}

func (s slow) Adopt(h backend.Handle) (backend.File, error) {
	s.begun <- true
	<-s.end
	return s.Backend.Adopt(h)
}

// TestStillCountsAll: a listener is not still before its last connection counts as open.
func TestStillCountsAll(t *testing.T) {
	for _, name := range backends() {
		t.Run(name, func(t *testing.T) {
			open, _, err := pick.Find(name)
			if err != nil {
				t.Fatal(err)
			}
			begun, end := make(chan bool, 1), make(chan bool)
			defer pick.Register("slow "+name, func() (backend.Backend, error) {
				b, err := open()
				return slow{b, begun, end}, err
			})()
			e := &rondo.Engine{Backend: "slow " + name, NumLoops: 2}
			defer e.Close()
			ln, err := e.Listen("tcp", "127.0.0.1:0", rondo.SocketOptions{}, testkit.Echo)
			if err != nil {
				t.Fatal(err)
			}
			nc, err := net.Dial("tcp", ln.Addr().String())
			if err != nil {
				t.Fatal(err)
			}
			defer nc.Close()
			<-begun // by the loop that does not listen
			ln.Pause()
			time.AfterFunc(50*time.Millisecond, func() { close(end) })
			testkit.Until(t, "it is still", bridge.ListenerOf(ln).IsStill)
			if n := e.Stats().Open; n != 1 {
				t.Errorf("%d connections are open, want 1", n)
			}
		})
	}
}
