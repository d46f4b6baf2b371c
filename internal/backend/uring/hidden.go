//go:build linux

package uring

import (
	"sync"

	"golang.org/x/sys/unix"

	"github.com/rondo-go/rondo/internal/backend"
	"github.com/rondo-go/rondo/internal/share"
)

// A multishot receive polls, receives what there is, and then waits for the next event. It does
// not poll again in between. So if its first poll finds bytes and the end of the stream at once,
// the kernel delivers the bytes and waits for an event that never comes. Only the end of a TCP
// stream shows, because such a socket counts as not empty until a receive has met the end. A
// reset does not show, nor does any end of a unix socket. This file finds those ends.

// doubtedAtOnce is how many files findEnds looks at with one system call.
const doubtedAtOnce = 64

// doubtedTurns is how many turns of a loop that does not sleep a doubt may wait.
const doubtedTurns = 64

// doubt notes f if e, of a multishot receive that goes on, has emptied the socket and may have
// hidden the end.
func (b *Backend) doubt(f *file, e *cqe) {
	if e.flags&(cqeMore|cqeSockNonempty) == cqeMore && (f.flags&unproven != 0 || b.forgetful) {
		f.flags &^= unproven
		b.doubted = append(share.Queue(b.doubted), f.id())
	}
}

// findEnds looks for ends in all files that doubt has noted, and ends the receive of each that has
// one: a new receive meets the end at once. It reports whether there was any.
func (b *Backend) findEnds() (found bool) {
	for all := b.doubted; len(all) > 0; {
		n := min(len(all), doubtedAtOnce)
		found = b.findEndsOf(all[:n]) || found
		all = all[n:]
	}
	b.doubted = b.doubted[:0]
	return found
}

func (b *Backend) findEndsOf(doubted []backend.File) (found bool) {
	var fds [doubtedAtOnce]unix.PollFd
	for i, id := range doubted {
		fds[i] = unix.PollFd{Fd: -1, Events: unix.POLLRDHUP} // -1: poll passes over it
		if f := b.files.get(id); f != nil && f.at == receives {
			fds[i].Fd = f.descriptor
		}
	}
	_, err := unix.Poll(fds[:len(doubted)], 0)
	for i := range doubted {
		// If the call failed, receive again to find out.
		if fds[i].Revents != 0 || err != nil && fds[i].Fd >= 0 {
			b.cancelIn(b.files.get(doubted[i]))
			found = true
		}
	}
	return found
}

// forgetsEnds reports whether the kernel also forgets an end that comes after the poll has begun,
// if bytes come with it between two turns. Linux remembers it since commit a68ed2df7213 of 2026,
// which stable kernels have too. Before Linux 6.17 a unix socket, which this function asks, shows
// every end, but a TCP connection hides a reset: so take those kernels for forgetful.
var forgetsEnds = sync.OnceValue(func() bool {
	pair, err := unix.Socketpair(unix.AF_UNIX, unix.SOCK_STREAM|unix.SOCK_NONBLOCK|unix.SOCK_CLOEXEC, 0)
	if err != nil {
		return true
	}
	b, err := open(config{submissions: 4, completions: 8, buffers: 1, unlimited: true})
	if err != nil {
		unix.Close(pair[0])
		unix.Close(pair[1])
		return true
	}
	defer b.Close()
	f, _ := b.Adopt(backend.Handle{FD: pair[0]})
	op := backend.Op{Kind: backend.Recv, File: f}
	b.Submit(&op)
	ended := false
	turn := func() {
		b.Wait(b.Now())
		var c backend.Completion
		for b.Next(&c) {
			if ended = c.N == 0; !ended {
				b.Submit(&op)
				b.Return(c.Lent)
			}
		}
	}
	turn()
	unix.Write(pair[1], []byte("x")) // the first completion proves the poll: see doubt
	turn()
	turn()
	unix.Write(pair[1], []byte("x"))
	unix.Close(pair[1])
	for range 4 {
		turn()
	}
	return !ended
})
