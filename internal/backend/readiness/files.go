//go:build unix

package readiness

import (
	"iter"

	"github.com/rondo-go/rondo/internal/backend"
	"github.com/rondo-go/rondo/internal/share"
	"github.com/rondo-go/rondo/internal/sys"
)

// file is one socket. Every connection has one, so it is small.
type file struct {
	in  *backend.Op     // Recv, Accept, Connect, RecvFrom or poll in flight
	out *backend.SendOp // Send in flight; a Shutdown may wait for it

	descriptor int32 // -1: the slot is free
	generation uint32
	slot       uint32 // index of this slot; in a free slot, of the next free one
	meets      uint16 // port of the peer, if the socket may get connected to itself; see sys.MayChoosePort
	keepAlive  uint16 // seconds, to be set later; 0: nothing is
	watched    Interest
	full       bool // the last send was short, and no event came since
	closing    bool
	more       bool // there may be input that no edge will report
	hup        bool // Hup was reported, or the end of the stream received
	mark       bool // Mark was reported, and the socket was not empty since
	missed     bool // an edge found no Op since the last Recv
	datagram   bool // it has an entry in datagrams.sockets
	pending    bool // a SendTo is in flight
	edged      bool // it is a stream, watched with Edge for input
	shared     bool // see backend.Handle.Shared
	piped      bool // a Recv without a Buf receives into the pipe
	lost       bool // a splice may have lost an error; see lostError
}

func (f *file) fd() int { return int(f.descriptor) }

// asks reports whether an Op of this kind, submitted in an earlier turn, is in flight.
func (f *file) asks(k backend.Kind, turn uint32) bool {
	return f.in != nil && f.in.Kind == k && f.in.Slot != turn
}

// stream returns the interest that f needs to receive.
func (f *file) stream() Interest {
	if f.edged {
		return In | Edge
	}
	return In
}

// wanted returns the interest that the Ops in flight need.
func (f *file) wanted() (i Interest) {
	if f.in != nil {
		switch f.in.Kind {
		case backend.Connect, backend.PollOut:
			i = Out
		case backend.PollBoth:
			i = In | Out
		case backend.RecvFrom:
			i = In
		default:
			i = In | Edge
		}
	}
	if f.out != nil || f.pending {
		i |= Out
	}
	return i
}

func (b *Backend) watch(f *file, now Interest) error {
	old := f.watched
	if now == old {
		return nil
	}
	f.watched = now
	err := b.poller.Watch(f.fd(), f.id(), old, now)
	if err != nil {
		f.watched = old
	}
	return err
}

// unwatch removes interests. That needs no kernel memory, so it does not fail.
func (b *Backend) unwatch(f *file, now Interest) { _ = b.watch(f, now) }

// forget ends the watch of a file that is closed next.
func (b *Backend) forget(f *file) {
	if f.watched != 0 {
		// Somebody may have a duplicate all the same, and close it a moment later: another
		// process that has sent it. Until then edges do no harm, but otherwise the loop would spin.
		alone := f.watched&Edge != 0 && !f.shared
		f.watched = 0
		b.poller.Forget(f.fd(), f.id(), alone)
	}
}

func (f *file) closeNow() error {
	if f.shared {
		return sys.CloseShared(f.fd())
	}
	return sys.Close(f.fd())
}

// table holds the files by slot. It grows by chunks that never move, so growth copies
// nothing and wastes at most one chunk.
type table struct {
	chunks []*[chunkSize]file
	used   uint32 // slots ever used; slot 0 is never used, so that no File is 0
	free   uint32 // first free slot; 0: none
}

const chunkSize = 256

func (t *table) at(slot uint32) *file { return &t.chunks[slot/chunkSize][slot%chunkSize] }

// get returns the file, or nil if the File is stale or never existed.
func (t *table) get(id backend.File) *file {
	if id.Slot() > t.used || id.Slot() == 0 {
		return nil
	}
	f := t.at(id.Slot())
	if f.generation != id.Generation() || f.descriptor < 0 {
		return nil
	}
	return f
}

func (t *table) add(fd int) backend.File {
	sys.Room(fd)
	slot := t.free
	if slot != 0 {
		t.free = t.at(slot).slot
	} else {
		t.used++
		slot = t.used
		if int(slot/chunkSize) >= len(t.chunks) {
			t.chunks = append(share.Queue(t.chunks), new([chunkSize]file))
		}
	}
	f := t.at(slot)
	*f = file{descriptor: int32(fd), generation: f.generation + 1, slot: slot}
	return backend.MakeFile(slot, f.generation)
}

func (t *table) remove(id backend.File) {
	f := t.at(id.Slot())
	*f = file{descriptor: -1, generation: f.generation, slot: t.free}
	t.free = id.Slot()
}

func (f *file) id() backend.File { return backend.MakeFile(f.slot, f.generation) }

// all ranges over the open files.
func (t *table) all() iter.Seq[*file] {
	return func(yield func(*file) bool) {
		for slot := uint32(1); slot <= t.used; slot++ {
			if f := t.at(slot); f.descriptor >= 0 && !yield(f) {
				return
			}
		}
	}
}
