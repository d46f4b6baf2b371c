package main

import (
	"encoding/json"
	"log/slog"
	"net/http"
	"time"

	"github.com/rondo-go/rondo"
)

// metrics serves an engine's counts as JSON.
func metrics(e *rondo.Engine) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		json.NewEncoder(w).Encode(e.Stats())
	})
}

// report logs an engine's counts each time d has passed, until stop is closed.
func report(log *slog.Logger, e *rondo.Engine, d time.Duration, stop <-chan struct{}) {
	ticks := time.NewTicker(d)
	defer ticks.Stop()
	for {
		select {
		case <-stop:
			return
		case <-ticks.C:
			s := e.Stats()
			log.Info("chat", "open", s.Open, "accepted", s.Accepted, "in", s.BytesIn,
				"out", s.BytesOut, "panics", s.Panics, "tlsFailed", s.FiltersFailed)
		}
	}
}

// failures has the reason logged why TLS ended a connection: a handshake that failed, a
// stream that was cut off.
func failures(log *slog.Logger) *rondo.Trace {
	return &rondo.Trace{FilterFailed: func(c *rondo.Conn, _ rondo.Filter, err error) {
		log.Info("TLS failed", "remote", c.RemoteAddr(), "error", err)
	}}
}
