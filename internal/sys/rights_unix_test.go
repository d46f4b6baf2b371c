//go:build unix

package sys

import (
	"errors"
	"os"
	"testing"

	"golang.org/x/sys/unix"
)

// TestRightsLost: RecvRights returns an error if there is no room for descriptors, and
// still returns those that arrived, so that they can be closed.
func TestRightsLost(t *testing.T) {
	pair, err := unix.Socketpair(unix.AF_UNIX, unix.SOCK_STREAM, 0)
	if err != nil {
		t.Fatal(err)
	}
	defer unix.Close(pair[0])
	defer unix.Close(pair[1])
	r, w, err := os.Pipe()
	if err != nil {
		t.Fatal(err)
	}
	defer r.Close()
	defer w.Close()
	fds := []int{int(r.Fd()), int(w.Fd()), int(r.Fd())}
	buf := make([]byte, 10)
	for _, room := range []int{RightsRoom, unix.CmsgSpace(4)} {
		if n, err := SendRights(pair[0], []byte("three"), fds); n != 5 || err != nil {
			t.Fatalf("sent %d bytes, %v", n, err)
		}
		n, rights, again, err := RecvRights(pair[1], buf, make([]byte, room))
		if n != 5 || again {
			t.Fatalf("received %d bytes, again %v, %v", n, again, err)
		}
		if room == RightsRoom && (len(rights) != 3 || err != nil) {
			t.Errorf("%d descriptors arrived, error %v", len(rights), err)
		}
		if room != RightsRoom && (len(rights) == 3 || !errors.Is(err, ErrRightsLost)) {
			t.Errorf("without room: %d descriptors arrived, error %v", len(rights), err)
		}
		for _, fd := range rights {
			if flags, err := unix.FcntlInt(uintptr(fd), unix.F_GETFD, 0); err != nil || flags&unix.FD_CLOEXEC == 0 {
				t.Errorf("flags of a descriptor: %x, %v", flags, err)
			}
			Close(fd)
		}
	}
	if _, _, again, err := RecvRights(pair[1], buf, nil); !again || err != nil {
		t.Errorf("without input: again %v, error %v", again, err)
	}
}
