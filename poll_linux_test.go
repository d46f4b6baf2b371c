package rondo_test

import (
	"os"
	"path/filepath"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"github.com/rondo-go/rondo"
)

// TestPollLinux: the descriptors that only Linux has, on every backend: what makes them
// readable is told, and once they were read there is silence.
func TestPollLinux(t *testing.T) {
	dir := t.TempDir()
	for what, open := range map[string]func(t *testing.T) (fd int, happen func()){
		"eventfd": func(t *testing.T) (int, func()) {
			fd := opened(t)(unix.Eventfd(0, unix.EFD_NONBLOCK|unix.EFD_CLOEXEC))
			return fd, func() { unix.Write(fd, []byte{1, 0, 0, 0, 0, 0, 0, 0}) }
		},
		"timerfd": func(t *testing.T) (int, func()) {
			fd := opened(t)(unix.TimerfdCreate(unix.CLOCK_MONOTONIC, unix.TFD_NONBLOCK|unix.TFD_CLOEXEC))
			return fd, func() {
				unix.TimerfdSettime(fd, 0, &unix.ItimerSpec{Value: unix.NsecToTimespec(int64(time.Millisecond))}, nil)
			}
		},
		"inotify": func(t *testing.T) (int, func()) {
			fd := opened(t)(unix.InotifyInit1(unix.IN_NONBLOCK | unix.IN_CLOEXEC))
			opened(t)(unix.InotifyAddWatch(fd, dir, unix.IN_CREATE))
			return fd, func() {
				f, err := os.CreateTemp(dir, "")
				if err != nil {
					t.Error(err)
				}
				f.Close()
			}
		},
		"fifo": func(t *testing.T) (int, func()) {
			path := filepath.Join(t.TempDir(), "fifo")
			if err := unix.Mkfifo(path, 0o600); err != nil {
				t.Fatal(err)
			}
			fd := opened(t)(unix.Open(path, unix.O_RDWR|unix.O_NONBLOCK|unix.O_CLOEXEC, 0))
			return fd, func() { unix.Write(fd, []byte("x")) }
		},
	} {
		t.Run(what, func(t *testing.T) {
			polls(t, func(t *testing.T, e *rondo.Engine) {
				fd, happen := open(t)
				defer unix.Close(fd)
				told := make(chan error, 100)
				onLoop(t, e, func(l *rondo.Loop) {
					b := make([]byte, 4096)
					if _, err := l.Poll(fd, rondo.Readable, func(rondo.Events) {
						_, err := unix.Read(fd, b)
						told <- err
					}); err != nil {
						t.Error(err)
					}
				})
				for range 3 {
					happen()
					if err := <-told; err != nil {
						t.Errorf("told without a reason: %v", err)
					}
					for range 3 {
						onLoop(t, e, func(*rondo.Loop) {})
					}
					if len(told) > 0 {
						t.Errorf("told again: %v", <-told)
					}
				}
			})
		})
	}
}

// opened fails if a system call has.
func opened(t *testing.T) func(int, error) int {
	return func(fd int, err error) int {
		t.Helper()
		if err != nil {
			t.Fatal(err)
		}
		return fd
	}
}
