//go:build linux

package goev

import (
	"errors"
	"fmt"
	"sync"
	"sync/atomic"
	"time"

	"golang.org/x/sys/unix"

	"github.com/rondo-go/rondo"
	"github.com/rondo-go/rondo/compat/goev/internal/closing"
)

// A Reactor watches descriptors on one or several pollers, and calls their
// handlers. Reactors can be combined freely: one accepts connections, say, and
// another serves them.
type Reactor struct {
	noCopy

	engine  rondo.Engine
	pollers []*poller
	turn    int           // of the poller that is asked first; watched.mu guards it
	running chan struct{} // closed by Run: until then the loops wait
	once    sync.Once
}

// noCopy makes go vet report copies.
type noCopy struct{}

func (*noCopy) Lock()   {}
func (*noCopy) Unlock() {}

// A poller is a loop with what its handlers share.
type poller struct {
	reactor *Reactor
	loop    *rondo.Loop
	read    []byte
	write   []byte
	cache   sync.Map // from int
	entries int      // in watched; its mu guards this
}

// An entry is a descriptor that a poller watches. poll and told belong to the
// loop, next to watched.
type entry struct {
	poller *poller
	fd     int
	eh     EvHandler
	events atomic.Uint32 // asked for
	gone   atomic.Bool   // removed
	poll   *rondo.Poll
	told   bool   // OnWrite was called for EvOutET
	next   *entry // of the same descriptor, in another Reactor
}

// watched are all entries by their descriptors.
var watched struct {
	mu      sync.Mutex
	entries map[int]*entry
}

func init() {
	watched.entries = make(map[int]*entry)
	closing.Hook = func(fd int) {
		for e := forgetAll(fd); e != nil; e = e.next {
			e.remove()
		}
	}
}

// forgetAll takes all entries of a descriptor that is about to be closed.
func forgetAll(fd int) (first *entry) {
	watched.mu.Lock()
	defer watched.mu.Unlock()
	first = watched.entries[fd]
	for e := first; e != nil; e = e.next {
		e.poller.entries--
	}
	delete(watched.entries, fd)
	return first
}

// NewReactor makes a Reactor. Its pollers begin with Run.
func NewReactor(opts ...Option) (*Reactor, error) {
	o := optionsOf(opts)
	r := &Reactor{running: make(chan struct{})}
	r.engine.NumLoops = o.pollers
	r.engine.LockThreads = o.lockThreads
	r.engine.Repanic = true
	r.engine.Spin = 20 * time.Microsecond // goev looks once more before it sleeps
	if err := r.engine.Start(); err != nil {
		return nil, fmt.Errorf("goev: %w", err)
	}
	for l := range r.engine.Loops() {
		p := &poller{reactor: r, loop: l}
		p.read, p.write = make([]byte, o.readBuffer), make([]byte, o.writeBuffer)
		r.pollers = append(r.pollers, p)
		l.Post(func() { <-r.running })
	}
	return r, nil
}

// Run runs the pollers. It does not return, unless they fail.
func (r *Reactor) Run() error {
	r.once.Do(func() { close(r.running) })
	return r.engine.Wait()
}

// AddEvHandler makes a poller watch a descriptor for events, and call their
// methods of eh: the poller that watches the fewest. eh may be called before
// AddEvHandler returns.
func (r *Reactor) AddEvHandler(eh EvHandler, fd int, events uint32) error {
	if fd < 1 || eh == nil {
		return errors.New("AddEvHandler: invalid params")
	}
	e := &entry{fd: fd, eh: eh}
	e.events.Store(events)
	old := r.remember(e)
	eh.added(r, e)
	if old != nil {
		old.remove()
	}
	return e.begin()
}

// remember gives an entry its poller: that of the entry it replaces, or the one
// with the fewest.
func (r *Reactor) remember(e *entry) (old *entry) {
	watched.mu.Lock()
	defer watched.mu.Unlock()
	if old = watched.entries[e.fd].of(r); old != nil {
		e.poller = old.poller
		old.unlink()
	} else {
		e.poller = r.fewest()
	}
	e.poller.entries++
	e.next = watched.entries[e.fd]
	watched.entries[e.fd] = e
	return old
}

// fewest returns a poller with the fewest entries. Equal ones take turns.
func (r *Reactor) fewest() (best *poller) {
	for i := range r.pollers {
		if p := r.pollers[(r.turn+i)%len(r.pollers)]; best == nil || p.entries < best.entries {
			best = p
		}
	}
	r.turn = (r.turn + 1) % len(r.pollers)
	return best
}

// of returns the Reactor's entry, of e and those that follow.
func (e *entry) of(r *Reactor) *entry {
	for e != nil && e.poller.reactor != r {
		e = e.next
	}
	return e
}

// unlink takes an entry from watched, whose mu is held, if it is there.
func (e *entry) unlink() {
	first := watched.entries[e.fd]
	switch at := first; {
	case first == e && e.next == nil:
		delete(watched.entries, e.fd)
	case first == e:
		watched.entries[e.fd] = e.next
	default:
		for at != nil && at.next != e {
			at = at.next
		}
		if at == nil {
			return
		}
		at.next = e.next
	}
	e.poller.entries--
}

func (r *Reactor) find(fd int) *entry {
	watched.mu.Lock()
	defer watched.mu.Unlock()
	return watched.entries[fd].of(r)
}

