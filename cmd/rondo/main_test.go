package main

import (
	"bufio"
	"bytes"
	"fmt"
	"io"
	"net"
	"os"
	"os/exec"
	"regexp"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"
)

// patience is the timeout for a process to do something quick.
const patience = 2 * time.Minute

// binary is this test's binary, which runs the program when a test starts it.
var binary string

func TestMain(m *testing.M) {
	const isProgram = "RONDO_TEST_STARTED_ME"
	if os.Getenv(isProgram) != "" {
		main()
		return
	}
	os.Setenv(isProgram, "yes")
	// A program with the race detector would wait a second before it ends.
	os.Setenv("GORACE", os.Getenv("GORACE")+" atexit_sleep_ms=0")
	var err error
	if binary, err = os.Executable(); err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
	os.Exit(m.Run())
}

// process is a running program.
type process struct {
	t     *testing.T
	cmd   *exec.Cmd
	ended chan struct{}
	err   error // of Wait

	mu  sync.Mutex
	log bytes.Buffer // its standard error
}

// start runs the program and waits for its start-up line, from which it
// returns the addresses.
func start(t *testing.T, args ...string) (p *process, addresses []string) {
	t.Helper()
	return startCommand(t, exec.Command(binary, args...))
}

func startCommand(t *testing.T, cmd *exec.Cmd) (p *process, addresses []string) {
	t.Helper()
	args := cmd.Args[1:]
	p = &process{t: t, cmd: cmd, ended: make(chan struct{})}
	signalable(p.cmd)
	stderr, err := p.cmd.StderrPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := p.cmd.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		p.cmd.Process.Kill()
		<-p.ended
	})
	ready := make(chan string, 1)
	go p.collect(stderr, ready)
	select {
	case line := <-ready:
		list := regexp.MustCompile(`addresses"?[=:]"?\[([^\]]*)\]`).FindStringSubmatch(line)
		if list == nil {
			t.Fatalf("no addresses in %q", line)
		}
		return p, strings.FieldsFunc(list[1], func(r rune) bool { return strings.ContainsRune(` ",`, r) })
	case <-p.ended:
		t.Fatalf("%v ended: %v\n%s", args, p.err, p.stderr())
	case <-time.After(patience):
		t.Fatalf("%v is not ready:\n%s", args, p.stderr())
	}
	return nil, nil
}

func (p *process) collect(stderr io.Reader, ready chan<- string) {
	lines := bufio.NewScanner(stderr)
	for lines.Scan() {
		p.mu.Lock()
		fmt.Fprintln(&p.log, lines.Text())
		p.mu.Unlock()
		if strings.Contains(lines.Text(), "is ready") {
			select {
			case ready <- lines.Text():
			default: // of a process that has replaced this one
			}
		}
	}
	p.err = p.cmd.Wait()
	close(p.ended)
}

func (p *process) stderr() string {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.log.String()
}

// stop sends a signal and expects the program to end with a code.
func (p *process) stop(sig os.Signal, code int) {
	p.t.Helper()
	p.signal(sig)
	p.wait(code)
}

func (p *process) signal(sig os.Signal) {
	p.t.Helper()
	if err := sendSignal(p.cmd, sig); err != nil {
		p.t.Fatal(err)
	}
}

func (p *process) wait(code int) {
	p.t.Helper()
	select {
	case <-p.ended:
	case <-time.After(patience):
		p.t.Fatalf("still running:\n%s", p.stderr())
	}
	if got := p.cmd.ProcessState.ExitCode(); got != code {
		p.t.Errorf("exit code %d, want %d:\n%s", got, code, p.stderr())
	}
}

// dial connects to an address of a start-up line.
func dial(t *testing.T, address string) net.Conn {
	t.Helper()
	network, address, _ := strings.Cut(address, "://")
	conn, err := net.DialTimeout(network, address, patience)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { conn.Close() })
	conn.SetDeadline(time.Now().Add(patience))
	return conn
}

// closeWithPeer closes a connection as soon as its peer does.
func closeWithPeer(conn net.Conn) {
	go func() {
		io.Copy(io.Discard, conn)
		conn.Close()
	}()
}

func talk(t *testing.T, conn net.Conn, send, want string) {
	t.Helper()
	if _, err := io.WriteString(conn, send); err != nil {
		t.Fatal(err)
	}
	got := make([]byte, len(want))
	if n, err := io.ReadFull(conn, got); err != nil || string(got) != want {
		t.Fatalf("sent %q: got %q, %v, want %q", send, got[:n], err, want)
	}
}

func TestRedisServesUntilASignal(t *testing.T) {
	for _, c := range []struct {
		sig  os.Signal
		args []string
	}{
		{syscall.SIGTERM, []string{"--addr", "127.0.0.1:0", "--addr", "127.0.0.1:0"}},
		{os.Interrupt, []string{"--addr", "tcp://127.0.0.1:0", "--loops", "3", "--balance", "leastconns"}},
		{syscall.SIGTERM, []string{"--addr", "tcp4://127.0.0.1:0", "--backend", "std"}},
	} {
		p, addresses := start(t, append([]string{"redis"}, c.args...)...)
		if want := strings.Count(strings.Join(c.args, " "), "--addr"); len(addresses) != want {
			t.Errorf("%v: addresses are %v", c.args, addresses)
		}
		for _, a := range addresses {
			conn := dial(t, a)
			talk(t, conn, "PING\r\n*2\r\n$4\r\nECHO\r\n$2\r\nhi\r\n", "+PONG\r\n$2\r\nhi\r\n")
			closeWithPeer(conn)
		}
		p.stop(c.sig, 0)
	}
}

