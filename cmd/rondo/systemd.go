package main

import (
	"fmt"
	"log/slog"
	"os"
	"slices"
	"sync"
	"time"

	"github.com/coreos/go-systemd/v22/daemon"

	"github.com/rondo-go/rondo"
	"github.com/rondo-go/rondo/internal/sys"
)

// systemd tells the service manager about this process, if that started it and wants to know
// (NOTIFY_SOCKET): see sd_notify(3). Otherwise its methods do nothing.
var systemd manager

type manager struct {
	mu      sync.Mutex
	log     *slog.Logger
	serving bool // READY=1 was sent, and STOPPING=1 was not
	follows bool // this process replaces the one that was started; say so
	left    bool // another process has replaced this one
}

// ready says that the engine serves, and begins to answer systemd's watchdog.
func (m *manager) ready(e *rondo.Engine, log *slog.Logger) {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.log, m.serving = log, true
	if m.follows {
		m.send(fmt.Sprintf("MAINPID=%d\n%s", os.Getpid(), daemon.SdNotifyReady))
	} else {
		m.send(daemon.SdNotifyReady)
	}
	limit, err := daemon.SdWatchdogEnabled(false) // an upgrade passes the variables on
	switch {
	case err != nil:
		log.Warn("cannot answer systemd's watchdog", "error", err)
	case limit > 0:
		// Half of the limit, as sd_watchdog_enabled(3) recommends.
		pause := max(limit/2, time.Millisecond)
		go watch(slices.Collect(e.Loops()), time.NewTicker(pause).C, pause, log, m.alive)
	}
}

// follow makes ready say that this process is the service's main one now. The service needs
// NotifyAccess=all for that.
func (m *manager) follow() {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.follows = true
}

// leave says that another process has taken over, and nothing more from then on: the other one
// speaks for the service. It says so itself, but perhaps too late: when the main process of a
// service ends, systemd ends the others.
func (m *manager) leave(heir int) {
	m.mu.Lock()
	defer m.mu.Unlock()
	if m.serving && heir > 0 {
		m.send(fmt.Sprintf("MAINPID=%d", heir))
	}
	m.left = true
}

// stopping says that the server shuts down.
func (m *manager) stopping() {
	m.mu.Lock()
	defer m.mu.Unlock()
	if m.serving {
		m.send(daemon.SdNotifyStopping)
	}
	m.serving = false
}

// reload calls f, which reads files again, and says when it begins and ends.
func (m *manager) reload(f func()) {
	m.sendServing(fmt.Sprintf("%s\nMONOTONIC_USEC=%d", daemon.SdNotifyReloading, sys.Monotonic()))
	f()
	m.sendServing(daemon.SdNotifyReady)
}

func (m *manager) alive() {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.send(daemon.SdNotifyWatchdog)
}

// sendServing is send while the server serves. SIGHUP may come before and after.
func (m *manager) sendServing(state string) {
	m.mu.Lock()
	defer m.mu.Unlock()
	if m.serving {
		m.send(state)
	}
}

// send sends a message. The caller holds mu, so that messages go in their order.
func (m *manager) send(state string) {
	if m.left {
		return
	}
	if _, err := daemon.SdNotify(false, state); err != nil {
		m.log.Warn("cannot notify systemd", "error", err)
	}
}

// watch calls alive after each tick, once every loop has run a function. A loop that does not
// within the limit is told of, and alive is not called until it does.
func watch(loops []*rondo.Loop, ticks <-chan time.Time, limit time.Duration, log *slog.Logger, alive func()) {
	for range ticks {
		answers := make(chan int, len(loops))
		missing := make(map[int]bool)
		for _, l := range loops {
			if l.Post(func() { answers <- l.ID() }) == nil { // otherwise the loop has ended
				missing[l.ID()] = true
			}
		}
		for late := time.After(limit); len(missing) > 0; {
			select {
			case id := <-answers:
				delete(missing, id)
			case <-late:
				for id := range missing {
					log.Error("a loop does not answer: systemd's watchdog gets no sign of life", "loop", id, "for", limit)
				}
			}
		}
		alive()
	}
}
