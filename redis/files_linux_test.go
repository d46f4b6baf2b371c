package redis

import (
	"fmt"
	"log/slog"
	"math"
	"runtime"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/rondo-go/rondo"
)

// limitFiles bounds the process's descriptors while the test runs.
func limitFiles(t *testing.T, n uint64) {
	t.Helper()
	var old syscall.Rlimit
	if err := syscall.Getrlimit(syscall.RLIMIT_NOFILE, &old); err != nil {
		t.Fatal(err)
	}
	few := old
	few.Cur = n
	if err := syscall.Setrlimit(syscall.RLIMIT_NOFILE, &few); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { syscall.Setrlimit(syscall.RLIMIT_NOFILE, &old) })
}

// A server without descriptors for clients does not start, and leaves no Engine behind.
func TestNoDescriptorsForClients(t *testing.T) {
	before := runtime.NumGoroutine()
	limitFiles(t, ReservedFiles)
	for range 3 {
		s := &Server{MaxClients: math.MaxInt}
		_, err := s.Listen("tcp", "127.0.0.1:0", rondo.SocketOptions{})
		want := fmt.Sprintf("increase your open file limit to at least %d", uint64(math.MaxInt)+ReservedFiles)
		if err == nil || !strings.Contains(err.Error(), want) || s.Engine != nil {
			t.Errorf("error %v, want ... %s; the Engine is %v", err, want, s.Engine)
		}
		if err := s.Close(); err != nil {
			t.Error(err)
		}
	}
	for end := time.Now().Add(10 * time.Second); runtime.NumGoroutine() > before; time.Sleep(time.Millisecond) {
		if time.Now().After(end) {
			t.Fatalf("%d goroutines, %d before", runtime.NumGoroutine(), before)
		}
	}
}

// MaxClients may be any number: it is lowered to what there is room for.
func TestMaxClientsIsLowered(t *testing.T) {
	limitFiles(t, 500)
	var log strings.Builder
	s := &Server{MaxClients: math.MaxInt, Logger: slog.New(slog.NewTextHandler(&log, nil))}
	defer s.Close()
	if _, err := s.Listen("tcp", "127.0.0.1:0", rondo.SocketOptions{}); err != nil {
		t.Fatal(err)
	}
	if want := fmt.Sprintf("requiring at least %d max", uint64(math.MaxInt)+ReservedFiles); !strings.Contains(log.String(), want) {
		t.Errorf("no %q in %s", want, log.String())
	}
}
