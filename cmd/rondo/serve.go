package main

import (
	"context"
	"fmt"
	"log/slog"
	"net"
	"os"
	"os/signal"
	"syscall"
	"time"

	"github.com/rondo-go/rondo"
	"github.com/rondo-go/rondo/internal/sys"
	"github.com/rondo-go/rondo/watchdog"
)

// notify begins to catch the signals that stop the program. Call it before the
// program reports that it is ready.
func notify() <-chan os.Signal {
	signals := make(chan os.Signal, 2)
	signal.Notify(signals, os.Interrupt, syscall.SIGTERM)
	return signals
}

// startTime is when the program has done what it does only once.
const startTime = 200 * time.Millisecond

// listenOn listens on an address, or on a socket that listens there already.
func listenOn(e *rondo.Engine, network, address string, already net.Listener, open rondo.OpenFunc) (*rondo.Listener, error) {
	if already != nil {
		return e.AttachListener(already, rondo.SocketOptions{}, open)
	}
	return e.Listen(network, address, rondo.SocketOptions{}, open)
}

// serve serves, with an engine that listens, until a signal, or SHUTDOWN. It tells the service manager, and
// the reader of --pidfile, when that begins and ends, and reports slow callbacks.
func (f *loopFlags) serve(e *rondo.Engine, log *slog.Logger, signals <-chan os.Signal, shutdown func(context.Context) error) error {
	// Where that is not possible, more memory is resident, and that is all.
	defer time.AfterFunc(startTime, func() { _ = sys.ForgetCode() }).Stop()
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
	f.untilAsked(signals, log)
	return end(e, log, time.Duration(f.ShutdownTimeout), shutdown)
}

// untilAsked waits for a signal, or for a client that calls SHUTDOWN. From then on a further signal
// ends the program at once; but the first one behind SHUTDOWN does not, since service managers send
// that to a program that is about to end.
func (f *loopFlags) untilAsked(signals <-chan os.Signal, log *slog.Logger) {
	more := 1
	select {
	case sig := <-signals:
		systemd.stopping()
		log.Info("stopping: a second signal ends the program at once", "signal", sig.String())
	case <-f.asked:
		systemd.stopping()
		log.Info("stopping: a client has called SHUTDOWN")
		more = 2
	}
	go func() {
		for range more {
			<-signals
		}
		pid.remove()
		os.Exit(1)
	}()
}

// end shuts down. Clients have patience to read their pending output.
func end(e *rondo.Engine, log *slog.Logger, patience time.Duration, shutdown func(context.Context) error) error {
	ctx, cancel := context.WithTimeout(context.Background(), patience)
	defer cancel()
	done := make(chan struct{})
	defer close(done)
	go tellWaiting(e, log, done)
	if err := shutdown(ctx); err != nil {
		log.Warn("cut off clients that did not read their output in time", "error", err)
	}
	return nil
}

// tellPause is the time between two lines about the clients for whom the program waits.
const tellPause = time.Second

// tellWaiting logs, until done is closed, for how many clients the end of the program waits, and
// which of them has the most output to read.
func tellWaiting(e *rondo.Engine, log *slog.Logger, done <-chan struct{}) {
	ticks := time.NewTicker(tellPause)
	defer ticks.Stop()
	for {
		select {
		case <-done:
			return
		case <-ticks.C:
		}
		if all := e.Stats().Open; all > 0 {
			most := mostUnsent(e, done)
			log.Info("stopping: waiting for clients", "clients", all, "remote", most.remote, "unsent", most.bytes)
		}
	}
}

// unread is a client and how many bytes wait for it.
type unread struct {
	remote string
	bytes  int
}

// mostUnsent returns a client for whom the most bytes wait. A loop that is blocked is left out.
func mostUnsent(e *rondo.Engine, done <-chan struct{}) (most unread) {
	found := make(chan unread, len(e.Stats().Loops))
	asked := 0
	for l := range e.Loops() {
		err := l.Post(func() {
			var of unread
			for c := range l.Conns() {
				if n := c.Buffered(); of.remote == "" || n > of.bytes {
					of = unread{fmt.Sprint(c.RemoteAddr()), n}
				}
			}
			found <- of
		})
		if err == nil { // otherwise it has ended
			asked++
		}
	}
	for late := time.After(tellPause / 2); asked > 0; asked-- {
		select {
		case of := <-found:
			if most.remote == "" || of.bytes > most.bytes {
				most = of
			}
		case <-late:
			return most
		case <-done:
			return most
		}
	}
	return most
}
