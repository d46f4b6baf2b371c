package rondo_test

import (
	"testing"

	"github.com/rondo-go/rondo"
	"github.com/rondo-go/rondo/internal/bridge"
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
