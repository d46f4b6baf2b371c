//go:build unix

package main

import (
	"io"
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
	dir, err := os.MkdirTemp("", "rondo")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { os.RemoveAll(dir) })
	control, pidfile = filepath.Join(dir, "control"), filepath.Join(dir, "pid")
	return []string{"proxy", "--listen", "127.0.0.1:0", "--to", echo, "--loops", "2", "--access-log", "off",
		"--control", control, "--pidfile", pidfile, "--stats", deadAddress(t)}, control, pidfile
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
