package proactor

import (
	"io"
	"net"

	"github.com/rondo-go/rondo"
	"github.com/rondo-go/rondo/internal/bridge"
)

// A stream is a connection as its loop sees it. It does not know the net.Conn that
// stands for it: those that wait for something keep that one, and nobody else.
type stream struct {
	bridge.Ours
	shard    *shard
	identity identity // if it may be forgotten
	in, out  lane

	conn    *rondo.Conn // nil: not attached yet, or closed
	wire    bridge.Conn // conn's
	freed   bool
	closing bool  // Close was called
	eof     bool  // the peer's
	left    bool  // the Conn may have input that Data has left
	short   bool  // the last read was not filled
	err     error // it has ended with this

	reads, writes line
	reading       readState
	writing       bool // the first of writes is on its way
}

type readState uint8

const (
	idle     readState = iota // the connection is paused
	armed                     // it is read, for the first of reads
	stopping                  // it is paused, and that not yet in effect
	starving                  // it is paused, for want of memory to lend
)

// start takes a submitted op.
func (st *stream) start(o *op) {
	switch {
	case st.freed:
		st.shard.finish(o, ErrClosed)
		return
	case st.err != nil:
		st.shard.finish(o, st.err)
		return
	}
	l := o.line()
	l.push(o)
	if st.conn == nil || l.first != o {
		o.watch(false) // arm and write do it otherwise
	}
	switch {
	case st.conn == nil:
		st.attach(o.Conn)
	case l.first != o:
	case o.Kind < Write:
		st.arm()
	default:
		st.write()
	}
}

// attach gives the connection to the loop.
func (st *stream) attach(nc net.Conn) {
	if err := st.shard.wire.AttachNow(nc, rondo.OpenFunc(st.open)); err != nil {
		st.drop(err)
	}
}

func (st *stream) open(c *rondo.Conn) rondo.Handler {
	st.conn, st.wire = c, bridge.Of(c)
	st.wire.NoOutputLimit()
	st.left = true // an Attached connection may bring some
	st.give(st.wire.Direct())
	st.arm()
	st.write()
	return st
}

// end has o complete with err, soon, unless it is done before the system lets go of
// its memory.
func (st *stream) end(o *op, err error) {
	switch {
	case o.why != nil:
	case o == st.reads.first && st.reading == armed:
		o.why = err
		st.conn.Pause()
		if st.wire.Receiving() {
			st.reading = stopping
			return
		}
		st.stopped()
	case o == st.writes.first && st.writing:
		o.why = err
		st.wire.Recall()
	default:
		st.finish(o, err)
		if st.reading == starving {
			st.arm()
		}
	}
}

// finish takes o out of its line and completes it.
func (st *stream) finish(o *op, err error) {
	o.line().remove(o)
	st.shard.finish(o, err)
}

// drop completes everything that waits.
func (st *stream) drop(err error) {
	for _, l := range []*line{&st.reads, &st.writes} {
		for o := l.first; o != nil; o = l.first {
			if o.why != nil {
				st.finish(o, o.why)
			} else {
				st.finish(o, err)
			}
		}
	}
}

// free ends the connection: what is under way as soon as the system lets go of it,
// and the rest now. nc is the connection, unless the whole queue ends.
func (st *stream) free(nc net.Conn) {
	if st.freed {
		return
	}
	st.freed = true
	if st.conn == nil {
		st.drop(io.ErrClosedPipe)
		if nc != nil && st.err == nil { // the loop could not take it; otherwise it has closed it
			go nc.Close() // which may wait
		}
		return
	}
	for _, l := range []*line{&st.reads, &st.writes} {
		for o := l.last; o != nil && o != l.first; o = l.last {
			st.finish(o, io.ErrClosedPipe)
		}
		if l.first != nil {
			st.end(l.first, io.ErrClosedPipe)
		}
	}
	st.close()
}

// close closes a freed connection when nothing is under way.
func (st *stream) close() {
	if st.freed && !st.closing && st.conn != nil && st.reads.first == nil && st.writes.first == nil {
		st.closing = true
		st.conn.Close()
	}
}

// Closed is called when the system has let go of everything.
func (st *stream) Closed(_ *rondo.Conn, err error) {
	if err == nil {
		err = ErrClosed
	}
	st.lost(err)
}

func (st *stream) lost(err error) {
	st.conn, st.wire, st.err = nil, nil, err
	st.reading, st.writing = idle, false
	st.drop(err)
}
