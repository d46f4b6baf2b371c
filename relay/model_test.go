package relay_test

import (
	"errors"
	"io"
	"math/rand/v2"
	"net"
	"os"
	"testing"
	"time"

	"github.com/rondo-go/rondo/relay"
)

// A peer is the other end of one of a pair's connections.
type peer interface {
	net.Conn
	CloseWrite() error
	Reset() error
}

// A model is what the peers of a pair have done. Index i is the direction from peer i.
type model struct {
	t        *testing.T
	r        *rand.Rand
	now      func() time.Time
	sleep    func(time.Duration)
	id       int  // of the pair: its bytes are others than those of other pairs
	gentle   bool // no peer resets its connection
	peers    [2]peer
	sent     [2]int64
	got      [2]int64
	ended    [2]bool // the stream
	over     [2]bool // and that has been read
	reset    bool
	resetter int
}

// byteOf is the byte of a direction at a place.
func (m *model) byteOf(direction int, i int64) byte {
	return byte(i*7 + i>>8*13 + i>>16*31 + int64(direction)*101 + int64(m.id)*57)
}

func (m *model) step() {
	i := m.r.IntN(2)
	switch k := m.r.IntN(100); {
	case k < 45:
		if !m.ended[i] {
			m.write(i, 1+m.r.IntN([]int{1, 10, 1000, 40_000, 200_000}[m.r.IntN(5)]))
		}
	case k < 85:
		m.read(i, 1+m.r.IntN([]int{1, 1000, 100_000}[m.r.IntN(3)]))
	case k < 95:
		m.sleep(time.Duration(m.r.IntN(3)) * time.Millisecond)
	case k < 98:
		m.end(i)
	case k < 99:
		m.resetBy(i)
		m.afterReset()
	}
}

// resetBy resets a peer's connection. afterReset comes next.
func (m *model) resetBy(i int) {
	if !m.ended[i] && !m.gentle { // otherwise only a write shows it
		m.peers[i].Reset()
		m.reset, m.resetter = true, i
		m.ended[i] = true
	}
}

// afterReset reads what the other peer gets before the reset.
func (m *model) afterReset() {
	if m.reset {
		m.readAll(m.resetter)
		m.ended[1-m.resetter] = true
		m.peers[1-m.resetter].Close()
	}
}

// stepApart is a step while nobody serves the peers.
func (m *model) stepApart() {
	switch i := m.r.IntN(2); {
	case m.reset:
	case m.r.IntN(100) == 0:
		m.resetBy(i)
	case m.r.IntN(20) == 0:
		m.end(i)
	case m.r.IntN(2) == 0:
		m.read(i, 1+m.r.IntN(100_000))
	case !m.ended[i]:
		m.write(i, 1+m.r.IntN(100_000))
	}
}

func (m *model) write(i, size int) {
	p := make([]byte, size)
	for j := range p {
		p[j] = m.byteOf(i, m.sent[i]+int64(j))
	}
	m.peers[i].SetWriteDeadline(m.now().Add(time.Duration(1+m.r.IntN(3000)) * time.Microsecond))
	n, err := m.peers[i].Write(p)
	m.sent[i] += int64(n)
	if err != nil && !errors.Is(err, os.ErrDeadlineExceeded) {
		m.t.Fatalf("pair %d: write by peer %d: %v", m.id, i, err)
	}
}

// read reads of the direction from peer i. It reports whether more may come.
func (m *model) read(i, size int) bool {
	if m.over[i] {
		return false
	}
	p := make([]byte, size)
	to := m.peers[1-i]
	to.SetReadDeadline(m.now().Add(time.Duration(1+m.r.IntN(3000)) * time.Microsecond))
	n, err := to.Read(p)
	for j := range p[:n] {
		if p[j] != m.byteOf(i, m.got[i]+int64(j)) {
			m.t.Fatalf("pair %d: from peer %d: byte %d is wrong", m.id, i, m.got[i]+int64(j))
		}
	}
	m.got[i] += int64(n)
	switch {
	case m.got[i] > m.sent[i]:
		m.t.Fatalf("pair %d: from peer %d: %d bytes came of %d", m.id, i, m.got[i], m.sent[i])
	case err == nil || errors.Is(err, os.ErrDeadlineExceeded):
		return true
	case err == io.EOF && (!m.ended[i] || m.reset || m.got[i] != m.sent[i]):
		m.t.Fatalf("pair %d: from peer %d: the end of the stream after %d bytes of %d; ended %v, reset %v", m.id, i, m.got[i], m.sent[i], m.ended[i], m.reset)
	case err != io.EOF && !m.reset:
		m.t.Fatalf("pair %d: from peer %d: %v", m.id, i, err)
	}
	m.over[i] = true
	return false
}

func (m *model) readAll(i int) {
	for m.read(i, 100_000) {
	}
}

func (m *model) end(i int) {
	if !m.ended[i] {
		m.ended[i] = true
		m.peers[i].CloseWrite()
	}
}

// finish ends what has not ended, and reads the rest.
func (m *model) finish() {
	if m.reset {
		return
	}
	for i := range 2 {
		m.end(i)
	}
	for i := range 2 {
		m.readAll(i)
	}
}

// check compares the end of the pair.
func (m *model) check(end relay.End) {
	m.t.Helper()
	if m.reset != (end.Err != nil) || !m.reset && (end.FromA != m.sent[0] || end.FromB != m.sent[1]) {
		m.t.Errorf("pair %d: the end is %+v, want %d bytes each way; reset: %v", m.id, end, m.sent, m.reset)
	}
}
