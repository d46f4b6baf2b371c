package rondo

import "iter"

// connTable holds a loop's connections, by the slots of their Files. It grows by
// chunks, so that growing leaves no garbage behind.
type connTable []*[connChunk]*Conn

const connChunk = 256

func (t *connTable) set(slot uint32, c *Conn) {
	for int(slot/connChunk) >= len(*t) {
		*t = append(*t, new([connChunk]*Conn))
	}
	(*t)[slot/connChunk][slot%connChunk] = c
}

// Conns ranges over the loop's connections, in no particular order. It may be
// left and connections closed on the way.
func (l *Loop) Conns() iter.Seq[*Conn] {
	return func(yield func(*Conn) bool) {
		l.check()
		for i := 0; i < len(l.conns); i++ {
			for _, c := range l.conns[i] {
				if c != nil && !yield(c) {
					return
				}
			}
		}
	}
}
