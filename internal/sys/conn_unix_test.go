//go:build unix

package sys_test

import (
	"net"
	"testing"

	"golang.org/x/sys/unix"

	"github.com/rondo-go/rondo/internal/sys"
)

// TestTakenConnNeverLingers: closing a taken connection does not wait for the peer,
// which would stop a loop. A connection with SO_LINGER 0 is still reset. TakeConn
// leaves the option unchanged; closing changes it.
func TestTakenConnNeverLingers(t *testing.T) {
	ln, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer ln.Close()
	for _, c := range []struct {
		seconds int
		on      bool
	}{{-1, false}, {0, true}, {5, false}} {
		nc, err := net.Dial("tcp", ln.Addr().String())
		if err != nil {
			t.Fatal(err)
		}
		nc.(*net.TCPConn).SetLinger(c.seconds)
		h, err := sys.TakeConn(nc)
		if err != nil {
			t.Fatal(err)
		}
		if l := linger(t, h.FD); (l.Onoff != 0) != (c.seconds >= 0) || l.Onoff != 0 && int(l.Linger) != c.seconds {
			t.Errorf("SetLinger(%d), then taken: SO_LINGER is %+v", c.seconds, l)
		}
		other, err := unix.Dup(h.FD)
		if err != nil {
			t.Fatal(err)
		}
		if err := sys.CloseHandle(h); err != nil {
			t.Error(err)
		}
		if l := linger(t, other); (l.Onoff != 0) != c.on || l.Onoff != 0 && l.Linger != 0 {
			t.Errorf("SetLinger(%d), then closed: SO_LINGER is %+v", c.seconds, l)
		}
		unix.Close(other)
	}
	if err := sys.Close(-1); err == nil {
		t.Error("Close of an invalid descriptor: no error")
	}
}

func linger(t *testing.T, fd int) unix.Linger {
	t.Helper()
	l, err := unix.GetsockoptLinger(fd, unix.SOL_SOCKET, unix.SO_LINGER)
	if err != nil {
		t.Fatal(err)
	}
	return *l
}
