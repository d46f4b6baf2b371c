package main

import (
	"context"
	"log/slog"
	"os"
	"os/signal"
	"syscall"
	"time"
)

// notify begins to catch the signals that stop the program. Call it before the
// program reports that it is ready.
func notify() <-chan os.Signal {
	signals := make(chan os.Signal, 2)
	signal.Notify(signals, os.Interrupt, syscall.SIGTERM)
	return signals
}

// wait waits for a signal and then shuts down. Clients have patience to read
// their pending output. A second signal ends the program at once.
func wait(signals <-chan os.Signal, log *slog.Logger, patience time.Duration, shutdown func(context.Context) error) error {
	sig := <-signals
	log.Info("stopping: a second signal ends the program at once", "signal", sig.String())
	go func() {
		<-signals
		os.Exit(1)
	}()
	ctx, cancel := context.WithTimeout(context.Background(), patience)
	defer cancel()
	if err := shutdown(ctx); err != nil {
		log.Warn("cut off clients that did not read their output in time", "error", err)
	}
	return nil
}
