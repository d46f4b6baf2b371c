package main

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"net"
	"strconv"
	"sync"
	"sync/atomic"
	"time"

	"github.com/rondo-go/rondo"
	"github.com/rondo-go/rondo/rtls"
)

// load is all connections. Those of a loop belong to it.
type load struct {
	options
	engine  rondo.Engine
	address string
	message []byte
	tls     rondo.FilterOpener
	loops   []*worker

	talking atomic.Bool // connections go on sending
	ready   atomic.Int64
	echoed  atomic.Int64
	busy    atomic.Int64 // messages, or connections of rate, under way

	mu  sync.Mutex
	err error
}

// worker is what a loop counts.
type worker struct {
	loop     *rondo.Loop
	messages int
	measured bool
	times    []time.Duration
}

func newLoad(o options) (*load, error) {
	l := &load{options: o, address: net.JoinHostPort("127.0.0.1", strconv.Itoa(o.port)), tls: rtls.Client(config())}
	l.engine.Loops = o.threads
	l.engine.HighWater = 4 * o.bytes
	l.message = make([]byte, o.bytes)
	for i := range l.message {
		l.message[i] = byte(i % 251)
	}
	if err := l.engine.Start(); err != nil {
		return nil, err
	}
	for loop := range l.engine.All() {
		l.loops = append(l.loops, &worker{loop: loop})
	}
	return l, nil
}

func (l *load) fail(err error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.err == nil {
		l.err = err
	}
}

func (l *load) failure() error {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.err
}

// patience is how long is waited for anything.
const patience = 30 * time.Second

// until waits for cond.
func (l *load) until(what string, cond func() bool) error {
	for begin := time.Now(); !cond(); time.Sleep(time.Millisecond) {
		if err := l.failure(); err != nil {
			return err
		}
		if time.Since(begin) > patience {
			return fmt.Errorf("waited %v for %s", patience, what)
		}
	}
	return nil
}

// atOnce bounds the connections that are being made: the server's queue is bounded
// too.
const atOnce = 50

// connectAll opens the connections, which begin to talk, or are to rest.
func (l *load) connectAll(talk bool) error {
	l.talking.Store(talk)
	for i := range l.conns {
		w := l.loops[i%len(l.loops)]
		if err := w.loop.Post(func() { l.dial(w) }); err != nil {
			return err
		}
		if l.kind != "rate" {
			if err := l.until("connections", func() bool { return l.ready.Load() > int64(i-atOnce) }); err != nil {
				return err
			}
		}
	}
	if l.kind == "rate" {
		return l.until("a message", func() bool { return l.echoed.Load() > 0 })
	}
	return l.until("connections", func() bool { return l.ready.Load() == int64(l.conns) })
}

func (l *load) dial(w *worker) {
	c := &conn{load: l, worker: w, began: time.Now()}
	if l.kind == "rate" {
		l.busy.Add(1)
	}
	w.loop.Dial("tcp", l.address, rondo.Socket{}, rondo.FilteredDial(c.opened, l.tls))
}

// echoEach has every connection send one message, some at a time.
func (l *load) echoEach() error {
	sent := int64(0)
	for _, w := range l.loops {
		done := make(chan []rondo.Ref, 1)
		if err := w.loop.Post(func() {
			var refs []rondo.Ref
			for c := range w.loop.Conns() {
				refs = append(refs, c.Ref())
			}
			done <- refs
		}); err != nil {
			return err
		}
		for _, ref := range <-done {
			ref.Do(func(c *rondo.Conn) { c.Handler().(*conn).send(c) })
			sent++
			if err := l.until("echoes", func() bool { return l.echoed.Load() > sent-atOnce }); err != nil {
				return err
			}
		}
	}
	return l.until("echoes", func() bool { return l.echoed.Load() == int64(l.conns) })
}

// waves is how many messages of each connection are to be measured, in the mean,
// and more how much longer than asked for that may take: many connections have
// their replies in waves.
const (
	waves = 4
	more  = 3 * time.Second
)

// measure counts for a time.
func (l *load) measure(d time.Duration) (took time.Duration, messages int, times []time.Duration, cpu, server time.Duration) {
	l.each(func(w *worker) { w.messages, w.times, w.measured = 0, nil, true })
	begin, cpuBegin, serverBegin := time.Now(), cpuTime(0), cpuTime(l.pid)
	enough := l.echoed.Load() + waves*int64(l.conns)
	time.Sleep(d)
	for time.Since(begin) < d+more && l.echoed.Load() < enough {
		time.Sleep(time.Millisecond)
	}
	took, cpu, server = time.Since(begin), cpuTime(0)-cpuBegin, cpuTime(l.pid)-serverBegin
	l.each(func(w *worker) {
		messages += w.messages
		times = append(times, w.times...)
		w.measured = false
	})
	return
}

// each runs f on every loop, one after the other.
func (l *load) each(f func(w *worker)) {
	for _, w := range l.loops {
		done := make(chan bool)
		w.loop.Post(func() { f(w); close(done) })
		<-done
	}
}

// stop ends the talking, and returns how many messages got no reply.
func (l *load) stop() int {
	l.talking.Store(false)
	for begin := time.Now(); l.busy.Load() > 0 && time.Since(begin) < 2*time.Second; time.Sleep(time.Millisecond) {
	}
	return int(l.busy.Load())
}

// conn is a connection.
type conn struct {
	load   *load
	worker *worker
	began  time.Time
	done   bool
}

func (c *conn) opened(rc *rondo.Conn, err error) rondo.Handler {
	if err != nil {
		c.load.fail(err)
		return nil
	}
	c.load.ready.Add(1)
	switch {
	case c.load.kind == "rate":
		c.send(rc)
	case c.load.talking.Load():
		c.began = time.Now()
		c.send(rc)
	}
	return c
}

func (c *conn) send(rc *rondo.Conn) {
	if c.load.kind != "rate" {
		c.load.busy.Add(1)
	}
	rc.Write(c.load.message)
}

var errOther = errors.New("something else came back than was sent")

func (c *conn) Data(rc *rondo.Conn, in []byte) (int, error) {
	l, w := c.load, c.worker
	switch n := len(l.message); {
	case len(in) < n:
		rc.Want(n)
		return 0, nil
	case !bytes.Equal(in, l.message):
		l.fail(errOther)
		return 0, errOther
	}
	l.echoed.Add(1)
	if w.measured {
		w.messages++
		w.times = append(w.times, time.Since(c.began))
	}
	if l.kind == "rate" {
		c.done = true
		rc.Close()
		return len(in), nil
	}
	l.busy.Add(-1)
	if l.talking.Load() {
		c.began = time.Now()
		c.send(rc)
	}
	return len(in), nil
}

// Closed makes the next connection, in rate.
func (c *conn) Closed(_ *rondo.Conn, err error) {
	if !c.done {
		if err == nil {
			err = io.ErrUnexpectedEOF
		}
		c.load.fail(fmt.Errorf("a connection was lost: %w", err))
		return
	}
	c.load.busy.Add(-1)
	if c.load.talking.Load() {
		c.load.dial(c.worker)
	}
}