// AppendEvent adds events to those that fd is watched for.
func (r *Reactor) AppendEvent(fd int, events uint32) error {
	if fd < 1 || events == 0 {
		return errors.New("AppendEvent: invalid params")
	}
	e := r.find(fd)
	if e == nil {
		return errors.New("append: not found")
	}
	e.change(events, 0)
	return nil
}

// RemoveEvent removes events from those that fd is watched for. When none are
// left, as after EvAll, the poller forgets the handler.
func (r *Reactor) RemoveEvent(fd int, events uint32) error {
	if fd < 1 || events == 0 {
		return errors.New("RemoveEvent: invalid params")
	}
	e := r.find(fd)
	if e == nil {
		return errors.New("remove: not found")
	}
	e.change(0, events)
	return nil
}

// PollSyncCache is the kind of PollSyncOpt that sets a value of the pollers'
// caches.
const PollSyncCache int = 1

// PollSyncCacheOpt is the argument of PollSyncCache.
type PollSyncCacheOpt struct {
	ID    int
	Value any
}

// InitPollSyncOpt is PollSyncOpt, before Run.
func (r *Reactor) InitPollSyncOpt(typ int, val any) { r.PollSyncOpt(typ, val) }

// PollSyncOpt sets a value in the cache of each poller: typ is PollSyncCache, and
// val a PollSyncCacheOpt. See IOHandle.PCachedGet.
func (r *Reactor) PollSyncOpt(typ int, val any) {
	if typ != PollSyncCache {
		return
	}
	o := val.(PollSyncCacheOpt)
	for _, p := range r.pollers {
		p.cache.Store(o.ID, o.Value)
	}
}

// do calls f on the loop: now if this is its goroutine, otherwise soon.
func (p *poller) do(f func()) {
	if p.loop.Calling() {
		f()
		return
	}
	p.loop.Post(f)
}

// begin begins to watch. On another goroutine than the loop's it duplicates the
// descriptor, which may be closed, and its number be used again, before the loop
// takes it.
func (e *entry) begin() error {
	if e.poller.loop.Calling() {
		err := e.watch(e.fd)
		if err != nil {
			e.remove()
		}
		return err
	}
	fd, err := unix.FcntlInt(uintptr(e.fd), unix.F_DUPFD_CLOEXEC, 0)
	if err == nil {
		err = watchable(fd)
		if err != nil {
			unix.Close(fd)
		}
	}
	if err != nil {
		e.remove()
		return fmt.Errorf("epoll_ctl add: %w", err)
	}
	e.poller.loop.Post(func() {
		defer unix.Close(fd)
		if !e.gone.Load() && e.watch(fd) != nil {
			e.remove()
			e.eh.OnClose()
		}
	})
	return nil
}

// watchable returns the error that the loop would have for a file.
func watchable(fd int) error {
	var s unix.Stat_t
	if err := unix.Fstat(fd, &s); err != nil {
		return err
	}
	if kind := s.Mode & unix.S_IFMT; kind == unix.S_IFREG || kind == unix.S_IFDIR {
		return unix.EPERM
	}
	return nil
}

// remove ends the watching.
func (e *entry) remove() {
	if e.gone.Swap(true) {
		return
	}
	watched.mu.Lock()
	e.unlink()
	watched.mu.Unlock()
	e.poller.do(func() {
		if e.poll != nil {
			e.poll.Close()
		}
	})
}

// change changes the events to watch for, and removes the entry if none are left.
func (e *entry) change(more, less uint32) {
	var now uint32
	for {
		was := e.events.Load()
		if now = (was | more) &^ less; e.events.CompareAndSwap(was, now) {
			break
		}
	}
	if now == 0 {
		e.remove()
		return
	}
	e.poller.do(func() {
		if more&unix.EPOLLOUT != 0 {
			e.told = false
		}
		e.update()
	})
}

// The functions from here on run on the loop.

// watch begins to watch fd, which is the entry's or a duplicate.
func (e *entry) watch(fd int) (err error) {
	e.poll, err = e.poller.loop.Poll(fd, e.mask(), e.happened)
	return err
}

// mask returns the events as package rondo has them.
func (e *entry) mask() (m rondo.Events) {
	events := e.events.Load()
	if events&unix.EPOLLIN != 0 {
		m |= rondo.Readable
	}
	if events&unix.EPOLLOUT != 0 && !(e.told && events&EPOLLET != 0) {
		m |= rondo.Writable
	}
	return m
}

// update watches for the present mask.
func (e *entry) update() {
	if m := e.mask(); e.poll != nil && m != e.poll.Mask() {
		e.poll.Modify(m) // an error: it is removed
	}
}

// happened calls the handler.
func (e *entry) happened(got rondo.Events) {
	if e.gone.Load() {
		return // removed by another goroutine
	}
	if got == rondo.Failed || got&rondo.Writable != 0 && !e.writable() || got&rondo.Readable != 0 && !e.readable() {
		e.remove()
		e.eh.OnClose()
	}
}

func (e *entry) writable() bool {
	e.told = true
	if !e.eh.OnWrite() || e.eh.failed(e) {
		return false
	}
	e.update()
	return true
}

func (e *entry) readable() bool {
	return e.gone.Load() || e.eh.OnRead() && !e.eh.failed(e)
}
