package proactor

import (
	"errors"
	"fmt"
	"iter"
	"net"
	"reflect"
	"runtime"
	"sync/atomic"
	"weak"
)

// registry finds a connection's stream. It does not keep those from being forgotten
// whose descriptor the loops have a duplicate of.
type registry struct {
	tcp    weakly[net.TCPConn]
	unix   weakly[net.UnixConn]
	others map[net.Conn]*stream // which the loops hold anyway
	found  int
	freed  atomic.Int64
}

// weakly maps the addresses of objects that may be gone. A pointer tells whether the
// object at an address is still the one that was put there: to compare it costs less
// than to make another from the object.
type weakly[T any] map[uintptr]entry[T]

type entry[T any] struct {
	object weak.Pointer[T]
	stream *stream
}

func address[T any](p *T) uintptr { return reflect.ValueOf(p).Pointer() }

func (w weakly[T]) get(p *T) *stream {
	e, ok := w[address(p)]
	if !ok || e.object.Value() != p {
		return nil
	}
	return e.stream
}

func (r *registry) init() {
	r.tcp = make(weakly[net.TCPConn])
	r.unix = make(weakly[net.UnixConn])
	r.others = make(map[net.Conn]*stream)
}

func (r *registry) get(nc net.Conn) *stream {
	switch c := nc.(type) {
	case *net.TCPConn:
		return r.tcp.get(c)
	case *net.UnixConn:
		return r.unix.get(c)
	}
	if !reflect.TypeOf(nc).Comparable() {
		return nil
	}
	return r.others[nc]
}

var errNil = errors.New("proactor: the connection is nil")

// find returns the stream of a connection, which it makes at the first use.
func (c *queue) find(nc net.Conn) (*stream, error) {
	if nc == nil {
		return nil, errNil
	}
	if v := reflect.ValueOf(nc); v.Kind() == reflect.Pointer && v.IsNil() {
		return nil, fmt.Errorf("proactor: the connection of an operation is a nil %T", nc)
	}
	if st := c.streams.get(nc); st != nil {
		return st, nil
	}
	if !reflect.TypeOf(nc).Comparable() {
		return nil, fmt.Errorf("proactor: a %T cannot be told from another one: use a pointer: %w", nc, errors.ErrUnsupported)
	}
	st := &stream{shard: c.shards[c.turn%len(c.shards)]}
	if c.options.Choose == nil {
		c.turn++
	} else {
		l, err := c.options.Choose(nc)
		if err != nil {
			st.err = err
			return st, nil // not kept: it may be accepted next time
		}
		if l.ID() >= len(c.shards) || c.shards[l.ID()].loop != l {
			return nil, errors.New("proactor: Options.Choose returned a loop of another engine than the queue's")
		}
		st.shard = c.shards[l.ID()]
	}
	switch p := nc.(type) {
	case *net.TCPConn:
		watch(c, c.streams.tcp, p, st)
	case *net.UnixConn:
		watch(c, c.streams.unix, p, st)
	default:
		c.streams.others[nc] = st
	}
	return st, nil
}

// watch enters a stream, and has it freed when the object that stands for it is
// forgotten.
func watch[T any](c *queue, w weakly[T], p *T, st *stream) {
	at := address(p)
	w[at] = entry[T]{weak.Make(p), st}
	runtime.AddCleanup(p, func(st *stream) {
		c.mu.Lock()
		if w[at].stream == st {
			delete(w, at)
		}
		c.streams.found++
		closed := c.closed
		c.mu.Unlock()
		if !closed {
			st.shard.ask(op{action: free, stream: st})
		}
		c.streams.freed.Add(1)
	}, st)
}

// free finds the stream of a connection that is to be freed. One of those that are
// not forgotten by themselves is forgotten now; the others stay, to tell what is
// submitted still.
func (r *registry) free(nc net.Conn) *stream {
	st := r.get(nc)
	if st != nil && reflect.TypeOf(nc).Comparable() {
		delete(r.others, nc)
	}
	return st
}

func (r *registry) all() iter.Seq[*stream] {
	return func(yield func(*stream) bool) {
		for _, e := range r.tcp {
			if !yield(e.stream) {
				return
			}
		}
		for _, e := range r.unix {
			if !yield(e.stream) {
				return
			}
		}
		for _, st := range r.others {
			if !yield(st) {
				return
			}
		}
	}
}
