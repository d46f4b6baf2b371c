package main

import (
	"context"
	"io"
	"os"
	"testing"
	"time"
)

func TestParseStat(t *testing.T) {
	const stat = "4711 (a) b (1 2)) S 1 4711 4711 0 -1 4194560 100 0 0 0 1234 66 5 6 20 0 3 0 99 1000 50\n"
	got, err := parseStat([]byte(stat))
	if want := 13 * time.Second; err != nil || got != want {
		t.Errorf("parseStat = %v, %v, want %v", got, err, want)
	}
	for _, bad := range []string{"", "1 (x) S 1 2 3", "1 (x) S 1 1 1 0 -1 4 1 0 0 0 12x 66 5 6"} {
		if got, err := parseStat([]byte(bad)); err == nil {
			t.Errorf("parseStat(%q) = %v, want an error", bad, got)
		}
	}
}

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
	for x, start := 0.0, time.Now(); time.Since(start) < time.Minute; x++ {
		if now, err := cpuTime(os.Getpid()); err != nil || now > before {
			break
		}
	}
	if after, err := cpuTime(os.Getpid()); err != nil || after <= before {
		t.Errorf("cpuTime was %v, and %v (%v) after a minute of work", before, after, err)
	}
	if n, err := residentBytes(os.Getpid()); err != nil || n < 1<<20 {
		t.Errorf("residentBytes = %v, %v, want more than a megabyte", n, err)
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
