package sys

import (
	"bytes"
	"os"
	"strconv"
	"strings"
	"time"
)

// Delays measures how long the machine keeps threads of this process from running: because
// other threads have the CPU, or because a hypervisor has it ("steal").
type Delays struct {
	proc    string // /proc
	now     func() time.Time
	begun   time.Time
	threads map[string]*threadDelay
	stolen  []time.Duration // at the beginning, for each CPU
}

// threadDelay is what is known of a thread. The kernel adds up how long a thread has waited
// for a CPU when the wait ends, so a wait that goes on shows otherwise: the thread is ready
// to run, and neither its time on a CPU nor the number of its turns there grows.
type threadDelay struct {
	first  schedstat // at the beginning
	turn   schedstat // when its latest turn was seen first, or it was seen asleep
	turnAt time.Time
}

// schedstat is what the kernel says of a thread: see Documentation/scheduler/sched-stats.rst.
type schedstat struct {
	ran, waited time.Duration
	turns       uint64
}

// maxDelayed bounds how many threads are looked at.
const maxDelayed = 128

// NewDelays begins to measure.
func NewDelays() *Delays { return newDelays("/proc", time.Now) }

func newDelays(proc string, now func() time.Time) *Delays {
	d := &Delays{proc: proc, now: now, begun: now(), threads: make(map[string]*threadDelay)}
	d.stolen = d.steal()
	d.Longest()
	return d
}

// Longest returns how long a thread was kept from running since NewDelays: of the thread
// that waited longest. It takes some 20 µs for each thread.
func (d *Delays) Longest() (longest time.Duration) {
	now := d.now()
	names, _ := readNames(d.proc + "/self/task")
	for _, name := range names[:min(len(names), maxDelayed)] {
		if s, ready, ok := d.look(name); ok {
			longest = max(longest, d.delay(name, s, ready, now))
		}
	}
	for i, s := range d.steal() {
		if i < len(d.stolen) {
			longest = max(longest, s-d.stolen[i])
		}
	}
	return min(longest, now.Sub(d.begun))
}

// delay returns how long a thread has been kept from running.
func (d *Delays) delay(name string, s schedstat, ready bool, now time.Time) time.Duration {
	t := d.threads[name]
	if t == nil {
		t = &threadDelay{first: s, turn: s, turnAt: now}
		d.threads[name] = t
	}
	if s.turns != t.turn.turns || !ready {
		t.turn, t.turnAt = s, now
	}
	waited := s.waited - t.first.waited
	if ready {
		waited += max(0, now.Sub(t.turnAt)-(s.ran-t.turn.ran))
	}
	return waited
}

// look reads what the kernel says of a thread, and whether it is ready to run, or running.
func (d *Delays) look(name string) (s schedstat, ready, ok bool) {
	dir := d.proc + "/self/task/" + name
	text, err := os.ReadFile(dir + "/schedstat")
	if err != nil {
		return s, false, false
	}
	field := strings.Fields(string(text))
	if len(field) < 3 {
		return s, false, false
	}
	s.ran, s.waited = nanoseconds(field[0]), nanoseconds(field[1])
	s.turns, _ = strconv.ParseUint(field[2], 10, 64)
	text, _ = os.ReadFile(dir + "/stat")
	_, state, _ := bytes.Cut(text[bytes.LastIndexByte(text, ')')+1:], []byte(" "))
	return s, bytes.HasPrefix(state, []byte("R")), true
}

// steal returns how long a hypervisor has had each CPU.
func (d *Delays) steal() (all []time.Duration) {
	const tick = 10 * time.Millisecond // USER_HZ is 100
	text, _ := os.ReadFile(d.proc + "/stat")
	for line := range strings.Lines(string(text)) {
		field := strings.Fields(line)
		if len(field) > 8 && strings.HasPrefix(line, "cpu") && field[0] != "cpu" {
			all = append(all, tick*nanoseconds(field[8]))
		}
	}
	return all
}

func nanoseconds(text string) time.Duration {
	n, _ := strconv.ParseInt(text, 10, 64)
	return time.Duration(n)
}

// readNames returns the names in a directory, in no order.
func readNames(dir string) ([]string, error) {
	f, err := os.Open(dir)
	if err != nil {
		return nil, err
	}
	defer f.Close()
	return f.Readdirnames(maxDelayed)
}
