package main

import (
	"bufio"
	"context"
	"encoding/json"
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
	cmd   *exec.Cmd
	stdin io.WriteCloser // of a client
	lines *bufio.Reader  // likewise: what it says
	said  head           // on stderr, and by a server on stdout
	once  sync.Once
	ended chan struct{} // closed when it has been waited for
}

// spawnServer starts a server on a CPU, with additions to its environment.
func spawnServer(ctx context.Context, cpu int, env []string, command ...string) (*process, error) {
	p := newProcess(ctx, cpu, command)
	p.cmd.Env = append(p.cmd.Env, env...)
	p.cmd.Stdout = &p.said
	if err := p.start(cpu); err != nil {
		return nil, err
	}
	go p.wait()
	return p, nil
}

// spawnClient starts a client on a CPU. The caller reads its lines.
func spawnClient(ctx context.Context, cpu int, command ...string) (*process, error) {
	p := newProcess(ctx, cpu, command)
	var err error
	if p.stdin, err = p.cmd.StdinPipe(); err != nil {
		return nil, err
	}
	stdout, err := p.cmd.StdoutPipe()
	if err != nil {
		return nil, err
	}
	p.lines = bufio.NewReader(stdout)
	return p, p.start(cpu)
}

func newProcess(ctx context.Context, cpu int, command []string) *process {
	p := &process{cmd: exec.CommandContext(ctx, command[0], command[1:]...), ended: make(chan struct{})}
	p.cmd.Env = childEnv(cpu)
	p.cmd.Stderr = &p.said
	p.cmd.SysProcAttr = &syscall.SysProcAttr{
		Setpgid:   true, // an interrupt at the terminal is for this program, which ends its children in order
		Pdeathsig: syscall.SIGKILL,
	}
	p.cmd.WaitDelay = time.Second
	return p
}

// ask sends a client a line, unless that is empty, and reads its answer.
func (p *process) ask(line string, answer any) error {
	if line != "" {
		if _, err := io.WriteString(p.stdin, line+"\n"); err != nil {
			return fmt.Errorf("load generator: %w", err)
		}
	}
	b, err := p.lines.ReadBytes('\n')
	if err != nil {
		p.stop()
		return fmt.Errorf("the load generator ended without an answer: %s", p.end())
	}
	return json.Unmarshal(b, answer)
}

// start starts a command bound to a CPU: a child has the affinity of the thread
// that made it.
func (p *process) start(cpu int) error {
	if cpu == anyCPU {
		return p.cmd.Start()
	}
	runtime.LockOSThread()
	defer runtime.UnlockOSThread()
	restore, err := pinThread(cpu)
	if err != nil {
		return err
	}
	defer restore()
	return p.cmd.Start()
}

// pinThread binds the calling thread, which the caller has locked, to a CPU until
// restore.
func pinThread(cpu int) (restore func(), err error) {
	var before, one unix.CPUSet
	if err := unix.SchedGetaffinity(0, &before); err != nil {
		return nil, os.NewSyscallError("sched_getaffinity", err)
	}
	one.Set(cpu)
	if err := unix.SchedSetaffinity(0, &one); err != nil {
		return nil, os.NewSyscallError("sched_setaffinity", err)
	}
	return func() { unix.SchedSetaffinity(0, &before) }, nil // it was allowed before
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

// wait waits for the end; see end.
func (p *process) wait() {
	p.once.Do(func() {
		p.cmd.Wait()
		close(p.ended)
	})
	<-p.ended
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
	if said, _, _ := strings.Cut(p.said.String(), "\n"); said != "" {
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

func (h *head) Write(p []byte) (int, error) {
	const size = 4 << 10
	h.mu.Lock()
	defer h.mu.Unlock()
	h.kept = append(h.kept, p[:min(size-len(h.kept), len(p))]...)
	return len(p), nil
}

func (h *head) String() string {
	h.mu.Lock()
	defer h.mu.Unlock()
	return strings.TrimSpace(string(h.kept))
}
