package main

import (
	"context"
	"io"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"
)

// gone tells whether a process has ended and was waited for.
func gone(pid int) bool { return syscall.Kill(pid, 0) == syscall.ESRCH }

func TestStopWaits(t *testing.T) {
	p, err := spawnServer(context.Background(), anyCPU, "sleep", "60")
	if err != nil {
		t.Fatal(err)
	}
	p.stop()
	if !gone(p.pid()) {
		t.Error("the process is there after stop")
	}
	p.stop() // again does no harm
}

func TestContextKills(t *testing.T) {
	ctx, cancel := context.WithCancel(context.Background())
	p, err := spawnServer(ctx, anyCPU, "sleep", "60")
	if err != nil {
		t.Fatal(err)
	}
	cancel()
	p.wait()
	if !gone(p.pid()) {
		t.Error("the process is there after its context's end")
	}
}

func TestDeathIsTold(t *testing.T) {
	p, err := spawnServer(context.Background(), anyCPU, "sh", "-c", "echo; echo no port left; echo more; exit 3")
	if err != nil {
		t.Fatal(err)
	}
	how, dead := p.died(time.Minute)
	if want := "exit status 3, saying: no port left"; !dead || how != want {
		t.Errorf("died = %q, %v, want %q", how, dead, want)
	}
}

func TestPinning(t *testing.T) {
	cpus, err := allowedCPUs()
	if err != nil {
		t.Fatal(err)
	}
	last := cpus[len(cpus)-1]
	t.Setenv("GOGC", "7")
	p, err := spawnClient(context.Background(), last, "sh", "-c", "grep Cpus_allowed_list /proc/self/status; env")
	if err != nil {
		t.Fatal(err)
	}
	defer p.stop()
	out, err := io.ReadAll(p.stdout)
	if err != nil {
		t.Fatal(err)
	}
	lines := strings.Fields(string(out))
	if len(lines) < 2 || lines[1] != strconv.Itoa(last) {
		t.Errorf("runs on CPUs %q, want %d", lines, last)
	}
	if env := strings.Join(lines, " "); !strings.Contains(env, "GOMAXPROCS=1") || strings.Contains(env, "GOGC") {
		t.Errorf("environment %q: want GOMAXPROCS=1 and no GOGC", env)
	}
	if now, err := allowedCPUs(); err != nil || len(now) != len(cpus) {
		t.Errorf("this thread may now use CPUs %v, %v, want %v", now, err, cpus)
	}
}

// TestInterrupt runs the program, interrupts it in the middle of a run, and
// looks for what it leaves behind.
func TestInterrupt(t *testing.T) {
	dir := t.TempDir()
	program := filepath.Join(dir, "bench")
	build, err := spawnServer(context.Background(), anyCPU, "go", "build", "-o", program, ".")
	if err != nil {
		t.Fatal(err)
	}
	if err := build.wait(); err != nil {
		t.Fatal(build.end())
	}
	p, err := spawnServer(context.Background(), anyCPU, program, "--servers", "net", "--workloads", "echo-64-1",
		"--modes", "free", "--duration", "1m", "--out", filepath.Join(dir, "out"))
	if err != nil {
		t.Fatal(err)
	}
	defer p.stop()
	var children []int
	for deadline := time.Now().Add(time.Minute); len(children) < 2; time.Sleep(10 * time.Millisecond) {
		if how, dead := p.died(0); dead || time.Now().After(deadline) {
			t.Fatalf("children %v, want server and client; %s", children, how)
		}
		children = childrenOf(t, p.pid(), serverProgram, loadProgram)
	}
	if err := p.cmd.Process.Signal(syscall.SIGTERM); err != nil {
		t.Fatal(err)
	}
	how, dead := p.died(time.Minute)
	if want := "exit status 1, saying: bench: ended before anything was measured"; !dead || how != want {
		t.Errorf("ended = %v: %q, want %q", dead, how, want)
	}
	for _, pid := range children {
		if !gone(pid) {
			t.Errorf("child %d is still there", pid)
		}
	}
}

// childrenOf lists the children of a process that run one of the programs.
func childrenOf(t *testing.T, parent int, programs ...string) []int {
	t.Helper()
	stats, err := filepath.Glob("/proc/[0-9]*/stat")
	if err != nil {
		t.Fatal(err)
	}
	var pids []int
	for _, name := range stats {
		b, err := os.ReadFile(name)
		if err != nil {
			continue // it has ended
		}
		stat := string(b)
		open, end := strings.IndexByte(stat, '('), strings.LastIndexByte(stat, ')')
		fields := strings.Fields(stat[end+1:])
		for _, program := range programs {
			if stat[open+1:end] == program && fields[1] == strconv.Itoa(parent) {
				pid, err := strconv.Atoi(strings.TrimSpace(stat[:open]))
				if err != nil {
					t.Fatal(err)
				}
				pids = append(pids, pid)
			}
		}
	}
	return pids
}
