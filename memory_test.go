package rondo_test

import (
	"bytes"
	"fmt"
	"log/slog"
	"net"
	"regexp"
	"slices"
	"strconv"
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
	refused := 0
	for _, told := range regexp.MustCompile(`refused=(\d+)`).FindAllStringSubmatch(log.String(), -1) {
		n, _ := strconv.Atoi(told[1])
		refused += n
	}
	if refused != len(limits) {
		t.Errorf("the log tells of %d refused connections, want %d:\n%s", refused, len(limits), &log)
	}
}

// TestRefusalsAreTold: the log tells once that a limit of connections refuses some, however many,
// and once that this is over; likewise for each limit.
func TestRefusalsAreTold(t *testing.T) {
	for _, limit := range []string{"MaxConns", "MaxConnsPerAddr", "AcceptRate"} {
		n := rondotest.New(t, rondotest.Options{Seed: 1})
		var log bytes.Buffer
		e := &rondo.Engine{NumLoops: 2, Logger: slog.New(slog.NewTextHandler(&log, nil))}
		switch limit {
		case "MaxConns":
			e.MaxConns = 2
		case "MaxConnsPerAddr":
			e.MaxConnsPerAddr = 2
		default:
			e.AcceptRate = 2
		}
		n.Listen(n.Engine(e), "tcp", "192.0.2.1:80", echo)
		told := func(when string, begins, ends int) {
			t.Helper()
			b := strings.Count(log.String(), "refused, there are too many")
			e := strings.Count(log.String(), "no connection is refused any more")
			if b != begins || e != ends {
				t.Errorf("%s: %s: the beginning is told %d times, the end %d times:\n%s", limit, when, b, e, &log)
			}
		}
		come := func(conns int) {
			var all []net.Conn
			for range conns {
				all = append(all, n.Dial("tcp", "192.0.2.1:80"))
			}
			n.Advance(100 * time.Millisecond)
			for _, c := range all {
				c.Close()
			}
			n.Advance(100 * time.Millisecond)
		}
		come(2)
		n.Advance(time.Minute)
		told("with few", 0, 0)
		for range 10 {
			come(5)
			n.Advance(4 * time.Second)
		}
		told("meanwhile", 1, 0)
		n.Advance(time.Minute)
		told("afterwards", 1, 1)
		if want := fmt.Sprintf("limit=%s refused=%d", limit, e.Stats().Refused); !strings.Contains(log.String(), want) {
			t.Errorf("%s: want %s:\n%s", limit, want, &log)
		}
		come(3)
		n.Advance(time.Minute)
		told("again", 2, 2)
	}
}
