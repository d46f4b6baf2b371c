//go:build linux

package goev

import (
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"github.com/rondo-go/rondo/compat/goev/netfd"
)

// A ConnectPoolHandler is a handler of a ConnectPool. It embeds ConnectPoolItem.
type ConnectPoolHandler interface {
	EvHandler

	setPool(p *ConnectPool, self ConnectPoolHandler)
	isClosed() bool
	// GetPool returns the handler's pool.
	GetPool() *ConnectPool
	// Closed tells the pool that the connection has ended. OnClose calls it.
	Closed()
}

// A ConnectPoolItem is what a handler of a ConnectPool embeds.
type ConnectPoolItem struct {
	IOHandle

	pool   *ConnectPool
	self   ConnectPoolHandler
	closed atomic.Bool
}

func (i *ConnectPoolItem) setPool(p *ConnectPool, self ConnectPoolHandler) {
	i.pool, i.self = p, self
}

func (i *ConnectPoolItem) isClosed() bool { return i.closed.Load() }

// GetPool returns the handler's pool.
func (i *ConnectPoolItem) GetPool() *ConnectPool { return i.pool }

// Closed tells the pool that the connection has ended. Further calls have no
// effect.
func (i *ConnectPoolItem) Closed() {
	if !i.closed.Swap(true) {
		i.pool.lost(i.self)
	}
}

// A ConnectPool keeps connections to one address. It has as many idle ones as its
// minimum, as far as its maximum allows.
type ConnectPool struct {
	connector *Connector
	addr      string
	minIdle   int
	grow      int
	maxLive   int
	timeout   int64
	make      func() ConnectPoolHandler
	wanted    chan struct{}

	mu   sync.Mutex
	idle []ConnectPoolHandler // the one to be acquired next in front
	live int
	made int // under way
}

// NewConnectPool makes a pool of connections to addr. When fewer than minIdleNum are
// idle, which it checks every keepNumTicker milliseconds and when Acquire finds
// none, it makes addNumOnceTime more, up to maxLiveNum in all; at first it makes
// minIdleNum. A connection's handler comes from newHandler; its OnOpen adds it to a
// Reactor, and runs on a goroutine of the pool's. connectTimeout is in milliseconds.
func NewConnectPool(c *Connector, addr string, minIdleNum, addNumOnceTime, maxLiveNum int,
	connectTimeout, keepNumTicker int64, newHandler func() ConnectPoolHandler) (*ConnectPool, error) {
	if minIdleNum < 1 || minIdleNum >= maxLiveNum || maxLiveNum < addNumOnceTime {
		panic("NewConnectPool min/add/max  invalid")
	}
	p := &ConnectPool{connector: c, addr: addr, minIdle: minIdleNum, grow: addNumOnceTime, maxLive: maxLiveNum,
		timeout: connectTimeout, make: newHandler, wanted: make(chan struct{}, 1)}
	go p.keep(time.Duration(keepNumTicker) * time.Millisecond)
	return p, nil
}

// Acquire takes an idle connection, or returns nil and makes the pool grow.
func (p *ConnectPool) Acquire() ConnectPoolHandler {
	p.mu.Lock()
	defer p.mu.Unlock()
	if len(p.idle) == 0 {
		select {
		case p.wanted <- struct{}{}:
		default:
		}
		return nil
	}
	h := p.idle[0]
	p.idle[0] = nil
	p.idle = p.idle[1:]
	return h
}

// Release gives a connection back. One that has closed is forgotten.
func (p *ConnectPool) Release(ch ConnectPoolHandler) {
	if ch == nil {
		panic("ConnectPool.Release ch is nil")
	}
	if ch.GetPool() != p {
		panic("ConnectPool.Release ch doesn't belong to this pool")
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	if !ch.isClosed() {
		p.idle = append(p.idle, ch)
	}
}

// IdleNum returns the number of idle connections.
func (p *ConnectPool) IdleNum() int {
	p.mu.Lock()
	defer p.mu.Unlock()
	return len(p.idle)
}

// LiveNum returns the number of connections.
func (p *ConnectPool) LiveNum() int {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.live
}

// lost forgets a connection.
func (p *ConnectPool) lost(h ConnectPoolHandler) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.live--
	if i := slices.Index(p.idle, h); i >= 0 {
		p.idle = slices.Delete(p.idle, i, i+1)
	}
}

// keep makes connections whenever some are missing.
func (p *ConnectPool) keep(every time.Duration) {
	ticker := time.NewTicker(every)
	for {
		select {
		case <-p.wanted:
		case <-ticker.C:
		}
		for range p.missing() {
			if p.connector.Connect(p.addr, &pooled{pool: p}, p.timeout) != nil {
				p.failed()
			}
		}
	}
}

// missing returns how many connections to make now, and counts them.
func (p *ConnectPool) missing() (n int) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if len(p.idle) >= p.minIdle || p.made > 0 {
		return 0
	}
	n = p.grow
	if p.live == 0 {
		n = p.minIdle
	}
	n = max(0, min(n, p.maxLive-p.live))
	p.made = n
	return n
}

func (p *ConnectPool) failed() {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.made--
}

// opened makes the handler of a new connection, and calls its OnOpen.
func (p *ConnectPool) opened(fd int) {
	p.mu.Lock()
	p.made--
	p.live++
	p.mu.Unlock()
	h := p.make()
	h.setPool(p, h)
	h.setFd(fd)
	if !h.OnOpen() {
		h.OnClose()
		h.Closed()
		return
	}
	p.Release(h)
}

// pooled is a connection that a pool makes.
type pooled struct {
	IOHandle
	pool *ConnectPool
}

// OnOpen passes the connection on. The handler's OnOpen may wait for something.
func (c *pooled) OnOpen() bool {
	fd := c.Fd()
	netfd.SetKeepAlive(fd, 60, 40, 3)
	go c.pool.opened(fd)
	return true
}

// OnConnectFail counts the failure.
func (c *pooled) OnConnectFail(error) { c.pool.failed() }
