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

// anyCPU lets the system choose the CPU of a process.
const anyCPU = -1

// A process is a child: a server or a client. It is killed by stop, when its
// context ends, and by the system if this program dies.
type process struct {
	cmd   *exec.Cmd
	stdin io.WriteCloser // of a client
	lines *bufio.Reader  // of a client: its output
	said  head           // stderr, and a server's stdout
	once  sync.Once
	ended chan struct{} // closed after Wait
}

// spawnServer starts a server on a CPU, with additional environment variables.
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
		Setpgid:   true, // an interrupt at the terminal goes to this program only, which ends its children in order
		Pdeathsig: syscall.SIGKILL,
	}
	p.cmd.WaitDelay = time.Second
	return p
}

// ask sends a line to a client, unless the line is empty, and reads the answer.
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

// start starts the command bound to a CPU. A child inherits the affinity of the
// thread that starts it.
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

// pinThread binds the calling thread to a CPU until restore. The caller must
// have locked the thread.
func pinThread(cpu int) (restore func(), err error) {
	var before, one unix.CPUSet
	if err := unix.SchedGetaffinity(0, &before); err != nil {
		return nil, os.NewSyscallError("sched_getaffinity", err)
	}
	one.Set(cpu)
	if err := unix.SchedSetaffinity(0, &one); err != nil {
		return nil, os.NewSyscallError("sched_setaffinity", err)
	}
	return func() { unix.SchedSetaffinity(0, &before) }, nil // cannot fail: before was allowed
}

// childEnv returns this program's environment without variables that tune Go's
// runtime. A process bound to a CPU gets one P.
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

// wait waits for the end of the process; see end.
func (p *process) wait() {
	p.once.Do(func() {
		p.cmd.Wait()
		close(p.ended)
	})
	<-p.ended
}

// stop kills the process and waits for its end.
func (p *process) stop() {
	p.cmd.Process.Kill() // fails only if the process has ended
	p.wait()
}

// died reports whether a server ends within a time, and how.
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

// end says how a process ended, after wait.
func (p *process) end() string {
	text := fmt.Sprint(p.cmd.ProcessState)
	if said, _, _ := strings.Cut(p.said.String(), "\n"); said != "" {
		text += ", saying: " + said
	}
	return text
}

// head keeps the beginning of what is written to it, where a crash states its
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
