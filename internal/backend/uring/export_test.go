//go:build linux

package uring

import "github.com/rondo-go/rondo/internal/backend"

// Config is config for tests of other packages' suites.
type Config struct {
	Submissions, Completions uint32
	Buffers                  int
	Unlimited                bool
}

// Open makes a backend that is smaller or older than New's.
func Open(c Config) (backend.Backend, error) {
	return open(config{c.Submissions, c.Completions, c.Buffers, c.Unlimited})
}

// Collected is how many completions wait for the next turn.
func Collected(b backend.Backend) int { return len(b.(*Backend).ring.later) }

// Buffers is how many buffers the kernel has had.
func Buffers(b backend.Backend) int { return b.(*Backend).bufs.made }
