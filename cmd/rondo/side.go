package main

import (
	"errors"
	"log/slog"
	"net/http"
	"syscall"
	"time"

	"github.com/rondo-go/rondo"
	"github.com/rondo-go/rondo/httpd"
)

// A side serves HTTP beside the clients, on a loop of its own. The methods of a nil side do
// nothing.
type side struct {
	engine *rondo.Engine
	listen func() error
	isLate bool // the old process of an upgrade has the address
	log    sideLog
}

// A sideLog logs that a side can be reached, or that after an upgrade it never will.
type sideLog struct {
	shown func(address string)
	never func(error)
}

// What a side may take of descriptors.
const (
	sideConns = 100
	sideFiles = sideConns + 4 // with its listener, and what its loop has
)

// openSide makes a side. If the old process of an upgrade has the address, later listens.
func (f *loopFlags) openSide(network, address string, h http.Handler, log *slog.Logger, say sideLog) (*side, error) {
	s := &side{engine: &rondo.Engine{NumLoops: 1, MaxConns: sideConns, Logger: log}, log: say}
	server := httpd.Server{HTTP: &http.Server{
		ReadHeaderTimeout: 10 * time.Second,
		ReadTimeout:       20 * time.Second,
		WriteTimeout:      time.Minute, // events and profiles, which last longer, set their own
		IdleTimeout:       time.Minute,
		MaxHeaderBytes:    16 << 10,
		Handler:           h,
	}}
	s.listen = func() error {
		ln, err := s.engine.Listen(network, address, rondo.SocketOptions{}, server.Open)
		if err == nil {
			say.shown(network + "://" + ln.Addr().String())
		}
		return err
	}
	err := s.listen()
	switch {
	case f.replaces && errors.Is(err, syscall.EADDRINUSE):
		s.isLate = true
	case err != nil:
		s.close()
		return nil, notServing(err)
	}
	return s, nil
}

// later listens when the old process has let go of the address.
func (s *side) later() {
	if s == nil || !s.isLate {
		return
	}
	err := s.listen()
	for end := time.Now().Add(oldTime); errors.Is(err, syscall.EADDRINUSE) && time.Now().Before(end); {
		time.Sleep(oldPause)
		err = s.listen()
	}
	if err != nil && !errors.Is(err, rondo.ErrClosed) {
		s.log.never(notServing(err))
	}
}

func (s *side) close() {
	if s != nil {
		s.engine.Close()
	}
}
