//go:build unix

package main

import (
	"bufio"
	"crypto/tls"
	"fmt"
	"io"
	"math/rand/v2"
	"net"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"slices"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/rondo-go/rondo"
	"github.com/rondo-go/rondo/internal/pick"
	"github.com/rondo-go/rondo/internal/testkit"
)

// serverArgs adds a control socket and a pidfile to the arguments of a server.
func serverArgs(t *testing.T, given ...string) (args []string, control, pidfile string) {
	t.Helper()
	dir, err := os.MkdirTemp("", "rondo")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { os.RemoveAll(dir) })
	control, pidfile = filepath.Join(dir, "control"), filepath.Join(dir, "pid")
	return slices.Clip(append(given, "--loops", "2", "--control", control, "--pidfile", pidfile)), control, pidfile
}

// Clients of all networks notice nothing when SIGUSR2 or --upgrade replaces rondo echo, and the
// files of unix sockets go with the last process.
func TestEchoUpgrade(t *testing.T) {
	dir, err := os.MkdirTemp("", "rondo")
	if err != nil {
		t.Fatal(err)
	}
	defer os.RemoveAll(dir)
	stream, datagram := filepath.Join(dir, "s"), filepath.Join(dir, "d")
	args, control, pidfile := serverArgs(t, "echo", "--addr", "127.0.0.1:0", "--addr", "unix://"+stream,
		"--addr", "udp://127.0.0.1:0", "--addr", "unixgram://"+datagram, "--admin", testkit.FreeAddress(t))
	first, addresses := startCommand(t, exec.Command(binary, args...))
	local, err := net.ListenUnixgram("unixgram", &net.UnixAddr{Net: "unixgram", Name: filepath.Join(dir, "client")})
	if err != nil {
		t.Fatal(err)
	}
	defer local.Close()
	clients := []net.Conn{dial(t, addresses[0]), dial(t, addresses[1]), dial(t, addresses[2])}
	talkAll := func(text string) {
		t.Helper()
		for _, c := range clients {
			talk(t, c, text, text)
		}
		local.SetDeadline(time.Now().Add(patience))
		if _, err := local.WriteTo([]byte(text), &net.UnixAddr{Net: "unixgram", Name: datagram}); err != nil {
			t.Fatal(err)
		}
		b := make([]byte, 10)
		if n, err := local.Read(b); err != nil || string(b[:n]) != text {
			t.Errorf("the datagram %q: %q, %v", text, b[:n], err)
		}
		for _, a := range addresses[:2] {
			c := dial(t, a)
			talk(t, c, text, text)
			c.Close()
		}
	}
	talkAll("a")
	pid := first.cmd.Process.Pid
	for range 2 {
		syscall.Kill(pid, syscall.SIGUSR2)
		pid = pidIn(t, pidfile, pid)
		talkAll("b")
	}
	last, again := startCommand(t, exec.Command(binary, append(args, "--upgrade")...))
	<-first.ended
	if strings.Join(again, " ") != strings.Join(addresses, " ") {
		t.Errorf("the last process listens at %v, the first one at %v", again, addresses)
	}
	pidIn(t, pidfile, pid)
	talkAll("c")
	for _, c := range clients {
		c.Close()
	}
	last.stop(syscall.SIGTERM, 0)
	for _, f := range []string{stream, datagram, control, pidfile} {
		if _, err := os.Lstat(f); !os.IsNotExist(err) {
			t.Errorf("%s is still there: %v", f, err)
		}
	}
}

// post sends a request, of whose body of ten bytes only some.
func post(t *testing.T, c net.Conn, body string) {
	t.Helper()
	if _, err := fmt.Fprintf(c, "POST / HTTP/1.1\r\nHost: test\r\nContent-Length: 10\r\n\r\n%s", body); err != nil {
		t.Fatal(err)
	}
}

// answered wants the answer to post, and reports whether it is the last of its connection.
func answered(t *testing.T, c io.Reader, want string) (last bool) {
	t.Helper()
	a, err := http.ReadResponse(bufio.NewReader(c), nil)
	if err != nil {
		t.Fatal(err)
	}
	defer a.Body.Close()
	got, err := io.ReadAll(a.Body)
	if err != nil || a.StatusCode != 200 || string(got) != want {
		t.Fatalf("%s, %q, %v, want %q", a.Status, got, err, want)
	}
	return a.Close
}

// Connections go to the new process between two requests, and in the middle of a head. A request
// in progress ends in the old process, and then its connection goes, too.
func TestHTTPUpgrade(t *testing.T) {
	for _, backend := range pick.Names() {
		t.Run(backend, func(t *testing.T) { upgradeHTTP(t, backend) })
	}
}

