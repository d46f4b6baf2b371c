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
	bad := map[string]func(l *rondo.Limits){
		"MaxInput is 0":   func(l *rondo.Limits) { l.MaxInput = 0 },
		"MaxInput is -1":  func(l *rondo.Limits) { l.MaxInput = -1 },
		"MaxOutput is 0":  func(l *rondo.Limits) { l.MaxOutput = 0 },
		"MaxOutput is -5": func(l *rondo.Limits) { l.MaxOutput = -5 },
		"HighWater is -1": func(l *rondo.Limits) { l.HighWater = -1 },
		"LowWater is -1":  func(l *rondo.Limits) { l.LowWater = -1 },
	}
	done := make(chan bool)
	connTo(t, &rondo.Engine{NumLoops: 1}, func(c *rondo.Conn) rondo.Handler {
		defer close(done)
		before := c.Limits()
		for want, set := range bad {
			if got := panicOf(func() { setLimits(c, set) }); !strings.Contains(got, "Conn.SetLimits: "+want) {
				t.Errorf("panicked with %q, want it to have %q", got, want)
			}
		}
		if c.Limits() != before {
			t.Errorf("the limits are %v, were %v", c.Limits(), before)
		}
		for _, want := range []rondo.Limits{
			{MaxInput: 1, MaxOutput: 1},
			{MaxInput: 1, MaxOutput: 2, HighWater: 10, LowWater: 5, ReadWhenFull: true},
		} {
			c.SetLimits(want)
			if c.Limits() != want {
				t.Errorf("the limits are %v, want %v", c.Limits(), want)
			}
		}
		c.SetLimits(rondo.Limits{MaxInput: 1, MaxOutput: 1, HighWater: 3, LowWater: 7})
		if low := c.Limits().LowWater; low != 3 {
			t.Errorf("LowWater is %d, want HighWater, 3", low)
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

// setLimits changes some of a connection's limits.
func setLimits(c *rondo.Conn, change func(*rondo.Limits)) {
	l := c.Limits()
	change(&l)
	c.SetLimits(l)
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
