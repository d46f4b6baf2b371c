package main

import (
	"context"
	"log/slog"
	"net"
	"os"

	"github.com/rondo-go/rondo/internal/upgrade"
)

// An engineServer is what servers have in common that listen on an engine, and that another
// process can take over.
type engineServer struct {
	*upgrade.Server
	flags    *upgradeFlags
	loops    *loopFlags
	log      *slog.Logger
	shutdown func(context.Context) error // at a signal
	stayer   stayer                      // behind an upgrade
	refuses  bool                        // to be upgraded

	signals, upgrades <-chan os.Signal
	control           *controller
}

// listen listens on every endpoint, and returns the actual addresses; or it takes the place of
// another process. It catches signals from now on. After an error the engine is closed.
func (s *engineServer) listen(endpoints []endpoint, on func(network, address string, already net.Listener) (net.Addr, error)) ([]string, error) {
	s.signals, s.upgrades = notify(), notifyUpgrade()
	var addrs []string
	var err error
	// What can fail comes first: later, connections may be here that have no other process.
	if s.control, err = s.flags.control(s, s.log); err == nil {
		if addrs, err = s.begin(endpoints, on); err == nil {
			go s.loops.admin.later()
			s.flags.takePidfile(s.loops.Pidfile, s.log)
			if s.refuses {
				go s.refuse()
			} else {
				s.control.wait(s.upgrades)
			}
			return addrs, nil
		}
		s.control.close()
	}
	s.Engine.Close()
	return nil, err
}

func (s *engineServer) begin(endpoints []endpoint, on func(network, address string, already net.Listener) (net.Addr, error)) ([]string, error) {
	old, err := s.flags.old()
	if err != nil {
		return nil, err
	}
	if old != nil {
		ctx, cancel := s.flags.inTime()
		defer cancel()
		if err := s.TakeOver(ctx, old); err != nil {
			return nil, err
		}
		defer s.Abandon()
	}
	// Clients may come at once at an address that the old process passes on, and would be lost if
	// another one cannot be had.
	addrs, err := listen(endpoints, s.log, func(e endpoint) bool { return s.HasPassed(e.network, e.address) }, on)
	if err != nil {
		return nil, err
	}
	if err := s.Receive(); err != nil {
		s.stayer.giveUp(s.Engine, s.log, s.signals)
		return nil, err
	}
	return addrs, nil
}

// refuse answers the signals for an upgrade.
func (s *engineServer) refuse() {
	for range s.upgrades {
		s.log.Warn("upgrade: refused, since the keys would be lost: --lose-keys allows it")
	}
}

// serve serves until a signal comes, or another process has taken over.
func (s *engineServer) serve() error {
	stopped := make(chan error, 1)
	go func() {
		stopped <- s.loops.serve(s.Engine, s.log, s.signals, func(ctx context.Context) error {
			s.control.close()
			s.Close()
			return s.shutdown(ctx)
		})
	}()
	select {
	case err := <-stopped:
		return err
	case <-s.control.handed:
	}
	s.loops.admin.close()
	s.control.ended(s.Engine, &s.stayer)
	return nil
}

// stayOn is the stayer's function of a server whose connections end when their clients want. busy
// tells of work beside them, unless it is nil.
func (s *engineServer) stayOn(busy func() bool) func(context.Context) error {
	return func(ctx context.Context) error {
		if err := s.Stay(ctx, busy); err != nil {
			s.Engine.Close()
			return err
		}
		return s.Engine.Shutdown(ctx)
	}
}
