//go:build darwin || dragonfly || freebsd || netbsd || openbsd

package pick

import (
	"github.com/rondo-go/rondo/internal/backend/kqueue"
	"github.com/rondo-go/rondo/internal/backend/poll"
)

var builtin = []entry{{"kqueue", kqueue.New}, {"poll", poll.New}, portable}
