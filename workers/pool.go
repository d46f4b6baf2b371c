package workers

import (
	"context"
	"net"
	"sync"

	"github.com/rondo-go/rondo"
)

// Defaults of a Pool's fields.
const (
	DefaultMaxWorkers = 16
	DefaultMaxQueue   = 1024
	DefaultMaxPerConn = 16
)

// ErrClosed is the error of using a closed Pool. It is net.ErrClosed.
var ErrClosed = net.ErrClosed

// A Pool runs functions on a bounded number of goroutines. The zero Pool is ready for
// use. It reads its fields at the first use; do not change them afterwards. A Pool serves
// any number of connections, loops and engines.
//
// Goroutines start when there is work, and end when there is none. An idle Pool has no
// goroutines and need not be closed.
//
// Any goroutine may call the methods of a Pool.
type Pool struct {
	// MaxWorkers is how many functions run at the same time, each on a goroutine. For
	// computations, use no more than there are processors; for work that waits, as many
	// as the database takes. 0: DefaultMaxWorkers.
	MaxWorkers int
	// MaxQueue is how many functions of connections may wait for a goroutine. 0:
	// DefaultMaxQueue. Negative: none.
	MaxQueue int
	// MaxPerConn is how many functions of one connection may be unanswered: waiting,
	// running, or done while an earlier one is not. With 1, a connection's work runs one
	// function after another. 0: DefaultMaxPerConn.
	MaxPerConn int

	setUp      sync.Once
	maxWorkers int
	capacity   int // MaxWorkers and MaxQueue
	perConn    int
	workFunc   func() // work, made once

	mu         sync.Mutex
	closed     bool
	goroutines int
	running    int           // functions that run
	queued     int           // functions of connections that wait for a goroutine
	promised   int           // places reserved for queues that were woken
	turns      list[task]    // the next task of each queue that has one, and those of Go
	blocked    list[Queue]   // queues that were refused, first come, first served
	free       *task         // tasks for reuse
	spare      int           // length of free
	idle       chan struct{} // closed when goroutines is 0; nil: no Wait is waiting
}

// Stats is a Pool's present load.
type Stats struct {
	// Goroutines of the pool, and Running functions on them.
	Goroutines, Running int
	// Queued functions of connections wait for a goroutine.
	Queued int
	// Blocked connections wait for room in the queue.
	Blocked int
}

// prepare reads the fields once.
func (p *Pool) prepare() {
	p.setUp.Do(func() {
		p.maxWorkers = orDefault(p.MaxWorkers, DefaultMaxWorkers)
		p.perConn = orDefault(p.MaxPerConn, DefaultMaxPerConn)
		p.capacity = p.maxWorkers
		if p.MaxQueue >= 0 {
			p.capacity += orDefault(p.MaxQueue, DefaultMaxQueue)
		}
		p.workFunc = p.work
	})
}

func orDefault(v, d int) int {
	if v <= 0 {
		return d
	}
	return v
}

// Open returns an OpenFunc that gives each connection a Queue. open makes the Handler, as
// an OpenFunc does; it refuses the connection by returning nil. The callback of a dial
// calls the OpenFunc directly: pool.Open(open)(c).
//
// Conn.Handler then returns the Queue's Handler, which calls the one that open made.
// Replace the latter with Queue.SetHandler. Conn.SetHandler takes the connection away
// from its Queue: the Queue still writes the answers under way, but does not notice the
// end of the connection, so running work is not canceled. open must not return the Handler
// of a coroutine.
func (p *Pool) Open(open func(c *rondo.Conn, q *Queue) rondo.Handler) rondo.OpenFunc {
	if open == nil {
		panic("workers: Pool.Open was given no function")
	}
	p.prepare()
	return func(c *rondo.Conn) rondo.Handler {
		q := newQueue(p, c)
		defer func() {
			if q.handler == nil { // open refuses, panics, or calls runtime.Goexit
				q.drop(ErrClosed)
			}
		}()
		if q.handler = open(c, q); q.handler == nil {
			return nil
		}
		return (*handler)(q)
	}
}

