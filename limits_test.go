package rondo_test

import (
	"fmt"
	"math"
	"strings"
	"testing"

	"github.com/rondo-go/rondo"
	"github.com/rondo-go/rondo/internal/bridge"
)

// TestLimitsThatMeanNothing: a limit by which a connection would be full for ever is
// refused where it is set, and changes nothing.
func TestLimitsThatMeanNothing(t *testing.T) {
	bad := map[string]func(c *rondo.Conn){
		"SetMaxInput: bytes is 0":    func(c *rondo.Conn) { c.SetMaxInput(0) },
		"SetMaxInput: bytes is -1":   func(c *rondo.Conn) { c.SetMaxInput(-1) },
		"SetMaxOutput: bytes is 0":   func(c *rondo.Conn) { c.SetMaxOutput(0) },
		"SetMaxOutput: bytes is -5":  func(c *rondo.Conn) { c.SetMaxOutput(-5) },
		"SetHighWater: high is -1":   func(c *rondo.Conn) { c.SetHighWater(-1, 0) },
		"SetHighWater: low is -1":    func(c *rondo.Conn) { c.SetHighWater(0, -1) },
		"SetLimits: MaxInput is 0":   func(c *rondo.Conn) { c.SetLimits(rondo.Limits{MaxOutput: 1}) },
		"SetLimits: MaxOutput is 0":  func(c *rondo.Conn) { c.SetLimits(rondo.Limits{MaxInput: 1}) },
		"SetLimits: HighWater is -1": func(c *rondo.Conn) { c.SetLimits(rondo.Limits{MaxInput: 1, MaxOutput: 1, HighWater: -1}) },
		"SetLimits: LowWater is -1":  func(c *rondo.Conn) { c.SetLimits(rondo.Limits{MaxInput: 1, MaxOutput: 1, LowWater: -1}) },
	}
	done := make(chan bool)
	connTo(t, &rondo.Engine{NumLoops: 1}, func(c *rondo.Conn) rondo.Handler {
		defer close(done)
		before := c.Limits()
		for want, set := range bad {
			if got := panicOf(func() { set(c) }); !strings.Contains(got, "Conn."+want) {
				t.Errorf("panicked with %q, want it to have %q", got, want)
			}
		}
		if c.Limits() != before {
			t.Errorf("the limits are %v, were %v", c.Limits(), before)
		}
		c.SetHighWater(0, 0)
		c.SetMaxInput(1)
		c.SetMaxOutput(1)
		if want := (rondo.Limits{MaxInput: 1, MaxOutput: 1}); c.Limits() != want {
			t.Errorf("the limits are %v, want %v", c.Limits(), want)
		}
		c.SetLimits(before)
		bridge.Of(c).NoOutputLimit()
		c.SetLimits(c.Limits()) // as who passes a connection on does
		if c.Limits().MaxOutput != math.MaxInt {
			t.Errorf("the limits are %v", c.Limits())
		}
		return echo(c)
	})
	<-done
}

// panicOf is what f panics with.
func panicOf(f func()) (text string) {
	defer func() { text = fmt.Sprint(recover()) }()
	f()
	return ""
}

// TestDoNothing: a Ref is given a function.
func TestDoNothing(t *testing.T) {
	var ref rondo.Ref
	if got := panicOf(func() { ref.Do(nil) }); !strings.Contains(got, "Ref.Do") {
		t.Errorf("panicked with %q", got)
	}
}
