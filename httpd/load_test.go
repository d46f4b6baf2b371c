package httpd_test

import (
	"bufio"
	"fmt"
	"io"
	"net"
	"net/http"
	"os"
	"os/exec"
	"runtime"
	"slices"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"
)

// Hostile and idle clients run in a process of their own: a process has a limited number of
// descriptors, and the memory of the server is measured without theirs. The process is this
// test's program again, with loadEnv set.
const loadEnv = "RONDO_HTTPD_LOAD"

func TestMain(m *testing.M) {
	if order := os.Getenv(loadEnv); order != "" {
		loadMain(order)
		return
	}
	os.Exit(m.Run())
}

// A client is what a connection of a load does until the server ends it or stop is closed; i is
// its number. It calls ready when the connection is as it will stay. An error ends the load.
type client func(c net.Conn, i int, ready func(), stop <-chan struct{}) error

// loadMain is the program of the other process: order names the client, the address and the
// number of connections. It says on standard output when all clients are ready, and when all of
// them have ended, with how many did before they were stopped, and how long the longest one took.
// The end of standard input stops them.
func loadMain(order string) {
	words := strings.Fields(order)
	do, addr := clients[words[0]], words[1]
	count, err := strconv.Atoi(words[2])
	if err != nil {
		panic(err)
	}
	stop := make(chan struct{})
	go func() {
		io.Copy(io.Discard, os.Stdin)
		close(stop)
	}()
	var conns []net.Conn
	for range count { // all of them before the first begins: it may take the processors
		c, err := net.Dial("tcp", addr)
		if err != nil {
			fmt.Println("dial:", err)
			return
		}
		conns = append(conns, c)
	}
	var ready, ended sync.WaitGroup
	var early atomic.Int32
	took := make([]time.Duration, count)
	began := time.Now()
	for i, c := range conns {
		ready.Add(1)
		ended.Add(1)
		go func() {
			defer ended.Done()
			defer c.Close()
			once := sync.OnceFunc(ready.Done)
			defer once()
			if err := do(c, i, once, stop); err != nil {
				fmt.Println(err)
			}
			took[i] = time.Since(began)
			select {
			case <-stop:
			default:
				early.Add(1)
			}
		}()
	}
	ready.Wait()
	fmt.Println("ready")
	ended.Wait()
	fmt.Println("ended", early.Load(), slices.Max(took))
	<-stop
}

// A load is the other process.
type load struct {
	t     *testing.T
	lines chan string
	stdin io.Closer
}

// startLoad starts count clients of a name. They end with the test.
func startLoad(t *testing.T, name, addr string, count int) *load {
	t.Helper()
	cmd := exec.Command(os.Args[0])
	cmd.Env = append(os.Environ(), fmt.Sprintf("%s=%s %s %d", loadEnv, name, addr, count))
	cmd.Stderr = os.Stderr
	stdin, err := cmd.StdinPipe()
	if err != nil {
		t.Fatal(err)
	}
	stdout, err := cmd.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	l := &load{t, make(chan string, 1), stdin}
	go func() {
		defer close(l.lines)
		for s := bufio.NewScanner(stdout); s.Scan(); {
			l.lines <- s.Text()
		}
	}()
	t.Cleanup(func() {
		stdin.Close()
		for range l.lines {
		}
		if err := cmd.Wait(); err != nil {
			t.Errorf("the load: %v", err)
		}
	})
	return l
}

// ready waits until all clients are.
func (l *load) ready() {
	l.t.Helper()
	if got := l.line(); got != "ready" {
		l.t.Fatalf("the load says %q, and is not ready", got)
	}
}

// running reports, once all clients are ready, whether one has not ended.
func (l *load) running() bool { return len(l.lines) == 0 }

// stop stops the clients.
func (l *load) stop() { l.stdin.Close() }

