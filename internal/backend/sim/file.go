package sim

import (
	"slices"

	"github.com/rondo-go/rondo/internal/backend"
)

type slot struct {
	generation uint32
	file       *file
}

// A file is a socket of one Backend, with the Ops in flight on it.
type file struct {
	backend   *Backend
	id        backend.File
	end       *end            // a stream socket,
	listener  *listener       // a listener,
	datagrams *datagramSocket // or a datagram socket
	closing   bool            // Close or Reset was submitted: the File is stale
	piped     bool            // a Recv without a Buf receives into the pipe
	ops       []*flight       // in flight
}

func (b *Backend) newFile() *file {
	var i uint32
	if last := len(b.free) - 1; last >= 0 {
		i = b.free[last] // the latest one, so that stale Files meet other sockets
		b.free = b.free[:last]
	} else {
		i = uint32(len(b.slots))
		b.slots = append(b.slots, slot{})
	}
	s := &b.slots[i]
	s.generation++
	s.file = &file{backend: b, id: backend.MakeFile(i, s.generation)}
	return s.file
}

// file returns the file of id, or nil if id is stale.
func (b *Backend) file(id backend.File) *file {
	i := id.Slot()
	if i >= uint32(len(b.slots)) || b.slots[i].generation != id.Generation() {
		return nil
	}
	if f := b.slots[i].file; f != nil && !f.closing {
		return f
	}
	return nil
}

func (f *file) hold(e *end) { f.end, e.file = e, f }

// changed completes the Ops that can complete now.
func (f *file) changed() {
	for _, fl := range f.ops {
		fl.try()
	}
}

// inFlight returns the Op of this kind in flight, or nil.
func (f *file) inFlight(k backend.Kind) *flight {
	for _, fl := range f.ops {
		if fl.op.Kind == k {
			return fl
		}
	}
	return nil
}

// close closes the socket. The file keeps its slot until release.
func (f *file) close(reset bool) {
	switch {
	case f.closing:
		return
	case f.listener != nil:
		f.listener.close()
	case f.datagrams != nil:
		f.datagrams.close()
	case reset:
		f.end.reset()
	default:
		f.end.close()
	}
	f.closing = true
}

func (f *file) forget(fl *flight) {
	f.ops = slices.DeleteFunc(f.ops, func(o *flight) bool { return o == fl })
	f.changed() // a Close may have waited for fl
}

// release frees the slot for another file.
func (f *file) release() {
	i := f.id.Slot()
	f.backend.slots[i].file = nil
	f.backend.free = append(f.backend.free, i)
}
