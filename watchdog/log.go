package watchdog

import (
	"fmt"
	"log/slog"

	"github.com/rondo-go/rondo/internal/bridge"
)

// Log logs the report, to the engine's Logger if logger is nil. It is what Watch does with
// reports if Options.Report is nil. A Report function that has another use for them calls it.
func (r Report) Log(logger *slog.Logger) {
	log := logger
	if log == nil {
		log = bridge.LoopOf(r.Loop).Log()
	}
	log = log.With("loop", r.Loop.ID())
	if r.Remote.IsValid() {
		log = log.With("remote", r.Remote)
	}
	if r.Func != "" {
		log = log.With("in", fmt.Sprintf("%s (%s:%d)", r.Func, r.File, r.Line))
	}
	if r.Over {
		log.Warn("watchdog: the callback that blocked its loop is over", "took", r.For)
		return
	}
	if r.Delayed > 0 {
		log = log.With("delayed", r.Delayed)
	}
	if r.Unreported > 0 {
		log = log.With("unreported", r.Unreported)
	}
	log.Warn("watchdog: a callback blocks its loop", "for", r.For, "state", r.State, "advice", r.Advice, "stack", string(r.Stack))
}
