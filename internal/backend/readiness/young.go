//go:build unix

package readiness

import (
	"time"

	"github.com/rondo-go/rondo/internal/backend"
	"github.com/rondo-go/rondo/internal/share"
	"github.com/rondo-go/rondo/internal/sys"
)

// A dialed socket gets its keep-alive options a second or two after it was made: they take
// three system calls and a timer of the system, and mean nothing before their time. Most of a
// busy proxy's connections end before that.

const (
	// youth is how long a socket goes without these options at least. It is twice as long at
	// most.
	youth = time.Second
	// leastLater is the least keep-alive time, in seconds, that is set later.
	leastLater = 10
	// mostLater is the most that Linux allows; more is an error, at once.
	mostLater = 32767
)

// nursery has the sockets without keep-alive options, by their slots. One that has closed may
// still be there, or one that has its slot now: then that is not young for so long.
type nursery struct {
	young, older []uint32
	next         backend.Time // when the older ones get theirs, and the young ones are older; 0: there are none
}

// maxFreeNursery bounds the memory that an empty list keeps, in slots.
const maxFreeNursery = 4096

// withoutKeepAlive returns s without its keep-alive time, and that time in seconds. If the time
// must be set at once, it returns s as it is, and 0.
func withoutKeepAlive(network string, s *backend.Socket) (backend.Socket, uint16) {
	without := *s
	seconds := sys.KeepAliveSeconds(s)
	if network == "unix" || seconds < leastLater || seconds > mostLater {
		return without, 0
	}
	without.KeepAlive = -1
	return without, uint16(seconds)
}

// keepLater sets the keep-alive time of a file later.
func (b *Backend) keepLater(f *file, seconds uint16) {
	if seconds == 0 {
		return
	}
	f.keepAlive = seconds
	n := &b.nursery
	n.young = append(share.Queue(n.young), f.slot)
	if n.next == 0 {
		n.next = b.Now().Add(youth)
	}
}

// setKeepAlive sets the keep-alive time now, if that has not been done.
func (f *file) setKeepAlive() {
	if f.keepAlive > 0 {
		// It fails only on some systems, on a connection that is already broken.
		_ = sys.SetKeepAlive(uintptr(f.fd()), time.Duration(f.keepAlive)*time.Second)
		f.keepAlive = 0
	}
}

// grow sets the keep-alive times that are due.
func (b *Backend) grow() {
	n := &b.nursery
	if n.next == 0 || b.Now() < n.next {
		return
	}
	for _, slot := range n.older {
		b.files.at(slot).setKeepAlive()
	}
	empty := n.older[:0]
	if cap(empty) > maxFreeNursery {
		empty = nil
	}
	n.young, n.older, n.next = empty, n.young, 0
	if len(n.older) > 0 {
		n.next = b.Now().Add(youth)
	}
}

// until returns the time at which grow has work, or t if that is earlier.
func (n *nursery) until(t backend.Time) backend.Time {
	if n.next == 0 {
		return t
	}
	return min(t, n.next)
}
