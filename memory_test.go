package rondo_test

import (
	"bytes"
	"log/slog"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/rondo-go/rondo"
	"github.com/rondo-go/rondo/rondotest"
)

// TestShortageIsTold: the log tells once that buffers have reached their limit, however often
// connections are cut off, and once that it is over. New connections are refused meanwhile.
func TestShortageIsTold(t *testing.T) {
	n := rondotest.New(t, rondotest.Options{Seed: 1, Faults: rondotest.Faults{SlowClose: 1}})
	var log bytes.Buffer
	var limits []string
	e := n.Engine(&rondo.Engine{NumLoops: 1, MaxBufferBytes: 256 << 10, Logger: slog.New(slog.NewTextHandler(&log, nil)),
		Refuse: func(_ *rondo.Conn, limit string) { limits = append(limits, limit) }})
	n.Listen(e, "tcp", "192.0.2.1:80", func(*rondo.Conn) rondo.Handler {
		return rondo.HandlerFunc(func(*rondo.Conn, []byte) (int, error) { return 0, nil })
	})
	told := func(when string, begins, ends int) {
		t.Helper()
		b := strings.Count(log.String(), "have reached their limit")
		e := strings.Count(log.String(), "are below their limit again")
		if b != begins || e != ends {
			t.Errorf("%s: the beginning is told %d times, the end %d times:\n%s", when, b, e, &log)
		}
	}
	come := func(conns int) {
		for range conns {
			n.Dial("tcp", "192.0.2.1:80").Write(make([]byte, 10_000))
			n.Advance(time.Millisecond)
		}
	}
	come(10)
	n.Advance(time.Minute)
	told("with little", 0, 0)
	for range 20 {
		come(10)
		n.Advance(time.Second)
	}
	told("meanwhile", 1, 0)
	n.Advance(time.Minute)
	told("afterwards", 1, 1)
	come(30)
	n.Advance(time.Minute)
	told("again", 2, 2)
	if !slices.Contains(limits, "MaxBufferBytes") {
		t.Errorf("nobody was refused: %q", limits)
	}
}
