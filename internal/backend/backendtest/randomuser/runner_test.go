package randomuser

import (
	"bufio"
	"bytes"
	"encoding/json"
	"fmt"
	"io"
	"net"
	"os"
	"os/exec"
	"runtime"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"
	"weak"

	"github.com/rondo-go/rondo/internal/buf"
)

// A result is the result of a world.
type result struct {
	Fails []string
	Steps []stepRecord   `json:",omitempty"`
	Cover map[string]int `json:",omitempty"` // by "callback method"
}

// workerEnv tells the test's own program to play worlds.
const workerEnv = "RONDO_RANDOM_USER"

func TestMain(m *testing.M) {
	if os.Getenv(workerEnv) != "" {
		work(os.Stdin, os.Stdout)
		return
	}
	os.Exit(m.Run())
}

// hangTime is how long, in real time, a world may do nothing: longer than a machine may
// stop a process.
const hangTime = 20 * time.Second

// work plays the scripts that it reads, and writes the results.
func work(in io.Reader, out io.Writer) {
	if ln, err := net.Listen("tcp", "127.0.0.1:0"); err == nil { // starts Go's own poller, which stays
		ln.Close()
	}
	buf.Watch = account
	scripts := json.NewDecoder(in)
	results := json.NewEncoder(out)
	var past history
	for {
		var s script
		if scripts.Decode(&s) != nil {
			return
		}
		r := playOne(s, &past, func(r result) {
			results.Encode(r)
			os.Exit(0)
		})
		past.audit(&r)
		results.Encode(r)
	}
}

// A history holds a process's worlds, which must not stay in memory.
type history struct {
	worlds []played
}

type played struct {
	seed  uint64
	world weak.Pointer[world]
}

// auditTime is the number of worlds after which memory is looked at. Half of them are
// old then: timers in real time, which may hold a world, have expired.
const auditTime = 100

// audit reports worlds that the garbage collector cannot free.
func (h *history) audit(r *result) {
	if len(h.worlds) < auditTime {
		return
	}
	runtime.GC()
	old := h.worlds[:auditTime/2]
	var left []uint64
	for _, p := range old {
		if p.world.Value() != nil {
			left = append(left, p.seed)
		}
	}
	if len(left) > 0 {
		r.Fails = append(r.Fails, fmt.Sprintf("left: the worlds of these seeds stay in memory: %v", left))
	}
	h.worlds = slices.Delete(h.worlds, 0, len(old))
}

func playOne(s script, past *history, exit func(result)) result {
	goroutines, files := runtime.NumGoroutine(), openFiles()
	account.open()
	w := newWorld(s)
	past.worlds = append(past.worlds, played{s.Seed, weak.Make(w)})
	collect := func() result {
		r := result{Fails: w.failed(), Cover: map[string]int{}}
		if len(r.Fails) > 0 {
			r.Steps = w.src.decided()
		}
		w.mu.Lock()
		defer w.mu.Unlock()
		for k, n := range w.cover {
			r.Cover[k[0]+" "+k[1]] = n
		}
		return r
	}
	var once sync.Once
	w.fatal = func() {
		once.Do(func() { exit(collect()) })
		select {}
	}
	done := make(chan struct{})
	go func() {
		last, since := uint64(0), time.Now()
		for {
			select {
			case <-done:
				return
			case <-time.After(100 * time.Millisecond):
			}
			if p := w.pulse.Load(); p != last {
				last, since = p, time.Now()
			} else if time.Since(since) > hangTime {
				w.die("hang: nothing happens any more\n%s", stacks())
			}
		}
	}()
	w.play()
	close(done)
	w.src.close()
	if len(w.failed()) == 0 {
		w.gone("goroutines", runtime.NumGoroutine, goroutines)
		w.gone("open files", openFiles, files)
	}
	return collect()
}

// gone fails if more is left than before. Things may take a while to end.
func (w *world) gone(what string, count func() int, before int) {
	for since := time.Now(); count() > before; time.Sleep(time.Millisecond) {
		if time.Since(since) > hangTime/2 {
			w.failf("left: %d %s more than before\n%s%s", count()-before, what, files(), stacks())
			return
		}
	}
}

// openFiles counts the process's descriptors, if the system lists them.
func openFiles() int {
	list, _ := os.ReadDir("/proc/self/fd")
	return len(list)
}

// files lists the process's descriptors, if the system lists them.
func files() string {
	text := ""
	list, _ := os.ReadDir("/proc/self/fd")
	for _, f := range list {
		to, _ := os.Readlink("/proc/self/fd/" + f.Name())
		text += fmt.Sprintf("      descriptor %s: %s\n", f.Name(), to)
	}
	return text
}

// A worker is a process that plays worlds.
type worker struct {
	cmd    *exec.Cmd
	in     io.WriteCloser
	out    *json.Decoder
	stderr bytes.Buffer
}

func (p *worker) start() error {
	p.cmd = exec.Command(os.Args[0])
	p.cmd.Env = append(os.Environ(), workerEnv+"=1", "GORACE=halt_on_error=1")
	p.stderr.Reset()
	p.cmd.Stderr = &p.stderr
	in, err := p.cmd.StdinPipe()
	if err != nil {
		return err
	}
	out, err := p.cmd.StdoutPipe()
	if err != nil {
		return err
	}
	p.in, p.out = in, json.NewDecoder(bufio.NewReader(out))
	return p.cmd.Start()
}

// stop ends the process.
func (p *worker) stop() {
	if p.cmd == nil {
		return
	}
	p.in.Close()
	p.cmd.Process.Kill()
	p.cmd.Wait()
	p.cmd = nil
}

// play makes the worker play a script. After a failure the process is not used again.
func (p *worker) play(s script) (result, error) {
	if p.cmd == nil {
		if err := p.start(); err != nil {
			return result{}, err
		}
	}
	if err := json.NewEncoder(p.in).Encode(s); err != nil {
		p.stop()
		return result{}, err
	}
	var r result
	if err := p.out.Decode(&r); err != nil {
		p.cmd.Wait()
		text := p.stderr.String()
		p.cmd = nil
		r := result{Fails: []string{"crash: " + brief(text)}}
		if s.Record != "" {
			r.Steps = readRecord(s.Record)
		}
		return r, nil
	}
	if len(r.Fails) > 0 {
		p.stop()
	}
	return r, nil
}

// brief shortens the output of a process that crashed.
func brief(text string) string {
	if strings.Contains(text, "DATA RACE") {
		return firstLines(text, 60)
	}
	return firstLines(text, 2) + "\n" + calls(text, 16)
}

func firstLines(s string, n int) string {
	lines := strings.SplitN(s, "\n", n+1)
	return strings.Join(lines[:min(n, len(lines))], "\n")
}

// kind identifies a failure while it is shortened.
func (r result) kind() string {
	if len(r.Fails) == 0 {
		return ""
	}
	kind, _, _ := strings.Cut(r.Fails[0], ":")
	return kind
}

func (r result) String() string {
	var b strings.Builder
	for _, f := range r.Fails {
		fmt.Fprintf(&b, "  %s\n", f)
	}
	return b.String()
}
