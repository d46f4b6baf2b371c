//go:build unix

package main

import (
	"io"
	"math/rand/v2"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/rondo-go/rondo"
	"github.com/rondo-go/rondo/internal/testkit"
)

// upgradeArgs are the arguments of a proxy with a control socket and a pidfile.
func upgradeArgs(t *testing.T, echo string) (args []string, control, pidfile string) {
	stats, admin := testkit.FreeAddress(t), testkit.FreeAddress(t)
	for admin == stats {
		admin = testkit.FreeAddress(t)
	}
	return serverArgs(t, "proxy", "--listen", "127.0.0.1:0", "--to", echo, "--access-log", "off", "--stats", stats, "--admin", admin)
}

// pidIn waits until a pidfile has another number than old.
func pidIn(t *testing.T, path string, old int) (pid int) {
	t.Helper()
	testkit.Until(t, "the pidfile names the new process", func() bool {
		text, _ := os.ReadFile(path)
		pid, _ = strconv.Atoi(strings.TrimSpace(string(text)))
		return pid > 0 && pid != old
	})
	return pid
}

// SIGUSR2 replaces the process, again and again. Clients notice nothing, and the last process
// stops as the first one would.
func TestProxyUpgradeBySignal(t *testing.T) {
	echo := testkit.Listen(t, &rondo.Engine{NumLoops: 1}, testkit.Echo)
	args, _, pidfile := upgradeArgs(t, echo)
	first, addresses := startCommand(t, exec.Command(binary, args...))
	client := dial(t, addresses[0])
	talk(t, client, "a", "a")
	pid := first.cmd.Process.Pid
	for range 4 {
		if err := syscall.Kill(pid, syscall.SIGUSR2); err != nil {
			t.Fatal(err)
		}
		pid = pidIn(t, pidfile, pid)
		talk(t, client, "b", "b")
		other := dial(t, addresses[0])
		talk(t, other, "c", "c")
		other.Close()
	}
	if err := syscall.Kill(pid, syscall.SIGTERM); err != nil {
		t.Fatal(err)
	}
	client.Close()
	first.wait(0) // all processes have the same standard error
	if _, err := os.Stat(pidfile); !os.IsNotExist(err) {
		t.Errorf("the pidfile is still there: %v", err)
	}
}

// --upgrade replaces the process at --control; a mistake leaves it alone.
func TestProxyUpgradeByControl(t *testing.T) {
	echo := testkit.Listen(t, &rondo.Engine{NumLoops: 1}, testkit.Echo)
	args, control, pidfile := upgradeArgs(t, echo)
	first, addresses := startCommand(t, exec.Command(binary, args...))
	client := dial(t, addresses[0])
	talk(t, client, "a", "a")
	if info, err := os.Stat(control); err != nil || info.Mode().Perm() != 0o600 {
		t.Errorf("the control socket: %v, %v; want mode 0600", info.Mode(), err)
	}
	for _, wrong := range []struct {
		args []string
		want string
	}{
		{append(args, "--pidfile", ""), "give --upgrade to take over"},
		{append(args, "--upgrade", "--listen", echo), "address already in use"},
		{[]string{"proxy", "--listen", "127.0.0.1:0", "--to", echo, "--upgrade"}, "give that too"},
		{append(args, "--upgrade", "--control", control+"x"), "start without --upgrade"},
	} {
		out, err := exec.Command(binary, wrong.args...).CombinedOutput()
		if err == nil || !strings.Contains(string(out), wrong.want) {
			t.Errorf("rondo %s: %v, %s; want %q", strings.Join(wrong.args, " "), err, out, wrong.want)
		}
	}
	talk(t, client, "b", "b")
	second, addresses2 := startCommand(t, exec.Command(binary, append(args, "--upgrade")...))
	<-first.ended
	if addresses2[0] != addresses[0] {
		t.Errorf("the new process listens at %v; want %v", addresses2, addresses)
	}
	talk(t, client, "c", "c")
	if pid := pidIn(t, pidfile, first.cmd.Process.Pid); pid != second.cmd.Process.Pid {
		t.Errorf("the pidfile has %d; want %d", pid, second.cmd.Process.Pid)
	}
	testkit.Until(t, "the new process's page", func() bool { return strings.Contains(second.stderr(), "the page of --admin is shown") })
	if v := readVars(t, adminOf(t, second), ""); v.Total.Open != 2 {
		t.Errorf("the new process's page has %+v", v)
	}
	client.(*net.TCPConn).CloseWrite()
	client.SetReadDeadline(time.Now().Add(20 * time.Second))
	if _, err := client.Read(make([]byte, 1)); err != io.EOF {
		t.Error(err)
	}
	second.stop(syscall.SIGTERM, 0)
	if _, err := os.Lstat(control); !os.IsNotExist(err) {
		t.Errorf("the control socket is still there: %v", err)
	}
}

