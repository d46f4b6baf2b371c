//go:build unix

package backendtest_test

import (
	"net"
	"os"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/rondo-go/rondo"
	"github.com/rondo-go/rondo/internal/pick"
	"github.com/rondo-go/rondo/internal/testkit"
)

// TestAcceptSurvivesWantOfDescriptors takes all descriptors away. Accepting must not
// end the loop or spin, and must continue when there are descriptors again.
func TestAcceptSurvivesWantOfDescriptors(t *testing.T) {
	for _, name := range pick.Available() {
		t.Run(name, func(t *testing.T) { acceptWithoutDescriptors(t, name) })
	}
}

func acceptWithoutDescriptors(t *testing.T, backend string) {
	var log testkit.Log
	e := &rondo.Engine{NumLoops: 1, Backend: backend, Logger: log.Logger()}
	defer e.Close()
	ln, err := e.Listen("tcp", "127.0.0.1:0", rondo.SocketOptions{}, func(*rondo.Conn) rondo.Handler {
		return rondo.HandlerFunc((*rondo.Conn).Write)
	})
	if err != nil {
		t.Fatal(err)
	}
	before := testkit.Dial(t, ln.Addr().String()) // works throughout
	testkit.Echoes(t, before, "before")

	// Create the client's descriptor while there still are some.
	client, err := syscall.Socket(syscall.AF_INET, syscall.SOCK_STREAM, 0)
	if err != nil {
		t.Fatal(err)
	}
	defer syscall.Close(client)
	release := takeDescriptors(t)
	defer release()
	addr := ln.Addr().(*net.TCPAddr)
	if err := syscall.Connect(client, &syscall.SockaddrInet4{Port: addr.Port, Addr: [4]byte{127, 0, 0, 1}}); err != nil {
		t.Fatal(err)
	}
	testkit.Until(t, "a word in the log", func() bool { return strings.Contains(log.String(), "cannot accept") })
	turns, begin := e.Stats().Turns, time.Now()
	time.Sleep(300 * time.Millisecond)
	if n, d := e.Stats().Turns-turns, time.Since(begin); time.Duration(n) > d/time.Millisecond {
		t.Errorf("the loop made %d turns in %v without descriptors: it spins", n, d)
	}
	testkit.Echoes(t, before, "during")
	if n := strings.Count(log.String(), "cannot accept"); n != 1 {
		t.Errorf("the log reports %d times that accepting fails", n)
	}

	release()
	if _, err := syscall.Write(client, []byte("hello")); err != nil {
		t.Fatal(err)
	}
	b := make([]byte, 16)
	syscall.SetsockoptTimeval(client, syscall.SOL_SOCKET, syscall.SO_RCVTIMEO, &syscall.Timeval{Sec: 20})
	if n, err := syscall.Read(client, b); err != nil || string(b[:n]) != "hello" {
		t.Fatalf("after descriptors came back: %q, %v", b[:n], err)
	}
	testkit.Echoes(t, testkit.Dial(t, ln.Addr().String()), "after")
}

// takeDescriptors opens files until no descriptor is left.
func takeDescriptors(t *testing.T) (release func()) {
	t.Helper()
	var old syscall.Rlimit
	if err := syscall.Getrlimit(syscall.RLIMIT_NOFILE, &old); err != nil {
		t.Fatal(err)
	}
	few := old
	few.Cur = 256
	if err := syscall.Setrlimit(syscall.RLIMIT_NOFILE, &few); err != nil {
		t.Fatal(err)
	}
	var taken []*os.File
	for {
		f, err := os.Open(os.DevNull)
		if err != nil {
			break
		}
		taken = append(taken, f)
	}
	return func() {
		for _, f := range taken {
			f.Close()
		}
		taken = nil
		syscall.Setrlimit(syscall.RLIMIT_NOFILE, &old)
	}
}
