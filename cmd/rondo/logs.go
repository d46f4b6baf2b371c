package main

import (
	"encoding"
	"encoding/json"
	"fmt"
	"io"
	"log/slog"
)

// newLogger makes the logger of --log-format.
func newLogger(to io.Writer, format string, level slog.Leveler) *slog.Logger {
	options := &slog.HandlerOptions{Level: level}
	var h slog.Handler = slog.NewTextHandler(to, options)
	if format == "json" {
		options.ReplaceAttr = asText
		h = slog.NewJSONHandler(to, options)
	}
	return slog.New(h)
}

// asText makes values in a JSON log the same texts as in a text log, where JSON would show the
// insides of a type: an address as an object, a panic's value as a failure to encode it. Numbers,
// times, durations (nanoseconds) and lists of strings stay.
func asText(_ []string, a slog.Attr) slog.Attr {
	if a.Value.Kind() != slog.KindAny {
		return a
	}
	switch v := a.Value.Any().(type) {
	case nil, error, json.Marshaler, encoding.TextMarshaler, []string:
	default:
		a.Value = slog.StringValue(fmt.Sprintf("%+v", v))
	}
	return a
}
