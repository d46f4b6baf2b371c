package proactor

import (
	"errors"
	"fmt"
	"iter"
	"net"
	"reflect"
	"runtime"
	"sync/atomic"
)

// registry maps connections to streams. If the loops have a duplicate of a
// connection's descriptor, the registry does not keep the connection reachable.
type registry struct {
	descriptors map[uintptr]*stream  // by the address of the net.Conn, which may be gone
	others      map[net.Conn]*stream // connections that the loops refer to anyway
	found       int
	freed       atomic.Int64
}

func (r *registry) init() {
	r.descriptors = make(map[uintptr]*stream)
	r.others = make(map[net.Conn]*stream)
}

// An identity is the address of a connection that may become unreachable, and a
// value that tells whether the object at that address is still the same one.
// Package net returns the same Addr during the whole life of a connection, and
// no other connection has that Addr while the stream holds it. A weak pointer
// would do too, but the runtime keeps weak pointers, and cleanups, in one list
// for all objects of an 8 KiB span, and walks that list. A connection has 8
// bytes; with a thousand of them in a list, the walk took longer than
// everything else here.
type identity struct {
	at    uintptr
	local net.Addr
}

// identify returns the identity of a *net.TCPConn or *net.UnixConn. Other
// connections have none.
func identify(nc net.Conn) (id identity, ok bool) {
	switch nc.(type) {
	case *net.TCPConn, *net.UnixConn:
		return identity{reflect.ValueOf(nc).Pointer(), nc.LocalAddr()}, true
	}
	return id, false
}

func (r *registry) get(nc net.Conn) *stream {
	if id, ok := identify(nc); ok {
		if st := r.descriptors[id.at]; st != nil && st.identity == id && id.local != nil {
			return st
		}
		return nil
	}
	if !reflect.TypeOf(nc).Comparable() {
		return nil
	}
	return r.others[nc]
}

var errNil = errors.New("proactor: the connection is nil")

// find returns the stream of a connection, and creates it at the first use.
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
		return nil, fmt.Errorf("proactor: the connection is a %T, which is not comparable: use a pointer: %w", nc, errors.ErrUnsupported)
	}
	st := &stream{shard: c.shards[c.turn%len(c.shards)]}
	if c.options.Choose == nil {
		c.turn++
	} else {
		l, err := c.options.Choose(nc)
		if err != nil {
			st.err = err
			return st, nil // not kept: Choose may accept it next time
		}
		if l.ID() >= len(c.shards) || c.shards[l.ID()].loop != l {
			return nil, errors.New("proactor: Options.Choose returned a loop of another engine: want one of the queue's engine")
		}
		st.shard = c.shards[l.ID()]
	}
	switch p := nc.(type) {
	case *net.TCPConn:
		watch(c, p, st)
	case *net.UnixConn:
		watch(c, p, st)
	default:
		c.streams.others[nc] = st
	}
	return st, nil
}

// watch registers a stream, and frees it when its net.Conn becomes unreachable.
func watch[T any](c *queue, p *T, st *stream) {
	st.identity, _ = identify(any(p).(net.Conn))
	c.streams.descriptors[st.identity.at] = st
	st.dropped = runtime.AddCleanup(p, (*stream).forgotten, st)
}

// forgotten is called when the net.Conn has become unreachable. Another
// connection may already have its address.
func (st *stream) forgotten() {
	c := st.shard.queue
	c.mu.Lock()
	if c.streams.descriptors[st.identity.at] == st {
		delete(c.streams.descriptors, st.identity.at)
	}
	c.streams.found++
	c.mu.Unlock()
	st.shard.ask(op{action: free, stream: st}) // even if the queue is closed: close may have missed this stream
	c.streams.freed.Add(1)
}

// free finds the stream of a connection to free. It forgets a connection that
// the garbage collector cannot find unreachable. The others stay registered, so
// that later operations get an error.
func (r *registry) free(nc net.Conn) *stream {
	st := r.get(nc)
	if st != nil && reflect.TypeOf(nc).Comparable() {
		delete(r.others, nc)
	}
	return st
}

func (r *registry) all() iter.Seq[*stream] {
	return func(yield func(*stream) bool) {
		for _, st := range r.descriptors {
			if !yield(st) {
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
