package rondo

import (
	"context"
	"log/slog"
	"net/netip"
	"slices"
	"strings"
	"testing"
)

// hearing is a slog.Handler that calls heard for each record.
type hearing struct {
	slog.Handler
	heard func(slog.Record)
}

func (h hearing) Enabled(context.Context, slog.Level) bool { return true }

func (h hearing) WithAttrs([]slog.Attr) slog.Handler { return h }

func (h hearing) Handle(_ context.Context, r slog.Record) error {
	h.heard(r)
	return nil
}

// TestRefusedAsTheEndIsTold: a loop that refuses a connection in the moment in which another one
// tells that nobody is refused any more tells of that connection, and counts it for itself.
func TestRefusedAsTheEndIsTold(t *testing.T) {
	one, _ := ticking()
	two, clock := ticking()
	var told []string
	e := &Engine{}
	e.Logger = slog.New(hearing{heard: func(r slog.Record) {
		told = append(told, r.Message)
		r.Attrs(func(a slog.Attr) bool {
			if a.Key == "refused" {
				told = append(told, a.String())
			}
			return true
		})
		if len(told) == 3 {
			two.tellRefused("MaxConns", netip.AddrPort{})
		}
	}})
	one.engine, two.engine = e, e
	const begins, ends = "rondo: a connection was refused, there are too many", "rondo: no connection is refused any more"

	one.tellRefused("MaxConns", netip.AddrPort{})
	two.tellRefused("MaxConns", netip.AddrPort{})
	end := clock.now.Add(2 * tellPause)
	one.timers.Expire(clock.now.Add(tellPause), timersPerTurn) // one more was refused
	one.timers.Expire(end, timersPerTurn)
	clock.turnAt(two, end.Add(tellPause))
	want := []string{begins, ends, "refused=2", begins, ends, "refused=1"}
	if !slices.Equal(told, want) {
		t.Errorf("the log has\n%s\nwant\n%s", strings.Join(told, "\n"), strings.Join(want, "\n"))
	}
}
