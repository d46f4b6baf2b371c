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

// registry finds a connection's stream. It does not keep those from being forgotten
// whose descriptor the loops have a duplicate of.
type registry struct {
	descriptors map[uintptr]*stream  // by the addresses of objects that may be gone
	others      map[net.Conn]*stream // which the loops hold anyway
	found       int
	freed       atomic.Int64
}

func (r *registry) init() {
	r.descriptors = make(map[uintptr]*stream)
	r.others = make(map[net.Conn]*stream)
}

// An identity is the address of a connection that may be forgotten, and what tells
// whether the object there is still the same one: package net gives the same Addr for
// as long as a connection lives, and no other connection that one, while the stream
// holds it. A weak pointer would tell too, but the runtime keeps those, as it does
// cleanups, in one list for all the objects of 8 KiB, and walks it: connections are 8
// bytes, and with a thousand of them in a list that took longer than all else here.
type identity struct {
	at    uintptr
	local net.Addr
}

// identify is of a *net.TCPConn or *net.UnixConn; others have no identity.
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
		watch(c, p, st)
	case *net.UnixConn:
		watch(c, p, st)
	default:
		c.streams.others[nc] = st
	}
	return st, nil
}

// watch enters a stream, and has it freed when the object that stands for it is
// forgotten.
func watch[T any](c *queue, p *T, st *stream) {
	st.identity, _ = identify(any(p).(net.Conn))
	c.streams.descriptors[st.identity.at] = st
	runtime.AddCleanup(p, (*stream).forgotten, st)
}

// forgotten is called when nobody has the net.Conn any more. Another one may have its
// address by now.
func (st *stream) forgotten() {
	c := st.shard.queue
	c.mu.Lock()
	if c.streams.descriptors[st.identity.at] == st {
		delete(c.streams.descriptors, st.identity.at)
	}
	c.streams.found++
	c.mu.Unlock()
	st.shard.ask(op{action: free, stream: st}) // also if the queue is closed, which may not have known it any more
	c.streams.freed.Add(1)
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