func upgradeHTTP(t *testing.T, backend string) {
	args, _, pidfile := serverArgs(t, "http", "--addr", "127.0.0.1:0", "--echo", "--access-log", "off", "--backend", backend)
	first, addresses := startCommand(t, exec.Command(binary, args...))
	idle, new, head, busy := dial(t, addresses[0]), dial(t, addresses[0]), dial(t, addresses[0]), dial(t, addresses[0])
	post(t, idle, "0123456789")
	answered(t, idle, "0123456789")
	io.WriteString(head, "POST / HTTP/1.1\r\nHost: te")
	post(t, busy, "012")
	pid := first.cmd.Process.Pid
	syscall.Kill(pid, syscall.SIGUSR2)
	testkit.Until(t, "a new process begins", func() bool { return strings.Contains(first.stderr(), "starting a new process") })
	time.Sleep(100 * time.Millisecond) // most likely it has the others now
	io.WriteString(busy, "3456789")
	if answered(t, busy, "0123456789") {
		t.Error("the connection closes behind the request that was in progress")
	}
	pid = pidIn(t, pidfile, pid)
	io.WriteString(head, "st\r\nContent-Length: 10\r\n\r\n9876543210")
	if answered(t, head, "9876543210") {
		t.Error("the connection closes behind a request whose head came in two processes")
	}
	for _, c := range []net.Conn{idle, new, busy, head} {
		for range 2 {
			post(t, c, "abcdefghij")
			if answered(t, c, "abcdefghij") {
				t.Error("the new process closes a connection")
			}
		}
	}
	syscall.Kill(pid, syscall.SIGTERM)
	for _, c := range []net.Conn{idle, new, busy, head} {
		c.Close()
	}
	first.wait(0)
}

// lastAnswer waits for an answer that says it is the last: the process may be a moment late.
func lastAnswer(t *testing.T, c net.Conn) {
	t.Helper()
	testkit.Until(t, "an answer is the last", func() bool {
		post(t, c, "9876543210")
		return answered(t, c, "9876543210")
	})
}

// What cannot go stays in the old process: a request that lasts, and TLS. Of a connection of HTTP
// the next answer is the last, and says so.
func TestUpgradeStays(t *testing.T) {
	f := newKeyFiles(t)
	secure := []string{"--addr", "127.0.0.1:0", "--tls-cert", f.cert, "--tls-key", f.key, "--tls-auth-clients", "no"}
	for _, c := range []struct {
		name string
		args []string
		run  func(t *testing.T, c net.Conn, upgrade func())
	}{
		{"echo", append([]string{"echo"}, secure...), func(t *testing.T, c net.Conn, upgrade func()) {
			talk(t, c, "a", "a")
			upgrade()
			talk(t, c, "b", "b")
			c.Close()
		}},
		{"https", append([]string{"http", "--echo", "--access-log", "off"}, secure...), func(t *testing.T, c net.Conn, upgrade func()) {
			post(t, c, "0123456789")
			if answered(t, c, "0123456789") {
				t.Error("the first answer is the last")
			}
			upgrade()
			lastAnswer(t, c)
		}},
		{"request", []string{"http", "--addr", "127.0.0.1:0", "--echo", "--access-log", "off", "--upgrade-timeout", "3s"}, func(t *testing.T, c net.Conn, upgrade func()) {
			post(t, c, "012")
			upgrade()
			io.WriteString(c, "3456789")
			answered(t, c, "0123456789")
			lastAnswer(t, c)
		}},
	} {
		t.Run(c.name, func(t *testing.T) {
			args, _, pidfile := serverArgs(t, c.args...)
			first, addresses := startCommand(t, exec.Command(binary, args...))
			nc := dial(t, addresses[0])
			if c.name != "request" {
				nc = tls.Client(nc, &tls.Config{InsecureSkipVerify: true})
			}
			pid := first.cmd.Process.Pid
			c.run(t, nc, func() {
				syscall.Kill(pid, syscall.SIGUSR2)
				testkit.Until(t, "another process has taken over", func() bool { return strings.Contains(first.stderr(), "staying=1") })
				syscall.Kill(pid, syscall.SIGUSR2) // which comes too late
				testkit.Until(t, "the old process refuses", func() bool {
					return strings.Contains(first.stderr(), "upgrade: refused, since another process has taken over already")
				})
			})
			next := pidIn(t, pidfile, pid)
			nc.Close()
			syscall.Kill(next, syscall.SIGTERM)
			first.wait(0) // for both: they have the same standard error
		})
	}
}

