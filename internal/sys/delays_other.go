//go:build !linux

package sys

import "time"

// Delays measures how long the machine keeps threads of this process from running. Here the
// system does not say.
type Delays struct{}

// NewDelays begins to measure.
func NewDelays() *Delays { return &Delays{} }

// Longest returns 0: nothing is known.
func (d *Delays) Longest() time.Duration { return 0 }
