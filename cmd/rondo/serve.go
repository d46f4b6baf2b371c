package main

import (
	"context"
	"log/slog"
	"net"
	"os"
	"os/signal"
	"syscall"
	"time"

	"github.com/rondo-go/rondo"
	"github.com/rondo-go/rondo/watchdog"
)

// notify begins to catch the signals that stop the program. Call it before the
// program reports that it is ready.
func notify() <-chan os.Signal {
	signals := make(chan os.Signal, 2)
	signal.Notify(signals, os.Interrupt, syscall.SIGTERM)
	return signals
}

// listenOn listens on an address, or on a socket that listens there already.
func listenOn(e *rondo.Engine, network, address string, already net.Listener, open rondo.OpenFunc) (*rondo.Listener, error) {
	if already != nil {
		return e.AttachListener(already, rondo.SocketOptions{}, open)
	}
	return e.Listen(network, address, rondo.SocketOptions{}, open)
}

// serve serves, with an engine that listens, until a signal. It tells the service manager, and
// the reader of --pidfile, when that begins and ends, and reports slow callbacks.
func (f *loopFlags) serve(e *rondo.Engine, log *slog.Logger, signals <-chan os.Signal, shutdown func(context.Context) error) error {
	if err := pid.write(); err != nil {
		if !f.replaces {
			return err
		}
		log.Warn("upgrade: the pidfile does not name this process", "error", err) // whose connections must not end for that
	}
	if f.SlowCallback > 0 {
		w, err := watchdog.Watch(e, watchdog.Options{Slow: time.Duration(f.SlowCallback), Report: f.report})
		if err != nil {
			return err
		}
		defer w.Stop()
	}
	systemd.ready(e, log)
	return wait(signals, log, time.Duration(f.ShutdownTimeout), shutdown)
}

// wait waits for a signal and then shuts down. Clients have patience to read
// their pending output. A second signal ends the program at once.
func wait(signals <-chan os.Signal, log *slog.Logger, patience time.Duration, shutdown func(context.Context) error) error {
	sig := <-signals
	systemd.stopping()
	log.Info("stopping: a second signal ends the program at once", "signal", sig.String())
	go func() {
		<-signals
		pid.remove()
		os.Exit(1)
	}()
	ctx, cancel := context.WithTimeout(context.Background(), patience)
	defer cancel()
	if err := shutdown(ctx); err != nil {
		log.Warn("cut off clients that did not read their output in time", "error", err)
	}
	return nil
}