// Another server, or one that is told otherwise, does not take over.
func TestUpgradeMistakes(t *testing.T) {
	args, control, _ := serverArgs(t, "echo", "--addr", "127.0.0.1:0")
	p, addresses := startCommand(t, exec.Command(binary, args...))
	c := dial(t, addresses[0])
	talk(t, c, "a", "a")
	taken := strings.TrimPrefix(addresses[0], "tcp://")
	for _, wrong := range []struct {
		args []string
		want string
	}{
		{[]string{"http", "--echo", "--addr", "127.0.0.1:0", "--control", control, "--upgrade"}, "take over"},
		{[]string{"echo", "--addr", "127.0.0.1:0", "--addr", taken, "--control", control, "--upgrade"}, "cannot listen on " + taken},
		{[]string{"echo", "--addr", "127.0.0.1:0", "--upgrade"}, "give that too"},
		{[]string{"echo", "--addr", "127.0.0.1:0", "--control", control}, "give --upgrade"},
		{[]string{"redis", "--addr", "127.0.0.1:0", "--control", control, "--upgrade"}, "--lose-keys"},
		{[]string{"redis", "--addr", "127.0.0.1:0", "--control", control, "--upgrade", "--lose-keys"}, "take over"},
	} {
		out, err := exec.Command(binary, wrong.args...).CombinedOutput()
		if err == nil || !strings.Contains(string(out), wrong.want) {
			t.Errorf("rondo %s: %v, %s; want %q", strings.Join(wrong.args, " "), err, out, wrong.want)
		}
		talk(t, c, "b", "b")
		talk(t, dial(t, addresses[0]), "c", "c")
	}
	c.Close()
	p.stop(syscall.SIGTERM, 0)
}

// rondo redis gives only its listeners away, and only if it may.
func TestRedisUpgrade(t *testing.T) {
	p, addresses := start(t, "redis", "--addr", "127.0.0.1:0")
	c := dial(t, addresses[0])
	talk(t, c, "SET k v\r\n", "+OK\r\n")
	p.signal(syscall.SIGUSR2)
	testkit.Until(t, "the server refuses", func() bool { return strings.Contains(p.stderr(), "upgrade: refused, since the keys would be lost") })
	talk(t, c, "GET k\r\n", "$1\r\nv\r\n")
	c.Close()
	p.stop(syscall.SIGTERM, 0)

	args, _, pidfile := serverArgs(t, "redis", "--addr", "127.0.0.1:0", "--lose-keys")
	p, addresses = startCommand(t, exec.Command(binary, args...))
	c = dial(t, addresses[0])
	talk(t, c, "SET k v\r\n", "+OK\r\n")
	stop := make(chan struct{})
	refused := make(chan error, 1)
	go func() {
		_, address, _ := strings.Cut(addresses[0], "://")
		for {
			select {
			case <-stop:
				refused <- nil
				return
			default:
			}
			c, err := net.Dial("tcp", address)
			if err != nil {
				refused <- err
				return
			}
			c.Close()
		}
	}()
	p.signal(syscall.SIGUSR2)
	pid := pidIn(t, pidfile, p.cmd.Process.Pid)
	close(stop)
	if err := <-refused; err != nil {
		t.Errorf("a client is refused: %v", err)
	}
	if _, err := io.ReadAll(c); err != nil {
		t.Errorf("the old client: %v, want its end", err)
	}
	talk(t, dial(t, addresses[0]), "GET k\r\n", "$-1\r\n")
	syscall.Kill(pid, syscall.SIGTERM)
	p.wait(0)
}

// A server that waits for clients at its end says so.
func TestStopTellsForWhom(t *testing.T) {
	p, addresses := start(t, "echo", "--addr", "127.0.0.1:0", "--shutdown-timeout", "3s")
	dial(t, addresses[0]) // has nothing to read
	c := dial(t, addresses[0])
	go io.Copy(c, endless{})
	testkit.Until(t, "the server is full", func() bool { // since its client does not read
		c.SetWriteDeadline(time.Now().Add(200 * time.Millisecond))
		_, err := c.Write(make([]byte, 1<<20))
		return err != nil
	})
	p.stop(syscall.SIGTERM, 0)
	if want := "remote=" + c.LocalAddr().String(); !strings.Contains(p.stderr(), "stopping: waiting for clients") || !strings.Contains(p.stderr(), want) {
		t.Errorf("no %q in\n%s", want, p.stderr())
	}
}

type endless struct{}

func (endless) Read(p []byte) (int, error) { return len(p), nil }

