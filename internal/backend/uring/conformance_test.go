//go:build linux

package uring_test

import (
	"testing"

	"github.com/rondo-go/rondo/internal/backend"
	"github.com/rondo-go/rondo/internal/backend/backendtest"
	"github.com/rondo-go/rondo/internal/backend/uring"
)

// TestSeamWithoutRoom runs the seam's suite with queues that are always full and
// buffers that are always used up; nothing may be lost. backendtest's own tests run the
// ordinary backend.
func TestSeamWithoutRoom(t *testing.T) {
	for name, c := range map[string]uring.Config{
		"OneBuffer":      {Submissions: 64, Completions: 128, Buffers: 1},
		"SmallQueues":    {Submissions: 2, Completions: 4, Buffers: 8},
		"Least":          {Submissions: 1, Completions: 2, Buffers: 1},
		"OldKernel":      {Submissions: 512, Completions: 4096, Buffers: 128, Unlimited: true, Forgetful: true},
		"OldKernelLeast": {Submissions: 1, Completions: 2, Buffers: 2, Unlimited: true, Forgetful: true},
	} {
		t.Run(name, func(t *testing.T) {
			backendtest.Seam(t, func(t testing.TB) backend.Backend {
				b, err := uring.Open(c)
				if err != nil {
					t.Fatal(err)
				}
				return b
			})
		})
	}
}
