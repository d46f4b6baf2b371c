package rondo

import (
	"iter"

	"github.com/rondo-go/rondo/internal/backend"
)

// connTable holds a loop's connections, by the slots of their Files, of which
// there may be two tables. It grows by chunks, so that growing leaves no garbage
// behind.
type connTable [2][]*[connChunk]*Conn

const connChunk = 256

func (t *connTable) set(slot uint32, c *Conn) {
	chunks := &t[slot/backend.SecondTable]
	slot %= backend.SecondTable
	for int(slot/connChunk) >= len(*chunks) {
		*chunks = append(*chunks, new([connChunk]*Conn))
	}
	(*chunks)[slot/connChunk][slot%connChunk] = c
}

// all ranges over the connections in the table.
func (t *connTable) all(yield func(*Conn) bool) {
	for i := range t {
		for _, chunk := range t[i] {
			for _, c := range chunk {
				if c != nil && !yield(c) {
					return
				}
			}
		}
	}
}

// Conns ranges over the loop's connections, in no particular order. It may be
// left and connections closed on the way.
func (l *Loop) Conns() iter.Seq[*Conn] {
	return func(yield func(*Conn) bool) {
		l.check()
		for t := range l.conns {
			for i := 0; i < len(l.conns[t]); i++ {
				for _, c := range l.conns[t][i] {
					if c != nil && !yield(c) {
						return
					}
				}
			}
		}
	}
}

// enter and leave keep the table of connections.
func (l *Loop) enter(c *Conn) {
	l.conns.set(c.recv.File.Slot(), c)
	l.open++
	l.loaded.Store(int32(l.open))
}

func (l *Loop) leave(c *Conn) {
	l.conns.set(c.recv.File.Slot(), nil)
	l.open--
	l.loaded.Store(int32(l.open))
}
