//go:build unix && !linux

package sys

import "errors"

// A Pipe is Linux's: see pipe_linux.go.
type Pipe struct{}

// NewPipe fails: the system has no splice(2).
func NewPipe() (*Pipe, error) { return nil, errors.ErrUnsupported }

// Fill does nothing.
func (*Pipe) Fill(fd, n int) (int, error) { return 0, nil }

// Send does nothing.
func (*Pipe) Send(fd, n int) (int, error) { return 0, nil }

// Read does nothing.
func (*Pipe) Read([]byte) int { return 0 }

// Close does nothing.
func (*Pipe) Close() {}
