//go:build darwin || dragonfly || freebsd || netbsd || openbsd

package pick

import (
	"github.com/rondo-go/rondo/internal/backend/kqueue"
	"github.com/rondo-go/rondo/internal/backend/poll"
)

var builtin = []entry{plain("kqueue", kqueue.New), plain("poll", poll.New), portable}

const best = "kqueue"