func TestRedisFlags(t *testing.T) {
	_, addresses := start(t, "redis", "--addr", "127.0.0.1:0", "--maxclients", "7", "--timeout", "5m", "--maxmemory", "64MiB",
		"--requirepass", "secret", "--no-protected-mode", "--log-level", "warn", "--log-level", "info", "--high-water", "32KiB")
	conn := dial(t, addresses[0])
	talk(t, conn, "PING\r\n", "-NOAUTH Authentication required.\r\n")
	talk(t, conn, "AUTH secret\r\n", "+OK\r\n")
	for name, value := range map[string]string{"maxclients": "7", "timeout": "300", "maxmemory": "67108864", "protected-mode": "no", "loglevel": "notice"} {
		talk(t, conn, "CONFIG GET "+name+"\r\n", fmt.Sprintf("*2\r\n$%d\r\n%s\r\n$%d\r\n%s\r\n", len(name), name, len(value), value))
	}
	_, addresses = start(t, "redis", "--addr", "127.0.0.1:0", "--protected-mode=no")
	talk(t, dial(t, addresses[0]), "CONFIG GET protected-mode\r\n", "*2\r\n$14\r\nprotected-mode\r\n$2\r\nno\r\n")
}

func TestRedisEnableDebugCommand(t *testing.T) {
	_, addresses := start(t, "redis", "--addr", "127.0.0.1:0")
	talk(t, dial(t, addresses[0]), "DEBUG SLEEP 0\r\n", "-ERR DEBUG command not allowed.")
	_, addresses = start(t, "redis", "--addr", "127.0.0.1:0", "--enable-debug-command", "local")
	talk(t, dial(t, addresses[0]), "DEBUG SLEEP 0\r\n", "+OK\r\n")
}

// A callback that takes longer than --slow-callback is logged with its line; 0 logs none.
func TestSlowCallback(t *testing.T) {
	for _, c := range []struct{ limit, log string }{
		{"20ms", "watchdog: the callback that blocked its loop is over"},
		{"0", ""},
	} {
		p, addresses := start(t, "redis", "--addr", "127.0.0.1:0", "--enable-debug-command", "local", "--slow-callback", c.limit)
		// The first command may come before the watch begins.
		for end := time.Now().Add(patience); ; {
			talk(t, dial(t, addresses[0]), "DEBUG SLEEP 0.5\r\n", "+OK\r\n")
			time.Sleep(50 * time.Millisecond)
			if strings.Contains(p.stderr(), c.log) {
				break
			}
			if time.Now().After(end) {
				t.Fatalf("no %q in\n%s", c.log, p.stderr())
			}
		}
		for _, want := range []string{"watchdog: a callback blocks its loop", "servercmd.go:"} {
			if got := strings.Contains(p.stderr(), want); got != (c.log != "") {
				t.Errorf("--slow-callback %s: %q is in the log: %t\n%s", c.limit, want, got, p.stderr())
			}
		}
		p.stop(syscall.SIGTERM, 0)
	}
}

// Clients that neither close nor read delay the end of the program by --shutdown-timeout if
// they have pending output, and otherwise not at all.
func TestRedisShutdownTimeout(t *testing.T) {
	p, addresses := start(t, "redis", "--addr", "127.0.0.1:0", "--shutdown-timeout", "1h")
	for range 3 {
		talk(t, dial(t, addresses[0]), "PING\r\n", "+PONG\r\n")
	}
	p.stop(syscall.SIGTERM, 0)

	p, addresses = start(t, "redis", "--addr", "127.0.0.1:0", "--shutdown-timeout", "700ms")
	conn := dial(t, addresses[0])
	const size = 50_000_000 // more than the system takes
	talk(t, conn, fmt.Sprintf("*3\r\n$3\r\nSET\r\n$1\r\nk\r\n$%d\r\n%s\r\n", size, strings.Repeat("x", size)), "+OK\r\n")
	talk(t, conn, "GET k\r\n", "$")
	p.stop(syscall.SIGTERM, 0)
	who := "clients have not read their replies: " + conn.LocalAddr().String()
	for _, want := range []string{"waits: " + who, "shutdown: " + who} {
		if !strings.Contains(p.stderr(), want) {
			t.Errorf("no %q in\n%s", want, p.stderr())
		}
	}
}

