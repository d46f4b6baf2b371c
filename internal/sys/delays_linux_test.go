package sys

import (
	"fmt"
	"os"
	"path/filepath"
	"testing"
	"time"
)

// fakeProc is a machine of one CPU.
type fakeProc struct {
	t    *testing.T
	dir  string
	time time.Time
}

func (p *fakeProc) write(name, text string) {
	p.t.Helper()
	path := filepath.Join(p.dir, name)
	if err := os.MkdirAll(filepath.Dir(path), 0o700); err != nil {
		p.t.Fatal(err)
	}
	if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
		p.t.Fatal(err)
	}
}

// thread says what a thread has done, in milliseconds.
func (p *fakeProc) thread(tid, ran, waited, turns int, state string) {
	p.t.Helper()
	dir := fmt.Sprintf("self/task/%d/", tid)
	p.write(dir+"schedstat", fmt.Sprintf("%d %d %d\n", ran*1e6, waited*1e6, turns))
	p.write(dir+"stat", fmt.Sprintf("%d (a ) b) %s 1 2 3\n", tid, state))
}

// steal says how long the hypervisor had the CPU, in ticks.
func (p *fakeProc) steal(ticks int) {
	p.t.Helper()
	p.write("stat", fmt.Sprintf("cpu  1 2 3 4 5 6 7 999 0 0\ncpu0 1 2 3 4 5 6 7 %d 0 0\nintr 5\n", ticks))
}

func (p *fakeProc) pass(ms int) { p.time = p.time.Add(time.Duration(ms) * time.Millisecond) }

func (p *fakeProc) want(d *Delays, ms int) {
	p.t.Helper()
	if got := d.Longest(); got != time.Duration(ms)*time.Millisecond {
		p.t.Errorf("Longest is %v, want %d ms", got, ms)
	}
}

func newFakeProc(t *testing.T) (*fakeProc, *Delays) {
	p := &fakeProc{t: t, dir: t.TempDir(), time: time.Unix(1, 0)}
	p.thread(1, 500, 100, 7, "R")
	p.thread(2, 500, 100, 7, "S")
	p.steal(50)
	return p, newDelays(p.dir, func() time.Time { return p.time })
}

// TestDelaysOfAThreadThatRuns: there are none.
func TestDelaysOfAThreadThatRuns(t *testing.T) {
	p, d := newFakeProc(t)
	p.pass(100)
	p.thread(1, 600, 100, 7, "R")
	p.want(d, 0)
}

// TestDelaysOfAThreadThatSleeps: there are none.
func TestDelaysOfAThreadThatSleeps(t *testing.T) {
	p, d := newFakeProc(t)
	p.thread(1, 500, 100, 7, "S")
	p.pass(100)
	p.want(d, 0)
	p.thread(2, 501, 100, 8, "R") // it has just begun to run
	p.want(d, 0)
}

// TestDelaysOfAThreadThatWaits counts a wait while it goes on, and once when it is over.
func TestDelaysOfAThreadThatWaits(t *testing.T) {
	p, d := newFakeProc(t)
	p.pass(100)
	p.thread(1, 530, 100, 7, "R")
	p.want(d, 70)
	p.pass(20)
	p.want(d, 90)
	p.thread(1, 530, 190, 8, "R") // now it goes on
	p.want(d, 90)
	p.pass(10)
	p.thread(1, 540, 190, 8, "R")
	p.want(d, 90)
}

// TestDelaysByAHypervisor: each CPU's count, not that of all.
func TestDelaysByAHypervisor(t *testing.T) {
	p, d := newFakeProc(t)
	p.pass(100)
	p.thread(1, 600, 100, 7, "R")
	p.steal(54)
	p.want(d, 40)
	p.steal(99) // counted late: no more than the time that has passed
	p.want(d, 100)
}

// TestDelaysOfNothing: a system without these files.
func TestDelaysOfNothing(t *testing.T) {
	d := newDelays(t.TempDir(), time.Now)
	if got := d.Longest(); got != 0 {
		t.Errorf("Longest is %v", got)
	}
}

// TestDelaysOfThisProcess: the system has the files, and says nothing impossible.
func TestDelaysOfThisProcess(t *testing.T) {
	begin := time.Now()
	d := NewDelays()
	if len(d.threads) == 0 {
		t.Error("no thread was found")
	}
	if got := d.Longest(); got < 0 || got > time.Since(begin) {
		t.Errorf("Longest is %v", got)
	}
}
