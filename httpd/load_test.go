package httpd_test

import (
	"bufio"
	"fmt"
	"io"
	"net"
	"net/http"
	"os"
	"os/exec"
	"slices"
	"strconv"
	"strings"
	"sync"
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
// them have ended, with the times that the shortest and the longest one took. The end of standard
// input stops it.
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
		}()
	}
	ready.Wait()
	fmt.Println("ready")
	ended.Wait()
	fmt.Println("ended", slices.Min(took), slices.Max(took))
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

// ended waits until all clients have ended, and returns how long the shortest and the longest one
// took.
func (l *load) ended() (shortest, longest time.Duration) {
	l.t.Helper()
	got := l.line()
	words := strings.Fields(got)
	if len(words) != 3 || words[0] != "ended" {
		l.t.Fatalf("the load says %q, and has not ended", got)
	}
	for i, took := range []*time.Duration{&shortest, &longest} {
		var err error
		if *took, err = time.ParseDuration(words[1+i]); err != nil {
			l.t.Fatal(err)
		}
	}
	return shortest, longest
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
