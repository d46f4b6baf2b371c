//go:build linux

package uring

import (
	"iter"
	"os"
	"syscall"

	"github.com/rondo-go/rondo/internal/backend"
	"github.com/rondo-go/rondo/internal/sys"
)

// file is one socket. There is one for every connection, so it is small.
//
// What it receives and the Op that asks for it come and go by themselves: a
// request in the kernel (at) outlives the Ops that it serves, and brings what
// nobody asked for at the moment.
type file struct {
	in   *backend.Op     // Recv, Accept, Connect or a Poll in flight
	out  *backend.SendOp // Send in flight
	last *backend.Op     // Shutdown that waits for out; once closing, the Close or Reset that waits for the kernel
	more *surplus        // what is received and in no buffer; nil: never any

	descriptor int32 // -1: the slot is free
	generation uint32
	slot       uint32 // its own; of a free one, the next free one
	head, tail uint16 // buffers with bytes received, a list; none: there are none
	errno      uint16 // with ended
	bulk       uint8  // so many receives that do not fill a buffer, and it is no bulk stream any more
	at         request
	flags      fileFlags
}

// request is what the kernel is doing for a file's incoming direction.
type request uint8

const (
	idle     request = iota
	receives         // into buffers of the ring, again and again
	polls            // waits until there is something to receive
	accepts          // again and again
	connects         // waits until the socket is connected
	watches          // waits for what a Poll asks for
	gathers          // datagrams, again and again
)

type fileFlags uint16

const (
	closing        fileFlags = 1 << iota // Close was submitted
	canceling                            // at is being ended
	outEnding                            // out is being ended
	fed                                  // it is in queue.fed
	readable                             // there may be something to receive
	ended                                // after what is at hand: the stream if errno is 0, else with that error
	drained                              // the last receive left nothing behind
	unnamed                              // of a unix listener: its connections' peers have no address
	packets                              // it is a datagram socket
	packetsWaiting                       // there are datagrams at hand
	sendWaits                            // the kernel waits until it can send, for a SendTo
	shared                               // see backend.Handle
	meets                                // connecting, perhaps to itself
)

// surplus is input that has to wait and is not to occupy a buffer of the ring.
type surplus struct {
	bytes []byte
	conns []int32 // accepted; the first ones are gone
	first int     // that is not
	taken int     // how many connections this turn brought
	turn  uint32  // which that is
}

func (m *surplus) empty() bool { return len(m.bytes) == 0 && m.first == len(m.conns) }

// nextConn takes the first connection.
func (m *surplus) nextConn() int32 {
	fd := m.conns[m.first]
	if m.first++; m.first == len(m.conns) {
		m.first, m.conns = 0, m.conns[:0]
	}
	return fd
}

func (f *file) fd() int { return int(f.descriptor) }

// closeNow closes the descriptor.
func (f *file) closeNow() error {
	if f.flags&shared != 0 {
		return sys.CloseShared(f.fd())
	}
	return sys.Close(f.fd())
}

func (f *file) id() backend.File { return backend.MakeFile(f.slot, f.generation) }

// tag says what a request was submitted for. It is the low bits of its user
// data, below the slot; the generation is above it.
type tag uint64

const (
	tagNothing tag = iota // nobody cares how it ends
	tagWake
	tagIn
	tagOut
	tagSendTo
	tagShrink
	tagTry // of TrySendAll, with a place among those in the file's stead

	tagBits = 4 // which leaves 2^28 slots, more than a process has descriptors
)

func (f *file) userData(t tag) uint64 {
	return uint64(f.generation)<<32 | uint64(f.slot)<<tagBits | uint64(t)
}

func parseUserData(u uint64) (backend.File, tag) {
	return backend.MakeFile(uint32(u)>>tagBits, uint32(u>>32)), tag(u & (1<<tagBits - 1))
}

// asks reports whether an Op of an earlier turn wants f's input.
func (f *file) asks(turn uint32) bool { return f.in != nil && f.in.Slot != turn }

// endInput notes what comes after the input at hand.
func (f *file) endInput(e syscall.Errno) {
	f.flags |= ended
	f.errno = uint16(e)
}

// takeEnd is the error that endInput noted, which nobody gets again. The next
// request finds out anew.
func (f *file) takeEnd(call string) error {
	f.flags &^= ended
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

// waiting reports whether there is input at hand.
func (f *file) waiting() bool {
	return f.head != none || f.flags&(ended|readable|packetsWaiting) != 0 || f.more != nil && !f.more.empty()
}

// busy reports whether the kernel may still complete something for f.
func (f *file) busy() bool { return f.at != idle || f.out != nil || f.flags&sendWaits != 0 }

// table holds the files by slot. It grows by chunks that stay where they are,
// so that a growing table copies nothing and wastes at most one chunk, of which
// what was not used is not resident: a chunk is pages of its own.
type table struct {
	chunks []*[chunkSize]file
	used   uint32 // slots ever used; slot 0 is not, so that File 0 is none
	free   uint32 // head of the list of free ones; 0: none
}

const chunkSize = 1024

func (t *table) slot(slot uint32) *file { return &t.chunks[slot/chunkSize][slot%chunkSize] }

// get is nil for a File that is stale or never was.
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
			t.chunks = append(t.chunks, new([chunkSize]file))
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
