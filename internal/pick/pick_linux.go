package pick

import (
	"github.com/rondo-go/rondo/internal/backend"
	"github.com/rondo-go/rondo/internal/backend/epoll"
	"github.com/rondo-go/rondo/internal/backend/poll"
	"github.com/rondo-go/rondo/internal/backend/uring"
)

var builtin = []entry{
	plain("epoll", epoll.New),
	{"uring", func(o Options) (backend.Backend, error) { return uring.New(o.ReceiveBuffers) }, true, true},
	plain("poll", poll.New),
	portable,
}

const best = "epoll"
