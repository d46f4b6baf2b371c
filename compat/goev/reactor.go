//go:build linux

package goev

import (
	"errors"
	"fmt"
	"maps"
	"sync"
	"sync/atomic"

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
	running chan struct{} // closed by Run: until then the loops wait
	once    sync.Once
}

// noCopy makes go vet report copies.
type noCopy struct{}

func (*noCopy) Lock()   {}
func (*noCopy) Unlock() {}

// A poller is a loop with what its handlers share. mu guards handlers.
type poller struct {
	loop  *rondo.Loop
	read  []byte
	write []byte
	cache atomic.Pointer[map[int]any] // never changed: a change makes another map

	mu       sync.Mutex
	handlers map[int]*entry
}

// An entry is a descriptor that a poller watches. poll and told belong to the
// loop.
type entry struct {
	poller *poller
	fd     int
	eh     EvHandler
	events atomic.Uint32 // asked for
	gone   atomic.Bool   // removed
	poll   *rondo.Poll
	told   bool // OnWrite was called for EvOutET
}

// entries are all entries by their descriptors, for netfd.Close.
var entries sync.Map

func init() {
	closing.Hook = func(fd int) {
		if e, ok := entries.Load(fd); ok {
			e.(*entry).poller.remove(e.(*entry))
		}
	}
}

// NewReactor makes a Reactor. Its pollers begin with Run.
func NewReactor(opts ...Option) (*Reactor, error) {
	o := optionsOf(opts)
	r := &Reactor{running: make(chan struct{})}
	r.engine.NumLoops = o.pollers
	r.engine.LockThreads = o.lockThreads
	r.engine.Repanic = true
	if err := r.engine.Start(); err != nil {
		return nil, fmt.Errorf("goev: %w", err)
	}
	for l := range r.engine.Loops() {
		p := &poller{loop: l, handlers: make(map[int]*entry)}
		p.read, p.write = make([]byte, o.readBuffer), make([]byte, o.writeBuffer)
		p.cache.Store(new(map[int]any))
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

func (r *Reactor) poller(fd int) *poller { return r.pollers[fd%len(r.pollers)] }

// AddEvHandler makes a poller watch a descriptor for events, and call their
// methods of eh. The descriptor's number chooses the poller. eh may be called
// before AddEvHandler returns.
func (r *Reactor) AddEvHandler(eh EvHandler, fd int, events uint32) error {
	if fd < 1 || eh == nil {
		return errors.New("AddEvHandler: invalid params")
	}
	p := r.poller(fd)
	e := &entry{poller: p, fd: fd, eh: eh}
	e.events.Store(events)
	eh.added(r, e)
	return p.add(e)
}

// AppendEvent adds events to those that fd is watched for.
func (r *Reactor) AppendEvent(fd int, events uint32) error {
	if fd < 1 || events == 0 {
		return errors.New("AppendEvent: invalid params")
	}
	e := r.poller(fd).find(fd)
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
	e := r.poller(fd).find(fd)
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
		p.set(o.ID, o.Value)
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

func (p *poller) set(id int, value any) {
	p.mu.Lock()
	defer p.mu.Unlock()
	next := maps.Clone(*p.cache.Load())
	if next == nil {
		next = make(map[int]any)
	}
	next[id] = value
	p.cache.Store(&next)
}

func (p *poller) find(fd int) *entry {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.handlers[fd]
}

// add begins to watch. On another goroutine than the loop's it duplicates the
// descriptor, which may be closed, and its number be used again, before the loop
// takes it.
func (p *poller) add(e *entry) error {
	p.mu.Lock()
	old := p.handlers[e.fd]
	p.handlers[e.fd] = e
	p.mu.Unlock()
	entries.Store(e.fd, e)
	if old != nil {
		p.remove(old)
	}
	if p.loop.Calling() {
		err := e.watch(e.fd)
		if err != nil {
			p.remove(e)
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
		p.remove(e)
		return fmt.Errorf("epoll_ctl add: %w", err)
	}
	p.loop.Post(func() {
		defer unix.Close(fd)
		if !e.gone.Load() && e.watch(fd) != nil {
			p.remove(e)
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

// remove forgets an entry.
func (p *poller) remove(e *entry) {
	if e.gone.Swap(true) {
		return
	}
	p.mu.Lock()
	if p.handlers[e.fd] == e {
		delete(p.handlers, e.fd)
	}
	p.mu.Unlock()
	entries.CompareAndDelete(e.fd, e)
	p.do(func() {
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
		e.poller.remove(e)
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
		e.poller.remove(e)
		e.eh.OnClose()
	}
}

func (e *entry) writable() bool {
	e.told = true
	if !e.eh.OnWrite() {
		return false
	}
	e.update()
	return true
}

func (e *entry) readable() bool {
	return e.gone.Load() || e.eh.OnRead() && !e.eh.failed(e)
}
