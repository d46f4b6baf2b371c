package rondo

import (
	"context"
	"log/slog"
)

// safely is the Logger's Handler, for the engine. The engine logs where its own state is
// half changed, on goroutines of its own, and about panics: one by the Handler is
// dropped, and with it what was to be logged.
type safely struct{ slog.Handler }

func (h safely) Enabled(ctx context.Context, level slog.Level) (enabled bool) {
	defer func() { _ = recover() }()
	return h.Handler.Enabled(ctx, level)
}

func (h safely) Handle(ctx context.Context, r slog.Record) error {
	defer func() { _ = recover() }()
	return h.Handler.Handle(ctx, r)
}

func (h safely) WithAttrs(attrs []slog.Attr) (with slog.Handler) {
	defer h.unless(&with)
	return safely{h.Handler.WithAttrs(attrs)}
}

func (h safely) WithGroup(name string) (with slog.Handler) {
	defer h.unless(&with)
	return safely{h.Handler.WithGroup(name)}
}

// unless is deferred: with is h unless the call returns.
func (h safely) unless(with *slog.Handler) {
	if recover() != nil {
		*with = h
	}
}
