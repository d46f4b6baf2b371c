package main

import (
	"context"
	"fmt"
	"io"
	"os"
	"os/exec"
	"runtime"
	"strings"
	"sync"
	"syscall"
	"time"

	"golang.org/x/sys/unix"
)

// anyCPU leaves it to the system where a process runs.
const anyCPU = -1

// A process is a child: a server or a client. It is killed when its context
// ends, by stop, and by the system should this program die.
type process struct {
	cmd    *exec.Cmd
	stdin  io.WriteCloser // of a client
	stdout io.ReadCloser  // likewise
	said   head           // on stderr, and by a server on stdout
	once   sync.Once
	ended  chan struct{} // closed when it has been waited for
	err    error         // of the wait, once ended is closed
}

// spawnServer starts a server on a CPU.
func spawnServer(ctx context.Context, cpu int, path string, args ...string) (*process, error) {
	p := newProcess(ctx, cpu, path, args)
	p.cmd.Stdout = &p.said
	if err := p.start(cpu); err != nil {
		return nil, err
	}
	go p.wait()
	return p, nil
}

// spawnClient starts a client on a CPU. The caller reads stdout to its end
// before it calls wait.
func spawnClient(ctx context.Context, cpu int, path string, args ...string) (*process, error) {
	p := newProcess(ctx, cpu, path, args)
	var err error
	if p.stdin, err = p.cmd.StdinPipe(); err != nil {
		return nil, err
	}
	if p.stdout, err = p.cmd.StdoutPipe(); err != nil {
		return nil, err
	}
	if err := p.start(cpu); err != nil {
		return nil, err
	}
	return p, nil
}

func newProcess(ctx context.Context, cpu int, path string, args []string) *process {
	p := &process{cmd: exec.CommandContext(ctx, path, args...), ended: make(chan struct{})}
	p.cmd.Env = childEnv(cpu)
	p.cmd.Stderr = &p.said
	p.cmd.SysProcAttr = &syscall.SysProcAttr{
		Setpgid:   true, // an interrupt at the terminal is for this program, which ends its children in order
		Pdeathsig: syscall.SIGKILL,
	}
	p.cmd.WaitDelay = time.Second
	return p
}

// start starts a command bound to a CPU: a child has the affinity of the thread
// that made it.
func (p *process) start(cpu int) error {
	if cpu == anyCPU {
		return p.cmd.Start()
	}
	runtime.LockOSThread()
	defer runtime.UnlockOSThread()
	var before, one unix.CPUSet
	if err := unix.SchedGetaffinity(0, &before); err != nil {
		return os.NewSyscallError("sched_getaffinity", err)
	}
	one.Set(cpu)
	if err := unix.SchedSetaffinity(0, &one); err != nil {
		return os.NewSyscallError("sched_setaffinity", err)
	}
	err := p.cmd.Start()
	if back := unix.SchedSetaffinity(0, &before); back != nil && err == nil {
		p.stop()
		err = os.NewSyscallError("sched_setaffinity", back)
	}
	return err
}

// childEnv is this program's environment without what tunes Go's runtime. A
// process with a CPU of its own gets one P.
func childEnv(cpu int) []string {
	var env []string
	for _, v := range os.Environ() {
		switch name, _, _ := strings.Cut(v, "="); name {
		case "GOMAXPROCS", "GOGC", "GOMEMLIMIT", "GODEBUG":
		default:
			env = append(env, v)
		}
	}
	if cpu != anyCPU {
		env = append(env, "GOMAXPROCS=1")
	}
	return env
}

func (p *process) pid() int { return p.cmd.Process.Pid }

// wait waits for the end, and returns how it ended.
func (p *process) wait() error {
	p.once.Do(func() {
		p.err = p.cmd.Wait()
		close(p.ended)
	})
	<-p.ended
	return p.err
}

// stop kills and waits.
func (p *process) stop() {
	p.cmd.Process.Kill() // fails only if it has ended
	p.wait()
}

// died reports whether a server ends within the time, and how.
func (p *process) died(within time.Duration) (how string, dead bool) {
	select {
	case <-p.ended:
	case <-time.After(within):
	}
	select {
	case <-p.ended:
		return p.end(), true
	default:
		return "", false
	}
}

// end tells how a process that has been waited for ended.
func (p *process) end() string {
	text := fmt.Sprint(p.cmd.ProcessState)
	if said := p.said.line(); said != "" {
		text += ", saying: " + said
	}
	return text
}

// head keeps the beginning of what is written to it, where a crash says its
// reason, and drops the rest.
type head struct {
	mu   sync.Mutex
	kept []byte
}

const headSize = 4 << 10

func (h *head) Write(p []byte) (int, error) {
	h.mu.Lock()
	defer h.mu.Unlock()
	room := headSize - len(h.kept)
	h.kept = append(h.kept, p[:min(room, len(p))]...)
	return len(p), nil
}

// line is the first line that says something.
func (h *head) line() string {
	h.mu.Lock()
	defer h.mu.Unlock()
	line, _, _ := strings.Cut(strings.TrimSpace(string(h.kept)), "\n")
	return line
}