// A new process that cannot have something beside the listeners, such as the address of --stats,
// says so before it takes anything over.
func TestProxyUpgradeFailsEarly(t *testing.T) {
	echo := testkit.Listen(t, &rondo.Engine{NumLoops: 1}, testkit.Echo)
	args, control, _ := upgradeArgs(t, echo)
	first, addresses := startCommand(t, exec.Command(binary, args...))
	client := dial(t, addresses[0])
	talk(t, client, "a", "a")
	for _, wrong := range []struct{ flag, value, want string }{
		{"--stats", "unix:///nowhere/at/all", "cannot listen on unix:///nowhere/at/all"},
		{"--stats", "udp://:1", "the network is udp"},
		{"--admin", "unix:///nowhere/at/all", "cannot listen on unix:///nowhere/at/all"},
	} {
		out, err := exec.Command(binary, append(args, "--upgrade", wrong.flag, wrong.value)...).CombinedOutput()
		if err == nil || !strings.Contains(string(out), wrong.want) {
			t.Errorf("%s %s: %v, %s; want %q", wrong.flag, wrong.value, err, out, wrong.want)
		}
		talk(t, client, "b", "b")
		talk(t, dial(t, addresses[0]), "c", "c")
	}
	left, err := filepath.Glob(filepath.Join(filepath.Dir(control), ".rondo-*"))
	if err != nil || len(left) > 0 {
		t.Errorf("these are left: %q, %v", left, err)
	}
	client.Close()
	first.stop(syscall.SIGTERM, 0)
}

// The old process is killed in the middle: the new one serves, or ends since it came too late.
func TestProxyUpgradeOrphaned(t *testing.T) {
	echo := testkit.Listen(t, &rondo.Engine{NumLoops: 1}, testkit.Echo)
	for i := range 10 {
		args, _, _ := upgradeArgs(t, echo)
		old, addresses := startCommand(t, exec.Command(binary, args...))
		_, address, _ := strings.Cut(addresses[0], "://")
		for range 10 {
			talk(t, dial(t, addresses[0]), "a", "a")
		}
		next := exec.Command(binary, append(args, "--upgrade")...)
		if err := next.Start(); err != nil {
			t.Fatal(err)
		}
		ended := make(chan struct{})
		go func() { next.Wait(); close(ended) }()
		time.Sleep(time.Duration(i*5+rand.IntN(10)) * time.Millisecond)
		old.cmd.Process.Kill()
		<-old.ended
		testkit.Until(t, "the new process serves or has ended", func() bool {
			select {
			case <-ended:
				return true
			default:
			}
			c, err := net.Dial("tcp", address)
			if err != nil {
				return false
			}
			defer c.Close()
			c.SetDeadline(time.Now().Add(time.Second))
			io.WriteString(c, "x")
			_, err = io.ReadFull(c, make([]byte, 1))
			return err == nil
		})
		next.Process.Kill()
		<-ended
	}
}
