//go:build linux

package uring

import (
	"iter"
	"os"
	"syscall"

	"github.com/rondo-go/rondo/internal/backend"
	"github.com/rondo-go/rondo/internal/share"
	"github.com/rondo-go/rondo/internal/sys"
)

// file is one socket. Every connection has one, so it is small.
//
// Requests in the kernel (at) and Ops are independent: a request may outlive the Ops
// that it serves, and may bring input while no Op asks for it.
type file struct {
	in   *backend.Op     // Recv, Accept, Connect, RecvFrom or poll in flight
	out  *backend.SendOp // Send in flight
	last *backend.Op     // Shutdown waiting for out; once closing, the Close or Reset waiting for the kernel
	more *surplus        // undelivered input that is in no buffer; nil: none yet

	descriptor int32 // -1: the slot is free
	generation uint32
	slot       uint32 // index of this slot; in a free slot, of the next free one
	head, tail uint16 // list of buffers with undelivered bytes; none: empty
	errno      uint16 // valid with ended
	meets      uint16 // port of the peer, if the socket may get connected to itself; see sys.MayChoosePort
	bulk       uint8  // the bulk stream ends after so many receives that do not fill a buffer; 0: not a bulk stream
	at         request
	flags      fileFlags
}

// request is the kind of request that the kernel runs for a file's incoming direction.
type request uint8

const (
	idle     request = iota
	receives         // multishot receive into buffers of the ring
	polls            // one-shot poll for input
	accepts          // multishot accept
	connects         // one-shot poll until the socket is connected
	watches          // one-shot poll for a Poll* Op
	gathers          // multishot receive of datagrams
)

type fileFlags uint16

const (
	closing        fileFlags = 1 << iota // Close was submitted
	canceling                            // the request at is being canceled
	outEnding                            // out is being canceled
	fed                                  // it is in a queue's fed list
	readable                             // there may be input in the socket
	ended                                // the stream ends after the undelivered input, with errno if that is not 0
	drained                              // the last receive emptied the socket; of a listener, acceptRest has
	unnamed                              // a unix listener: peers have no address
	packets                              // it is a datagram socket
	packetsWaiting                       // there are undelivered datagrams
	sendWaits                            // a poll for a SendTo is in the kernel
	shared                               // see backend.Handle.Shared
	acceptEnding                         // the Accept in is being canceled
	outShort                             // the last request for out has not sent everything; see sent
	unproven                             // no completion of the receive at has emptied the socket; see doubt
)

// surplus is undelivered input that must not occupy a buffer of the ring.
type surplus struct {
	bytes []byte
	conns []int32   // accepted; those before first are delivered
	first int       // index of the first undelivered connection
	taken int       // connections delivered in turn
	turn  uint32    // the turn that taken counts
	_     [7]uint64 // see share.Least
}

func (m *surplus) empty() bool { return len(m.bytes) == 0 && m.first == len(m.conns) }

// nextConn removes the first connection.
func (m *surplus) nextConn() int32 {
	fd := m.conns[m.first]
	if m.first++; m.first == len(m.conns) {
		m.first, m.conns = 0, m.conns[:0]
	}
	return fd
}

func (f *file) fd() int { return int(f.descriptor) }

func (f *file) closeNow() error {
	if f.flags&shared != 0 {
		return sys.CloseShared(f.fd())
	}
	return sys.Close(f.fd())
}

func (f *file) id() backend.File { return backend.MakeFile(f.slot, f.generation) }

// tag says what a request is for. A request's user data is its generation, slot and
// tag; the tag has the low bits.
type tag uint64

const (
	tagNothing tag = iota // the completion is ignored
	tagWake
	tagIn
	tagOut
	tagSendTo
	tagShrink
	tagCancel // of a cancel of out, if it fails
	tagTry    // of TrySendAll; an index into the batch replaces slot and generation

	tagBits = 4 // leaves 2^28 slots, more than a process can have descriptors
)

func (f *file) userData(t tag) uint64 {
	return uint64(f.generation)<<32 | uint64(f.slot)<<tagBits | uint64(t)
}

func parseUserData(u uint64) (backend.File, tag) {
	return backend.MakeFile(uint32(u)>>tagBits, uint32(u>>32)), tag(u & (1<<tagBits - 1))
}

// asks reports whether an Op from an earlier turn is waiting for f's input.
func (f *file) asks(turn uint32) bool { return f.in != nil && f.in.Slot != turn }

// endInput records how the stream ends after the undelivered input.
func (f *file) endInput(e syscall.Errno) {
	f.flags |= ended
	f.errno = uint16(e)
}

// takeEnd returns the error recorded by endInput and clears it; the next request will
// find out again.
func (f *file) takeEnd(call string) error {
	f.flags &^= ended
	return f.endError(call)
}

func (f *file) endError(call string) error {
	if f.errno == 0 {
		return nil
	}
	return os.NewSyscallError(call, syscall.Errno(f.errno))
}

func (f *file) surplus() *surplus {
	if f.more == nil {
		f.more = new(surplus)
	}
	return f.more
}

// waiting reports whether there is undelivered input.
func (f *file) waiting() bool {
	return f.head != none || f.flags&(ended|readable|packetsWaiting) != 0 || f.more != nil && !f.more.empty()
}

// busy reports whether the kernel may still complete a request of f.
func (f *file) busy() bool { return f.at != idle || f.out != nil || f.flags&sendWaits != 0 }

// table holds the files by slot. It grows by chunks that never move, so growth copies
// nothing and wastes at most one chunk. A chunk has its own pages, so its unused part
// is not resident.
type table struct {
	chunks []*[chunkSize]file
	used   uint32 // slots ever used; slot 0 is never used, so that no File is 0
	free   uint32 // first free slot; 0: none
}

const chunkSize = 1024

func (t *table) slot(slot uint32) *file { return &t.chunks[slot/chunkSize][slot%chunkSize] }

// get returns the file, or nil if the File is stale or never existed.
func (t *table) get(id backend.File) *file {
	if id.Slot() > t.used || id.Slot() == 0 {
		return nil
	}
	f := t.slot(id.Slot())
	if f.generation != id.Generation() || f.descriptor < 0 {
		return nil
	}
	return f
}

// add makes a file of a descriptor.
func (t *table) add(fd int) *file {
	sys.Room(fd)
	slot := t.free
	if slot != 0 {
		t.free = t.slot(slot).slot
	} else {
		t.used++
		slot = t.used
		if int(slot/chunkSize) >= len(t.chunks) {
			t.chunks = append(share.Queue(t.chunks), new([chunkSize]file))
		}
	}
	f := t.slot(slot)
	*f = file{descriptor: int32(fd), generation: f.generation + 1, slot: slot, head: none, tail: none}
	return f
}

func (t *table) remove(f *file) {
	slot := f.slot
	*f = file{descriptor: -1, generation: f.generation, slot: t.free}
	t.free = slot
}

// all ranges over the open files.
func (t *table) all() iter.Seq[*file] {
	return func(yield func(*file) bool) {
		for slot := uint32(1); slot <= t.used; slot++ {
			if f := t.slot(slot); f.descriptor >= 0 && !yield(f) {
				return
			}
		}
	}
}
