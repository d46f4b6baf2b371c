//go:build unix && !linux

package pick

import "github.com/rondo-go/rondo/internal/backend/poll"

var builtin = []entry{{"poll", poll.New}, portable}
