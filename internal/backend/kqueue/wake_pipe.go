//go:build netbsd || openbsd

package kqueue

import (
	"github.com/rondo-go/rondo/internal/backend/readiness"
	"github.com/rondo-go/rondo/internal/sys"
)

// wakeable gives p a pipe to wake it. OpenBSD has no user events; NetBSD has them since
// version 10, but x/sys/unix does not support them.
func wakeable(p *poller, _ int) error {
	w, err := sys.NewWaker()
	if err != nil {
		return err
	}
	p.waker = w
	return p.Watch(w.FD(), 0, 0, readiness.In)
}
