package sim

import (
	"fmt"
	"os"
	"slices"
	"syscall"
	"time"

	"github.com/rondo-go/rondo/internal/backend"
)

// A listener queues connections to its place until they are accepted.
type listener struct {
	net   *Network
	place place
	reuse bool
	queue []*end
	file  *file
}

// The range of ephemeral ports.
const (
	firstPort = 49152
	lastPort  = 65535
)

func (n *Network) freePort() uint16 {
	for {
		n.port++
		if n.port < firstPort || n.port > lastPort {
			n.port = firstPort
		}
		used := func(l *listener) bool { return !l.place.unix && int(l.place.tcp.Port()) == n.port }
		bound := func(d *datagramSocket) bool { return !d.local.unix && int(d.local.tcp.Port()) == n.port }
		if !slices.ContainsFunc(n.listeners, used) && !slices.ContainsFunc(n.datagrams, bound) {
			return uint16(n.port)
		}
	}
}

func (n *Network) listen(p place, s *backend.Socket) (*listener, error) {
	switch {
	case !p.unix && p.tcp.Port() == 0:
		p = p.withPort(n.freePort())
	case p.unix && p.name == "":
		n.port++
		p.name = fmt.Sprintf("@%05x", n.port)
	}
	l := &listener{net: n, place: p, reuse: s != nil && s.ReusePort && !p.unix}
	for _, other := range n.listeners {
		if other.place.collides(p) && !(other.reuse && l.reuse) {
			return nil, os.NewSyscallError("bind", syscall.EADDRINUSE)
		}
	}
	n.listeners = append(n.listeners, l)
	return l, nil
}

func (l *listener) close() {
	n := l.net
	n.listeners = slices.DeleteFunc(n.listeners, func(o *listener) bool { return o == l })
	for _, e := range l.queue {
		e.reset()
	}
	l.queue, l.file = nil, nil
}

// find returns the listener for p; it picks one if several share the place.
func (n *Network) find(p place) *listener {
	var found []*listener
	for _, l := range n.listeners {
		if !l.place.takes(p) {
			continue
		}
		// An exact address wins over the wildcard.
		if !p.unix && !l.place.tcp.Addr().IsUnspecified() && len(found) > 0 && found[0].place.tcp.Addr().IsUnspecified() {
			found = found[:0]
		}
		if len(found) == 0 || found[0].place == l.place {
			found = append(found, l)
		}
	}
	if len(found) == 0 {
		return nil
	}
	return found[n.rand.intn(len(found))]
}

// A handshake is the way of a dial to a listener, and of the answer back.
type handshake struct {
	from   *end
	to     place
	tries  int
	answer error
	back   bool
}

// A full queue gives no answer, nor does a black hole. The dialing side asks again
// after one second, then two, and so on, up to maxTries times.
const maxTries = 6

// dial starts to connect e.
func (e *end) dial(to place) {
	to = to.here()
	e.state, e.remote = dialing, to
	if !to.unix && !e.local.tcp.IsValid() {
		e.local.tcp = to.tcp // as if from the same host
		e.local = e.local.withPort(0)
	}
	if !to.unix && e.local.tcp.Port() == 0 {
		e.local = e.local.withPort(e.net.freePort())
	}
	h := &handshake{from: e, to: to}
	h.after(e.net.latency(&e.net.rand))
}

func (h *handshake) after(d time.Duration) {
	h.from.net.agenda.add(h.from.net.now.Add(d), h)
}

func (h *handshake) fire() {
	h.from.net.loopTurns = 0
	switch {
	case h.from.state != dialing:
	case h.back && h.answer != nil:
		h.from.fail(h.answer)
	case h.back:
		h.from.state = open
		h.from.net.note(Event{What: "connected", Socket: h.from.id})
		h.from.changed()
	default:
		h.ask()
	}
}

// ask handles the handshake's arrival at the other side.
func (h *handshake) ask() {
	n, e := h.from.net, h.from
	l := n.find(h.to)
	way := n.latency(&n.rand)
	silent := l == nil && n.blackholes[h.to.tcp.Addr()] || l != nil && len(l.queue) >= n.opt.Backlog
	switch {
	case silent && h.tries+1 < maxTries:
		h.tries++
		h.after(time.Second << (h.tries - 1))
		return
	case silent:
		h.answer = syscall.ETIMEDOUT
	case l == nil && h.to.unix && !h.to.abstract():
		h.answer = syscall.ENOENT
	case l == nil:
		h.answer = syscall.ECONNREFUSED
	default:
		s := n.newEnd(h.to)
		s.remote, s.state = e.local, open
		s.openAt = n.now
		e.openAt = n.now.Add(way)
		join(e, s)
		l.queue = append(l.queue, s)
		n.note(Event{What: "queued", Socket: s.id, N: len(l.queue)})
		if l.file != nil {
			l.file.changed()
		}
	}
	h.back = true
	h.after(way)
}

// fail ends a failed dial.
func (e *end) fail(errno error) {
	e.net.note(Event{What: "refused", Socket: e.id})
	e.state, e.failure = failed, errno
	e.changed()
}

// abandon gives up a dial. If the other side already has a connection, it sees a reset.
func (e *end) abandon() {
	e.state, e.failure = failed, syscall.ECONNABORTED
	if e.peer != nil {
		e.sendReset()
	}
}