// ended waits until all clients have ended. It returns how many did before they were stopped, and
// how long the longest one took.
func (l *load) ended() (early int, longest time.Duration) {
	l.t.Helper()
	var took string
	got := l.line()
	_, err := fmt.Sscanf(got, "ended %d %s", &early, &took)
	if err == nil {
		longest, err = time.ParseDuration(took)
	}
	if err != nil {
		l.t.Fatalf("the load says %q, and has not ended: %v", got, err)
	}
	return early, longest
}

// line waits for what the load says.
func (l *load) line() string {
	l.t.Helper()
	select {
	case got := <-l.lines:
		return got
	case <-time.After(3 * time.Minute):
		l.t.Fatal("the load says nothing")
		return ""
	}
}

// waits are how long a client waits for its answers.
type waits struct{ median, longest time.Duration }

func (w waits) String() string { return fmt.Sprintf("%v, %v at most", w.median, w.longest) }

// bystander asks a hundred times on one connection.
func bystander(t *testing.T, addr string) waits {
	c, err := net.Dial("tcp", addr)
	if err != nil {
		t.Error("the bystander:", err)
		return waits{}
	}
	defer c.Close()
	c.SetDeadline(time.Now().Add(patience))
	r := bufio.NewReader(c)
	took := make([]time.Duration, 100)
	for i := range took {
		began := time.Now()
		if err := askSome(c, r); err != nil {
			t.Errorf("the bystander's answer %d: %v", i, err)
			return waits{}
		}
		took[i] = time.Since(began)
		time.Sleep(time.Millisecond)
	}
	slices.Sort(took)
	return waits{took[len(took)/2], took[len(took)-1]}
}

// askSome gets one answer.
func askSome(c net.Conn, r *bufio.Reader) error {
	if _, err := io.WriteString(c, "GET /some HTTP/1.1\r\nHost: a\r\n\r\n"); err != nil {
		return err
	}
	answer, err := http.ReadResponse(r, nil)
	if err != nil {
		return err
	}
	_, err = io.Copy(io.Discard, answer.Body)
	return err
}

// constant is how much memory a server may keep for the next connections, and kept how many
// goroutines. The loops' free buffers may take four times as much.
const (
	constant = 1 << 20
	kept     = 150
)

// memory returns how many bytes are in use, in heap and stacks.
func memory() int {
	runtime.GC()
	var m runtime.MemStats
	runtime.ReadMemStats(&m)
	return int(m.HeapAlloc + m.StackInuse)
}

// leastMemory returns the least of some looks: what is allocated while the collector works is
// counted as in use, and of a server at work that is much.
func leastMemory() int {
	least := memory()
	for range 4 {
		time.Sleep(20 * time.Millisecond)
		least = min(least, memory())
	}
	return least
}

// most returns the most memory that is in use until the clients have ended.
func (l *load) most() (most int) {
	l.t.Helper()
	for until := time.Now().Add(5 * patience); ; {
		most = max(most, leastMemory())
		if !l.running() {
			return most
		}
		if time.Now().After(until) {
			l.t.Fatalf("the clients do not end in %v", 5*patience)
		}
	}
}

// settled returns how much memory is in use once that no longer grows and the handlers' writes
// wait: clients fill the system's buffers before the server must keep what they do not read.
func settled(t *testing.T, calls *calls) (in int) {
	t.Helper()
	eventually(t, "memory and the handlers' writes come to rest", func() bool {
		before, writes := in, calls.writes.Load()
		in = leastMemory()
		return in <= before+before/50 && calls.writes.Load() == writes
	})
	return in
}

// patience is how long anything may take on a loaded machine before it counts as stuck.
const patience = 2 * time.Minute

func eventually(t *testing.T, what string, cond func() bool) {
	t.Helper()
	for until := time.Now().Add(patience); !cond(); time.Sleep(20 * time.Millisecond) {
		if time.Now().After(until) {
			t.Fatalf("%s: not within %v", what, patience)
		}
	}
}
