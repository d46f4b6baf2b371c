//go:build !unix

package fdpass_test

import (
	"errors"
	"net"
	"testing"

	"github.com/rondo-go/rondo"
	"github.com/rondo-go/rondo/fdpass"
)

// On a system that cannot pass descriptors, New says so and leaves the connection alone.
func TestUnsupported(t *testing.T) {
	ln, err := net.ListenUnix("unix", &net.UnixAddr{Net: "unix", Name: t.TempDir() + "/s"})
	if err != nil {
		t.Fatal(err)
	}
	defer ln.Close()
	nc, err := net.DialUnix("unix", nil, ln.Addr().(*net.UnixAddr))
	if err != nil {
		t.Fatal(err)
	}
	defer nc.Close()
	var e rondo.Engine
	defer e.Close()
	if err := e.Start(); err != nil {
		t.Fatal(err)
	}
	done := make(chan error)
	for l := range e.Loops() {
		l.Post(func() {
			_, err := fdpass.New(l, nc, nil)
			done <- err
		})
		if err := <-done; !errors.Is(err, errors.ErrUnsupported) {
			t.Errorf("New: %v", err)
		}
	}
	if _, err := nc.Write([]byte("x")); err != nil {
		t.Errorf("afterwards: %v", err)
	}
}
