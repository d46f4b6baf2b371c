package main

import (
	"testing"
	"time"
)

// fakeMemory is a program whose collections return its garbage.
type fakeMemory struct {
	returner
	now       time.Time
	held      uint64
	garbage   uint64
	cycles    uint64
	took      float64
	work      uint64
	collected int
}

func newFakeMemory() *fakeMemory {
	m := &fakeMemory{now: time.Unix(1_700_000_000, 0)}
	m.active = func() uint64 { return m.work }
	m.read = func() memory { return memory{m.held, m.cycles, m.took} }
	m.collect = func() {
		m.held -= m.garbage
		m.garbage = 0
		m.cycles++
		m.collected++
	}
	return m
}

// wait calls look n times, and returns the number of collections.
func (m *fakeMemory) wait(looks int, work uint64) int {
	m.collected = 0
	for range looks {
		m.now = m.now.Add(lookPause)
		m.work += work
		m.look(m.now)
	}
	return m.collected
}

func TestGarbageIsReturnedSoonAfterWork(t *testing.T) {
	m := newFakeMemory()
	m.held, m.garbage, m.work = 4*keepBytes, 3*keepBytes, 1
	if n := m.wait(2, 0); n != 1 || m.held != keepBytes {
		t.Errorf("collected %d times after work, %d bytes are left", n, m.held)
	}
	if n := m.wait(1000, 0); n != 0 {
		t.Errorf("collected %d times though nothing was done", n)
	}
	m.work++
	m.held = keepBytes - 1
	if n := m.wait(10, 1); n != 0 {
		t.Errorf("collected %d times for little memory", n)
	}
}

func TestCollectionsOfNoUseAreRare(t *testing.T) {
	m := newFakeMemory()
	m.held = 10 * keepBytes
	if n := m.wait(1000, 1); n > int(1000*lookPause/maxPause)+5 || n < 50 {
		t.Errorf("collected %d times of 1000", n)
	}
	m.garbage = 9 * keepBytes
	if n := m.wait(int(maxPause/lookPause)+1, 1); n == 0 || m.held != keepBytes {
		t.Errorf("garbage was left: collected %d times, %d bytes are left", n, m.held)
	}
}

func TestGoCollectsByItselfWhenBusy(t *testing.T) {
	m := newFakeMemory()
	m.held, m.garbage = 10*keepBytes, keepBytes
	for range 100 {
		m.cycles++
		if n := m.wait(1, 1); n != 0 {
			t.Fatal("collected though Go just had")
		}
	}
	if n := m.wait(1, 1); n != 1 {
		t.Errorf("collected %d times when Go did not", n)
	}
}

func TestCollectionsTakeLittleOfTheTime(t *testing.T) {
	m := newFakeMemory()
	m.held = 10 * keepBytes
	collect := m.collect
	m.collect = func() {
		m.took += 0.6
		m.garbage = 9 * keepBytes / 8
		m.held = 10 * keepBytes
		collect()
	}
	if n := m.wait(11, 1); n != 1 {
		t.Errorf("collected %d times in %v though it takes 600 ms", n, 11*lookPause)
	}
}
