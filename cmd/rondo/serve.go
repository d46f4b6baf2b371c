package main

import (
	"context"
	"log/slog"
	"os"
	"os/signal"
	"syscall"
	"time"
)

// notify begins to catch the signals that stop the program. It is called
// before the program says that it is ready.
func notify() <-chan os.Signal {
	signals := make(chan os.Signal, 2)
	signal.Notify(signals, os.Interrupt, syscall.SIGTERM)
	return signals
}

// wait waits for a signal and shuts down, for which it gives clients a time to
// take what they are owed; a second signal ends the program at once.
func wait(signals <-chan os.Signal, log *slog.Logger, patience time.Duration, shutdown func(context.Context) error) error {
	sig := <-signals
	log.Info("stopping; a second signal stops at once", "signal", sig.String())
	go func() {
		<-signals
		os.Exit(1)
	}()
	ctx, cancel := context.WithTimeout(context.Background(), patience)
	defer cancel()
	if err := shutdown(ctx); err != nil {
		log.Warn("clients that did not take their output were cut off", "error", err)
	}
	return nil
}
