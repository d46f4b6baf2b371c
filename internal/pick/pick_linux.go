package pick

import (
	"github.com/rondo-go/rondo/internal/backend/epoll"
	"github.com/rondo-go/rondo/internal/backend/poll"
)

var builtin = []entry{{"epoll", epoll.New}, {"poll", poll.New}, portable}