// Go runs f on a goroutine of the pool when its turn comes. Use it where the caller waits
// until f has run, as coro.AwaitOn does. Such callers wait for one f each, so f does not
// count toward MaxQueue, and Go never refuses it for lack of room. A panic in f ends the
// program, as after a go statement.
//
// Go returns ErrClosed, without calling f, when the pool is closed.
func (p *Pool) Go(f func()) error {
	if f == nil {
		panic("workers: Pool.Go was given no function")
	}
	p.prepare()
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.closed {
		return ErrClosed
	}
	t := p.newTask()
	t.call = f
	p.turns.push(&t.turn)
	p.startWorker()
	return nil
}

// Close makes the pool refuse further work. It does not wait: work submitted before still
// runs and is answered; see Wait. A connection that submits work to a closed Pool is
// closed with ErrClosed, after the answers to its earlier work.
//
// To stop running work early, close the connections (Engine.Close): that cancels the
// contexts.
func (p *Pool) Close() {
	p.mu.Lock()
	p.closed = true
	p.mu.Unlock()
	p.wakeBlocked()
}

// Wait waits until no function of the pool runs or waits. Do not call it in such a
// function, which would wait for itself. On a loop it stops the loop meanwhile.
//
// To end a program, call Engine.Shutdown, which waits for answers, then Wait, and then
// close what the work used.
func (p *Pool) Wait() {
	p.mu.Lock()
	if p.goroutines == 0 {
		p.mu.Unlock()
		return
	}
	if p.idle == nil {
		p.idle = make(chan struct{})
	}
	idle := p.idle
	p.mu.Unlock()
	<-idle
}

// Stats returns the pool's present load.
func (p *Pool) Stats() Stats {
	p.mu.Lock()
	defer p.mu.Unlock()
	return Stats{Goroutines: p.goroutines, Running: p.running, Queued: p.queued, Blocked: p.blocked.len}
}

// A task is a function to run: a Queue's, with its answer, or one given to Go.
type task struct {
	queue  *Queue                                // nil: of Go
	reply  func(context.Context) ([]byte, error) // of Submit
	work   func(context.Context)                 // of Do
	answer func(*rondo.Conn) error               // likewise
	call   func()                                // of Go
	out    []byte                                // what reply returned, or Write was given
	err    error                                 // what reply returned
	broke  error                                 // the panic, or errGoexit
	kept   int                                   // how many bytes of out came from Write

	// Pool.mu guards the rest.

	begun bool
	done  bool
	after *task      // the next one of the queue
	turn  node[task] // in Pool.turns
}

// maxSpare is the most tasks that a pool keeps for reuse.
const maxSpare = 256

// newTask returns an empty task. p.mu is held.
func (p *Pool) newTask() *task {
	t := p.free
	if t == nil {
		t = &task{}
		t.turn.of = t
		return t
	}
	p.free, t.after = t.after, nil
	p.spare--
	return t
}

// freeTask frees a task for reuse. p.mu is held.
func (p *Pool) freeTask(t *task) {
	if p.spare == maxSpare {
		return
	}
	*t = task{after: p.free}
	t.turn.of = t
	p.free = t
	p.spare++
}

// A list is a linked queue. Elements can be removed from its middle. They embed their
// node, so a list allocates nothing.
type list[T any] struct {
	first, last *node[T]
	len         int
}

type node[T any] struct {
	of         *T // the element
	prev, next *node[T]
	linked     bool
}

func (l *list[T]) push(n *node[T]) {
	if n.prev = l.last; n.prev != nil {
		n.prev.next = n
	} else {
		l.first = n
	}
	l.last = n
	n.linked = true
	l.len++
}

// remove removes n, if it is in the list.
func (l *list[T]) remove(n *node[T]) {
	if !n.linked {
		return
	}
	if n.prev != nil {
		n.prev.next = n.next
	} else {
		l.first = n.next
	}
	if n.next != nil {
		n.next.prev = n.prev
	} else {
		l.last = n.prev
	}
	n.prev, n.next, n.linked = nil, nil, false
	l.len--
}

// pop removes and returns the first element; nil if there is none.
func (l *list[T]) pop() *T {
	n := l.first
	if n == nil {
		return nil
	}
	l.remove(n)
	return n.of
}