// A client that does not read its replies delays the end of the program until the second
// signal.
func TestASecondSignalEndsAtOnce(t *testing.T) {
	p, addresses := start(t, "redis", "--addr", "127.0.0.1:0")
	conn := dial(t, addresses[0])
	const size = 50_000_000 // more than the system takes
	talk(t, conn, fmt.Sprintf("*3\r\n$3\r\nSET\r\n$1\r\nk\r\n$%d\r\n%s\r\n", size, strings.Repeat("x", size)), "+OK\r\n")
	talk(t, conn, "GET k\r\n", "$")
	p.signal(syscall.SIGTERM)
	for end := time.Now().Add(patience); !strings.Contains(p.stderr(), "stopping"); time.Sleep(5 * time.Millisecond) {
		if time.Now().After(end) {
			t.Fatalf("not stopping:\n%s", p.stderr())
		}
	}
	p.stop(syscall.SIGTERM, 1)
}

func TestAnAddressInUseIsOneSentence(t *testing.T) {
	ln, err := net.Listen("tcp4", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer ln.Close()
	for _, cmd := range []string{"redis", "echo"} {
		out, code := run(t, cmd, "--addr", "tcp4://"+ln.Addr().String())
		want := "rondo: cannot listen on tcp4://" + ln.Addr().String() + ": another program has that address; stop it, or choose another address with --addr\n"
		if out != want || code != 1 {
			t.Errorf("%s: exit code %d, output %q, want %q", cmd, code, out, want)
		}
	}
}

// run runs the program to its end.
func run(t *testing.T, args ...string) (output string, code int) {
	t.Helper()
	cmd := exec.Command(binary, args...)
	out, err := cmd.CombinedOutput()
	if _, ok := err.(*exec.ExitError); err != nil && !ok {
		t.Fatal(err)
	}
	return string(out), cmd.ProcessState.ExitCode()
}

func TestHelpTeaches(t *testing.T) {
	for _, c := range []struct {
		args string
		want []string
	}{
		{"--help", []string{"Examples:", "rondo redis --addr :6379", "redis-cli", "echo"}},
		{"redis --help", []string{"Examples:", "--requirepass", "--loops=N", "need no locks", "SIGTERM"}},
		{"http --help", []string{"Examples:", "rondo http --dir .", "curl http://127.0.0.1:8080/", "--proxy=URL", "SIGHUP", "app.js.br"}},
		{"echo --help", []string{"Examples:", "nc 127.0.0.1 5000", "--timeout"}},
	} {
		out, code := run(t, strings.Fields(c.args)...)
		out = strings.Join(strings.Fields(out), " ") // lines may be wrapped anywhere
		for _, want := range c.want {
			if code != 0 || !strings.Contains(out, want) {
				t.Errorf("rondo %s: exit code %d, no %q in:\n%s", c.args, code, want, out)
			}
		}
	}
}

func TestMistakesAreExplained(t *testing.T) {
	for _, c := range []struct{ args, want string }{
		{"redis --addr nowhere", "nowhere"},
		{"redis --addr ftp://x:1", "want tcp, tcp4, tcp6 or unix"},
		{"redis --backend nope --addr 127.0.0.1:0", "choose one of"},
		{"redis --timeout soon", "is not a duration"},
		{"redis --high-water 1.5parsec", "is not a size"},
		{"redis --balance nope", "roundrobin"},
		{"redis --loops x", "loops"},
		{"redis --nope", "nope"},
		{"redis --check", "--check is for a redis.conf"},
		{"redis --requirepass x redis.conf", "--requirepass goes without a redis.conf: give the directive requirepass"},
		{"redis --loops 2 -- --port 1", "give the directive io-threads"},
		{"http", "--dir DIR, --echo or --proxy URL"},
		{"redis --addr", "addr"},
		{"nope", "nope"},
		{"bench", "redis"},
		{"", "redis"},
	} {
		out, code := run(t, strings.Fields(c.args)...)
		if code != 2 || strings.Count(out, "\n") != 1 || !strings.HasPrefix(out, "rondo: ") || !strings.Contains(out, c.want) {
			t.Errorf("rondo %s: exit code %d, no %q in:\n%s", c.args, code, c.want, out)
		}
	}
}

func TestEcho(t *testing.T) {
	_, addresses := start(t, "echo", "--addr", "127.0.0.1:0", "--addr", "127.0.0.1:0", "--maxclients", "2", "--loops", "2")
	a, b := dial(t, addresses[0]), dial(t, addresses[1])
	talk(t, a, "hello", "hello")
	talk(t, b, "hello", "hello")
	c := dial(t, addresses[0])
	if n, err := c.Read(make([]byte, 1)); err == nil {
		t.Errorf("a third client got %d bytes", n)
	}
	talk(t, a, "again", "again")
}

func TestEchoServesUntilASignal(t *testing.T) {
	p, addresses := start(t, "echo", "--addr", "127.0.0.1:0")
	conn := dial(t, addresses[0])
	talk(t, conn, "hello", "hello")
	closeWithPeer(conn)
	p.stop(syscall.SIGTERM, 0)
}

func TestEchoTimeout(t *testing.T) {
	_, addresses := start(t, "echo", "--addr", "127.0.0.1:0", "--timeout", "50ms")
	conn := dial(t, addresses[0])
	talk(t, conn, "hello", "hello")
	if _, err := conn.Read(make([]byte, 1)); err != io.EOF {
		t.Errorf("an idle client was not closed: %v", err)
	}
}
