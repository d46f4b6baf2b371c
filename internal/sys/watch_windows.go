package sys

import (
	"errors"
	"fmt"
)

// Watchable fails: Windows cannot poll descriptors.
func Watchable(int) (int, error) {
	return -1, fmt.Errorf("descriptors cannot be watched on Windows: %w", errors.ErrUnsupported)
}

// A PollSet does nothing on Windows.
type PollSet struct{}

func (*PollSet) Reset()                   {}
func (*PollSet) Add(fd int, in, out bool) {}
func (*PollSet) Wait() error              { return errors.ErrUnsupported }
func (*PollSet) Ready(int) (in, out bool) { return false, false }

// IsInternet returns false: it is for HungUp, which is false too.
func IsInternet(uintptr) bool { return false }

// HungUp returns false: Windows reports a reset to each call.
func HungUp(uintptr) bool { return false }

// Close fails: Watchable returns no descriptors.
func Close(int) error { return errors.ErrUnsupported }

// CloseShared is Close.
func CloseShared(fd int) error { return Close(fd) }

// A Waker does nothing on Windows.
type Waker struct{}

// NewWaker fails.
func NewWaker() (*Waker, error) { return nil, errors.ErrUnsupported }

func (*Waker) FD() int { return -1 }
func (*Waker) Wake()   {}
func (*Waker) Drain()  {}
func (*Waker) Close()  {}
