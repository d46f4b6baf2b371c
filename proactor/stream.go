package proactor

import (
	"io"
	"net"
	"runtime"

	"github.com/rondo-go/rondo"
	"github.com/rondo-go/rondo/internal/bridge"
)

// A stream is a connection as its loop sees it. It has no reference to the
// net.Conn that names it, so that only pending operations keep that reachable.
type stream struct {
	bridge.Ours
	shard    *shard
	identity identity        // set if the connection may become unreachable
	dropped  runtime.Cleanup // frees the connection when the program drops its net.Conn
	in, out  lane

	conn    *rondo.Conn // nil: not attached yet, or closed
	wire    bridge.Conn // conn's
	freed   bool
	closing bool  // Close was called
	eof     bool  // the peer has closed its side
	left    bool  // the Conn may have input that Data left
	short   bool  // the last read did not fill its buffer
	err     error // not nil: the connection has ended with it

	reads, writes line
	reading       readState
	writing       bool // the connection has the first of writes
}

type readState uint8

const (
	idle     readState = iota // the connection is paused
	armed                     // the connection reads for the first of reads
	stopping                  // the connection is being paused; its memory is still in use
	starving                  // the connection is paused until there is memory to lend
)

// start begins a submitted op.
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
		o.watch(false) // otherwise arm or write calls it
	}
	switch {
	case st.conn == nil:
		st.attach(o.Conn)
	case o.found != nil && o.Kind < Write:
		st.wire.Failed("read", o.found)
	case o.found != nil:
		st.wire.Failed("write", o.found)
		if st.outputFailed() {
			st.write() // completes o
		}
	case l.first != o:
	case o.Kind < Write:
		st.arm()
	default:
		st.write()
	}
}

// attach attaches the connection to the loop.
func (st *stream) attach(nc net.Conn) {
	if err := st.shard.wire.AttachNow(nc, rondo.OpenFunc(st.open)); err != nil {
		st.drop(err)
	}
}

func (st *stream) open(c *rondo.Conn) rondo.Handler {
	st.conn, st.wire = c, bridge.Of(c)
	st.wire.NoOutputLimit()
	st.left = true // an attached connection may bring input along
	st.setDirect(st.wire.Direct())
	st.arm()
	st.write()
	return st
}

// end completes o with err once the system has released its memory, unless o is
// done before.
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

// finish removes o from its line and completes it.
func (st *stream) finish(o *op, err error) {
	o.line().remove(o)
	st.shard.finish(o, err)
}

// drop completes all waiting ops with err.
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

// free ends the connection. It ends the first op of each line once the system
// has released its memory, and the others now. nc is the connection, or nil if
// the whole queue ends.
func (st *stream) free(nc net.Conn) {
	if st.freed {
		return
	}
	st.freed = true
	if st.conn == nil {
		st.drop(io.ErrClosedPipe)
		if nc != nil && st.err == nil { // the loop has not attached it, so has not closed it
			go nc.Close() // Close may block
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

// close closes a freed connection once no operation is under way.
func (st *stream) close() {
	if st.freed && !st.closing && st.conn != nil && st.reads.first == nil && st.writes.first == nil {
		st.closing = true
		st.conn.Close()
	}
}

// Closed is called when the system has released all memory.
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
