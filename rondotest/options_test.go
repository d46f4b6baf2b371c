package rondotest

import (
	"math"
	"strings"
	"testing"
	"time"

	"github.com/rondo-go/rondo"
)

// Meaningless Options fail the test, with the field's name.
func TestOptionsThatMeanNothing(t *testing.T) {
	for want, o := range map[string]Options{
		"Options.MinLatency and MaxLatency are -1ns and 0s: want 0 or more":   {MinLatency: -1},
		"Options.MinLatency is 2s: want no more than MaxLatency, which is 1s": {MinLatency: 2 * time.Second, MaxLatency: time.Second},
		"Options.Fragment is 1.5: want a probability":                         {Fragment: 1.5},
		"Options.Fragment is NaN: want a probability":                         {Fragment: math.NaN()},
		"Options.Buffer is -1: want 0, for 64 KiB, or more":                   {Buffer: -1},
		"Options.Faults.Reset is -0.5: want a probability, from 0 to 1":       {Faults: Faults{Reset: -0.5}},
		"Options.Faults.Disorder is 7: want a probability, from 0 to 1":       {Faults: Faults{Disorder: 7}},
		"Options.Faults.ShortRead is NaN: want a probability, from 0 to 1":    {Faults: Faults{ShortRead: math.NaN()}},
	} {
		tb := &fakeTB{TB: t}
		log := tb.run(func() { New(tb, o) })
		if !tb.failed || !strings.Contains(log, "rondotest: "+want) {
			t.Errorf("failed: %v, logged %q, want %q", tb.failed, log, want)
		}
	}
	New(t, Options{MinLatency: time.Second, Fragment: -1, Faults: Harmless(1)})
}

// An engine for "uring" works on the simulated network, with its receive buffers.
func TestEngineWithReceiveBuffers(t *testing.T) {
	n := New(t, Options{})
	n.Listen(n.Engine(&rondo.Engine{Backend: "uring", ReceiveBuffers: 64}), "tcp", ":7", echo)
	c := n.Dial("tcp", "127.0.0.1:7")
	c.Send("hello")
	c.Expect("hello")
}