// Both processes serve, or want to, when the new one is killed. The old one goes on, unless it has
// ended before.
func TestUpgradeKilled(t *testing.T) {
	t.Run("proxy", func(t *testing.T) {
		args, _, _ := upgradeArgs(t, testkit.Listen(t, &rondo.Engine{NumLoops: 1}, testkit.Echo))
		upgradeKilled(t, args, "x", "x")
	})
	t.Run("echo", func(t *testing.T) {
		args, _, _ := serverArgs(t, "echo", "--addr", "127.0.0.1:0")
		upgradeKilled(t, args, "x", "x")
	})
	t.Run("http", func(t *testing.T) {
		args, _, _ := serverArgs(t, "http", "--addr", "127.0.0.1:0", "--echo", "--access-log", "off")
		upgradeKilled(t, args, "GET / HTTP/1.1\r\nHost: test\r\n\r\n", "HTTP/1.1 200 OK\r\n")
	})
}

func upgradeKilled(t *testing.T, args []string, say, want string) {
	now, addresses := startCommand(t, exec.Command(binary, args...))
	for range 20 {
		for range 10 {
			talk(t, dial(t, addresses[0]), say, want)
		}
		next := exec.Command(binary, append(args, "--upgrade")...)
		if err := next.Start(); err != nil {
			t.Fatal(err)
		}
		time.Sleep(time.Duration(rand.IntN(60)) * time.Millisecond)
		next.Process.Kill()
		next.Wait()
		testkit.Until(t, "somebody serves, or the old process has ended", func() bool {
			select {
			case <-now.ended:
				return true
			default:
			}
			_, address, _ := strings.Cut(addresses[0], "://")
			c, err := net.Dial("tcp", address)
			if err != nil {
				return false
			}
			defer c.Close()
			c.SetDeadline(time.Now().Add(time.Second))
			io.WriteString(c, say)
			got := make([]byte, len(want))
			_, err = io.ReadFull(c, got)
			return err == nil && string(got) == want
		})
		select {
		case <-now.ended:
			return // the new process had taken over
		default:
		}
	}
	now.signal(syscall.SIGTERM)
}

// A process that ends removes its socket, and not that of a process that has replaced it.
func TestPrivateSocket(t *testing.T) {
	dir, err := os.MkdirTemp("", "rondo")
	if err != nil {
		t.Fatal(err)
	}
	defer os.RemoveAll(dir)
	path := filepath.Join(dir, "control")
	var all []*privateSocket
	for range 3 {
		p, err := listenPrivately(path)
		if err != nil {
			t.Fatal(err)
		}
		all = append(all, p)
	}
	for _, p := range all[:2] {
		if err := p.publish(); err != nil {
			t.Fatal(err)
		}
	}
	all[0].close()
	all[2].close()
	if !answers(path) {
		t.Error("the socket of the second process is gone")
	}
	all[1].close()
	if left, err := os.ReadDir(dir); len(left) > 0 || err != nil {
		t.Errorf("these are left: %v, %v", left, err)
	}
	if _, err := listenPrivately(filepath.Join(dir, "no", "control")); err == nil {
		t.Error("a directory that does not exist has a socket")
	}
}

// systemd must hear of the new process before the old one ends: it would end the service.
func TestUpgradeOfAService(t *testing.T) {
	args, _, pidfile := upgradeArgs(t, testkit.Listen(t, &rondo.Engine{NumLoops: 1}, testkit.Echo))
	upgradeOfAService(t, args, pidfile)
	args, _, pidfile = serverArgs(t, "echo", "--addr", "127.0.0.1:0")
	upgradeOfAService(t, args, pidfile)
}

func upgradeOfAService(t *testing.T, args []string, pidfile string) {
	n := newNotified(t)
	for _, more := range []string{"", "--upgrade"} {
		cmd := exec.Command(binary, args...)
		cmd.Env = append(os.Environ(), "NOTIFY_SOCKET="+n.path)
		first, _ := startCommand(t, cmd)
		if m := n.any(); m != "READY=1" {
			t.Errorf("the first message is %q", m)
		}
		old := first.cmd.Process.Pid
		if more == "" {
			syscall.Kill(old, syscall.SIGUSR2)
		} else {
			next := exec.Command(binary, append(args, more)...)
			next.Env = cmd.Env
			startCommand(t, next)
		}
		said := n.any()
		pid := pidIn(t, pidfile, old)
		if want := "MAINPID=" + strconv.Itoa(pid); runtime.GOOS == "linux" && said != want {
			t.Errorf("the old process says %q; want %q", said, want)
		}
		if m := n.any(); runtime.GOOS == "linux" && m != said+"\nREADY=1" {
			t.Errorf("the new process says %q", m)
		}
		syscall.Kill(pid, syscall.SIGTERM)
		if m := n.any(); m != "STOPPING=1" {
			t.Errorf("at the end comes %q", m)
		}
		testkit.Until(t, "the pidfile is gone", func() bool {
			_, err := os.Stat(pidfile)
			return os.IsNotExist(err)
		})
	}
}
