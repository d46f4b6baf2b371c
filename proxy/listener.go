package proxy

import (
	"errors"
	"os"
	"strings"
	"sync/atomic"

	"github.com/rondo-go/rondo"
	"github.com/rondo-go/rondo/internal/bridge"
)

// A listener is a Listener that listens.
type listener struct {
	server   *Server
	settings Listener          // as Apply first got it
	all      []*rondo.Listener // several, if the sockets of another process are several
	passed   bool              // by another process
	path     string            // to remove at the end: of a unix socket that was passed
	rules    atomic.Pointer[rules]

	// Counters; see ListenerStats.
	open           atomic.Int64
	total, refused atomic.Uint64
}

var errListenerFull = errors.New("proxy: the listener has as many connections as it may")

// accept is the OpenFunc of clients.
func (l *listener) accept(c *rondo.Conn) rondo.Handler {
	r := l.rules.Load()
	if n := l.open.Add(1); r.most > 0 && n > int64(r.most) {
		l.open.Add(-1)
		l.refused.Add(1)
		c.Abort(errListenerFull)
		return nil
	}
	l.total.Add(1)
	l.server.unserved.Add(1)
	s := &session{listener: l, loop: c.Loop(), client: c, search: new(search)}
	s.began = s.now()
	if r.accept != nil {
		c.Use(func(*rondo.Conn) rondo.Handler { s.start(l.rules.Load()); return s }, r.accept)
	} else {
		s.start(r)
	}
	return s
}

// listen opens the listener, or takes the sockets that another process has passed.
func (l *listener) listen() error {
	s, set := l.server, &l.settings
	passed := s.passed.take(set.key())
	if len(passed) == 0 {
		ln, err := s.open(set, l.accept)
		if err == nil {
			l.all = append(l.all, ln)
		}
		return err
	}
	for i, nl := range passed {
		ln, err := s.Engine.AttachListener(nl, set.Socket, l.accept)
		if err != nil {
			for _, rest := range passed[i+1:] {
				rest.Close()
			}
			l.close()
			return err
		}
		l.all = append(l.all, ln)
	}
	l.passed = true
	return nil
}

// own makes the listener responsible for its file, when the process that made it has gone.
func (l *listener) own() {
	if set := &l.settings; l.passed && set.Network == "unix" && !strings.HasPrefix(set.Address, "@") {
		l.path = set.Address
	}
}

// close closes the listener.
func (l *listener) close() {
	if l.path != "" {
		os.Remove(l.path) // before it is closed: afterwards it may be somebody else's
	}
	for _, ln := range l.all {
		ln.Close()
	}
}

// pause stops accepting, until resume.
func (l *listener) pause() {
	for _, ln := range l.all {
		ln.Pause()
	}
}

func (l *listener) resume() {
	for _, ln := range l.all {
		ln.Resume()
	}
}

// files returns duplicates of the sockets.
func (l *listener) files() (files []*os.File, err error) {
	for _, ln := range l.all {
		more, err := bridge.ListenerOf(ln).Files()
		if err != nil {
			for _, f := range files {
				f.Close()
			}
			return nil, err
		}
		files = append(files, more...)
	}
	return files, nil
}
