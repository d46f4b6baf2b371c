//go:build unix

package main

import (
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/rondo-go/rondo"
	"github.com/rondo-go/rondo/redis"
)

// signalable prepares a command that will be sent signals.
func signalable(*exec.Cmd) {}

func sendSignal(cmd *exec.Cmd, sig os.Signal) error { return cmd.Process.Signal(sig) }

// A unix socket beside a TCP address; its file is gone afterwards.
func TestUnixSockets(t *testing.T) {
	socket := filepath.Join(t.TempDir(), "s")
	for _, args := range []string{"redis", "echo", "redis --backend std"} {
		p, addresses := start(t, append(strings.Fields(args), "--addr", "127.0.0.1:0", "--addr", "unix://"+socket)...)
		if len(addresses) != 2 || addresses[1] != "unix://"+socket {
			t.Errorf("%s: addresses are %v", args, addresses)
		}
		for _, a := range addresses {
			conn := dial(t, a)
			if strings.HasPrefix(args, "echo") {
				talk(t, conn, "hello", "hello")
			} else {
				talk(t, conn, "PING\r\n", "+PONG\r\n")
			}
			closeWithPeer(conn)
		}
		p.stop(syscall.SIGTERM, 0)
		if _, err := os.Stat(socket); !os.IsNotExist(err) {
			t.Errorf("%s: the socket's file is still there: %v", args, err)
		}
	}
}

func TestBenchEchoOverUnix(t *testing.T) {
	socket := filepath.Join(t.TempDir(), "s")
	serveHere(t, "unix", socket, func(*rondo.Conn) rondo.Handler { return rondo.HandlerFunc((*rondo.Conn).Write) })
	for _, backend := range []string{"", "std"} {
		r := results(t, "echo", "--addr", "unix://"+socket, "--backend", backend, "--duration", "100ms", "--rate", "2000")
		if len(r) != 1 || r[0]["rate_per_s"] != 2000.0 || backend != "" && r[0]["backend"] != backend {
			t.Errorf("%q: %v", backend, r)
		}
	}
}

func TestBenchOfNoUnixServer(t *testing.T) {
	missing := "unix://" + filepath.Join(t.TempDir(), "s")
	_, stderr, code := runBench(t, "echo", "--addr", missing)
	if want := "cannot connect to " + missing + ": no server listens there"; code != 1 || !strings.Contains(stderr, want) {
		t.Errorf("exit code %d, errors %q, want %q", code, stderr, want)
	}
}

// What cannot be printed is a failure.
func TestOutputThatIsLost(t *testing.T) {
	full, err := os.OpenFile("/dev/full", os.O_WRONLY, 0)
	if err != nil {
		t.Logf("this system has no file that is always full: %v", err)
		return
	}
	defer full.Close()
	for _, args := range []string{"version", "bench echo --count 10 --warmup 0", "bench echo --json --count 10 --warmup 0"} {
		if strings.HasPrefix(args, "bench") {
			args += " --addr " + echoHere(t)
		}
		cmd := exec.Command(binary, strings.Fields(args)...)
		var errs strings.Builder
		cmd.Stdout, cmd.Stderr = full, &errs
		cmd.Run()
		if code := cmd.ProcessState.ExitCode(); code != 1 || !strings.HasSuffix(errs.String(), "rondo: write /dev/stdout: no space left on device\n") {
			t.Errorf("rondo %s: exit code %d, errors %q", args, code, errs.String())
		}
	}
}

// limited is the program, which may have so many descriptors open.
func limited(files int, args ...string) *exec.Cmd {
	script := fmt.Sprintf(`ulimit -n %d && exec "$0" "$@"`, files)
	return exec.Command("sh", append([]string{"-c", script, binary}, args...)...)
}

// More loops than the system has descriptors for are a failure, with an error of one sentence.
func TestTooManyLoopsForTheDescriptors(t *testing.T) {
	cmd := limited(64, "echo", "--addr", "127.0.0.1:0", "--loops", "1000")
	var out strings.Builder
	cmd.Stdout, cmd.Stderr = &out, &out
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	defer time.AfterFunc(patience, func() { cmd.Process.Kill() }).Stop() // if it serves after all
	cmd.Wait()
	text := out.String()
	if cmd.ProcessState.ExitCode() != 1 || !strings.HasPrefix(text, "rondo: backend ") || !strings.HasSuffix(text, "too many open files\n") || strings.Count(text, "\n") != 1 {
		t.Errorf("exit code %d, output %q", cmd.ProcessState.ExitCode(), text)
	}
}

// With too few descriptors for --maxclients, the server serves fewer clients, and tells a
// client beyond the limit.
func TestRedisFitsMaxclientsToTheDescriptors(t *testing.T) {
	const limit = redis.ReservedFiles + 3
	p, addresses := startCommand(t, limited(limit, "redis", "--addr", "127.0.0.1:0", "--maxclients", "2000000000"))
	for _, want := range []string{
		"You requested maxclients of 2000000000 requiring at least 2000000032 max file descriptors.",
		fmt.Sprintf("Current maximum open files is %d. maxclients has been reduced to 3 to compensate for low ulimit. ", limit),
	} {
		if !strings.Contains(p.stderr(), want) {
			t.Errorf("no %q in\n%s", want, p.stderr())
		}
	}
	for range 3 {
		talk(t, dial(t, addresses[0]), "PING\r\n", "+PONG\r\n")
	}
	for range 50 {
		talk(t, dial(t, addresses[0]), "", "-ERR max number of clients reached\r\n")
	}
}

// A pipe in the directory is not found: to open it would wait for its writer.
func TestHTTPFilesArePlain(t *testing.T) {
	d := newTree(t)
	if err := syscall.Mkfifo(filepath.Join(d.dir, "pipe"), 0o600); err != nil {
		t.Fatal(err)
	}
	_, address := serveHTTP(t, "--dir", d.dir)
	if got := ask(t, address, "GET /pipe"); got.StatusCode != 404 {
		t.Errorf("%s, %q", got.Status, got.body)
	}
}

func TestHTTPOverUnix(t *testing.T) {
	socket := filepath.Join(t.TempDir(), "s")
	p, addresses := start(t, "http", "--echo", "--addr", "unix://"+socket, "--access-log", "text")
	if got := askWith(t, dial(t, addresses[0]), "POST /", "hello"); got.body != "hello" {
		t.Errorf("%s, %q", got.Status, got.body)
	}
	p.stop(syscall.SIGTERM, 0)
	if !strings.Contains(p.stderr(), "msg=request client=- method=POST") {
		t.Errorf("no request in\n%s", p.stderr())
	}
}

// "rondo ping" of servers on unix sockets.
func TestPingOverUnix(t *testing.T) {
	socket := "unix://" + filepath.Join(t.TempDir(), "s")
	ping(t, 1, "no server listens there", socket, "--as", "redis")
	p, _ := start(t, "redis", "--addr", socket)
	ping(t, 0, "it answers PING", socket, "--as", "redis")
	ping(t, 0, "it has accepted a connection", socket)
	p.stop(syscall.SIGTERM, 0)
	p, _ = start(t, "http", "--echo", "--access-log", "text", "--addr", socket)
	ping(t, 0, "the status is 200", socket, "--as", "http", "--path", "/up")
	p.stop(syscall.SIGTERM, 0)
	if !strings.Contains(p.stderr(), "uri=/up status=200") {
		t.Errorf("no request in\n%s", p.stderr())
	}
}
