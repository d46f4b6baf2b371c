package main

import (
	"context"
	"io"
	"os"
	"syscall"
	"testing"
	"time"
)

func TestParseResident(t *testing.T) {
	got, err := parseResident("Name:\tx\nVmHWM:\t   9000 kB\nVmRSS:\t    1024 kB\nRssAnon:\t 1 kB\n")
	if err != nil || got != 1<<20 {
		t.Errorf("parseResident = %v, %v, want %v", got, err, 1<<20)
	}
	for _, bad := range []string{"", "Name:\tzombie\n", "VmRSS:\t12 MB\n", "VmRSS:\tmany kB\n"} {
		if got, err := parseResident(bad); err == nil {
			t.Errorf("parseResident(%q) = %v, want an error", bad, got)
		}
	}
}

func TestOwnProcess(t *testing.T) {
	before, err := cpuTime(os.Getpid())
	if err != nil {
		t.Fatal(err)
	}
	const work = 20 * time.Millisecond // of this goroutine, by the wall clock: at most so much of the CPU's
	var usage syscall.Rusage
	if err := syscall.Getrusage(syscall.RUSAGE_SELF, &usage); err != nil {
		t.Fatal(err)
	}
	start := time.Duration(usage.Utime.Nano() + usage.Stime.Nano())
	for used := time.Duration(0); used < work; used = time.Duration(usage.Utime.Nano()+usage.Stime.Nano()) - start {
		if err := syscall.Getrusage(syscall.RUSAGE_SELF, &usage); err != nil {
			t.Fatal(err)
		}
	}
	if after, err := cpuTime(os.Getpid()); err != nil || after < before+work/2 {
		t.Errorf("cpuTime was %v, and %v (%v) after %v of work", before, after, err, work)
	}
	if n, err := residentBytes(os.Getpid()); err != nil || n < 1<<20 {
		t.Errorf("residentBytes = %v, %v, want more than a megabyte", n, err)
	}
}

func TestGoneProcess(t *testing.T) {
	p, err := spawnServer(context.Background(), anyCPU, "true")
	if err != nil {
		t.Fatal(err)
	}
	p.wait()
	if got, err := cpuTime(p.pid()); err == nil {
		t.Errorf("cpuTime of a process that is gone = %v", got)
	}
}

// TestCalls counts those of a child that makes so many, and of its threads.
func TestCalls(t *testing.T) {
	if err := callsCountable(); err != nil {
		t.Logf("not possible here, so only that is tested: %v", err)
		return
	}
	const many = 20000
	p, err := spawnClient(context.Background(), anyCPU, "sh", "-c", "read line; exec dd if=/dev/zero of=/dev/null bs=1 count=10000")
	if err != nil {
		t.Fatal(err)
	}
	defer p.stop()
	counter, err := countCalls(p.pid())
	if err != nil {
		t.Fatal(err)
	}
	if _, err := io.WriteString(p.stdin, "go\n"); err != nil {
		t.Fatal(err)
	}
	if err := p.wait(); err != nil {
		t.Fatal(err)
	}
	n, took, err := counter.stop()
	if err != nil || n < many || n > many+2000 || took <= 0 {
		t.Errorf("%v calls in %v, %v, want a little more than %d", n, took, err, many)
	}
}

func TestParseBusy(t *testing.T) {
	got, err := parseBusy([]byte("cpu  100 20 300 99999 88888 4 50 6 7 8\ncpu0 1 1 1 1 1 1 1 1 1 1\n"))
	if want := 4800 * time.Millisecond; err != nil || got != want {
		t.Errorf("parseBusy = %v, %v, want %v", got, err, want)
	}
	for _, bad := range []string{"", "cpu 1 2 3", "intr 1 2 3 4 5 6 7 8 9", "cpu 1 2 3 4 5 6 7 x"} {
		if got, err := parseBusy([]byte(bad)); err == nil {
			t.Errorf("parseBusy(%q) = %v, want an error", bad, got)
		}
	}
}

// TestOthers: what a child uses is not others'; a process that is nobody's child
// here is one of them.
func TestOthers(t *testing.T) {
	const work = "i=0; while [ $i -lt 300000 ]; do i=$((i+1)); done"
	m, err := newMeter()
	if err != nil {
		t.Fatal(err)
	}
	p, err := spawnServer(context.Background(), anyCPU, "sh", "-c", work)
	if err != nil {
		t.Fatal(err)
	}
	p.wait()
	after, err := newMeter()
	if err != nil {
		t.Fatal(err)
	}
	child := p.cmd.ProcessState.UserTime() + p.cmd.ProcessState.SystemTime()
	if own := after.own - m.own; child < 10*time.Millisecond || own < child {
		t.Errorf("own time is %v, of which the child used %v", own, child)
	}
	if busy := after.busy - m.busy; busy < child/2 {
		t.Errorf("the CPUs were busy for %v while a child used %v", busy, child)
	}
	m = meter{start: after.start.Add(-time.Second), busy: after.busy - 2*time.Second, own: after.own - 500*time.Millisecond}
	if share, err := m.others(); err != nil || share < 1 {
		t.Errorf("others used %v of a CPU, %v, want about 1.5", share, err)
	}
}

func TestOpenFiles(t *testing.T) {
	count := func(script string) int {
		p, err := spawnClient(context.Background(), anyCPU, "sh", "-c", script+"echo ready; exec sleep 60")
		if err != nil {
			t.Fatal(err)
		}
		defer p.stop()
		if _, err := io.ReadFull(p.stdout, make([]byte, len("ready"))); err != nil {
			t.Fatal(err)
		}
		n, err := openFiles(p.pid())
		if err != nil {
			t.Fatal(err)
		}
		return n
	}
	few, more := count(""), count("exec 7</dev/null 8</dev/null; ")
	if few < 3 || more != few+2 {
		t.Errorf("openFiles = %d, and %d with two more open", few, more)
	}
}

func TestParseCPU(t *testing.T) {
	const two = "processor\t: 0\nmodel name\t: Fast 9000\nflags\t\t: fpu hypervisor vme\n\nprocessor\t: 1\nmodel name\t: Slow\n"
	if model, virtual := parseCPU(two); model != "Fast 9000" || !virtual {
		t.Errorf("parseCPU = %q, %v, want Fast 9000, true", model, virtual)
	}
	if model, virtual := parseCPU("processor\t: 0\nflags\t: hypervisors\n"); model == "" || virtual {
		t.Errorf("parseCPU without a model = %q, %v, want the architecture, false", model, virtual)
	}
}
