package watchdog

import (
	"fmt"
	"log/slog"

	"github.com/rondo-go/rondo/internal/bridge"
)

// logTo returns a function that logs reports, to the engine's Logger if logger is nil.
func logTo(logger *slog.Logger, wire bridge.Loop) func(Report) {
	return func(r Report) {
		log := logger
		if log == nil {
			log = wire.Log()
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
}
