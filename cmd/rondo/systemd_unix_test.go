//go:build unix

package main

import (
	"fmt"
	"log/slog"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/rondo-go/rondo"
)

// notified is a service manager's end of NOTIFY_SOCKET.
type notified struct {
	t    *testing.T
	conn *net.UnixConn
	path string
}

func newNotified(t *testing.T) *notified {
	t.Helper()
	path := filepath.Join(t.TempDir(), "notify")
	conn, err := net.ListenUnixgram("unixgram", &net.UnixAddr{Name: path, Net: "unixgram"})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { conn.Close() })
	return &notified{t, conn, path}
}

// next returns the next message, of those that are no signs of life.
func (n *notified) next() string {
	n.t.Helper()
	for {
		if m := n.any(); m != "WATCHDOG=1" {
			return m
		}
	}
}

func (n *notified) any() string {
	n.t.Helper()
	b := make([]byte, 1000)
	n.conn.SetReadDeadline(time.Now().Add(patience))
	size, err := n.conn.Read(b)
	if err != nil {
		n.t.Fatalf("no message: %v", err)
	}
	return string(b[:size])
}

// systemd hears when a server is ready, reloads and stops, and that it is alive.
func TestSystemdNotify(t *testing.T) {
	f := newKeyFiles(t)
	for _, args := range []string{"redis --addr 127.0.0.1:0", "http --echo --addr 127.0.0.1:0", "echo --addr 127.0.0.1:0", "proxy --listen 127.0.0.1:0 --to 127.0.0.1:1"} {
		n := newNotified(t)
		args := append(strings.Fields(args), "--loops", "2", "--tls-cert", f.cert, "--tls-key", f.key, "--tls-auth-clients", "no")
		cmd := exec.Command(binary, args...)
		cmd.Env = append(os.Environ(), "NOTIFY_SOCKET="+n.path, "WATCHDOG_USEC=20000")
		p, _ := startCommand(t, cmd)
		if m := n.any(); m != "READY=1" {
			t.Errorf("%s: the first message is %q", args[0], m)
		}
		for range 3 {
			if m := n.any(); m != "WATCHDOG=1" {
				t.Errorf("%s: got %q, want a sign of life", args[0], m)
			}
		}
		p.signal(syscall.SIGHUP)
		var usec int64
		m := n.next()
		if _, err := fmt.Sscanf(m, "RELOADING=1\nMONOTONIC_USEC=%d\n", &usec); err != nil || usec <= 0 {
			t.Errorf("%s: SIGHUP sends %q, %v", args[0], m, err)
		}
		if m := n.next(); m != "READY=1" {
			t.Errorf("%s: after the reload: %q", args[0], m)
		}
		p.signal(syscall.SIGTERM)
		if m := n.next(); m != "STOPPING=1" {
			t.Errorf("%s: SIGTERM sends %q", args[0], m)
		}
		p.wait(0)
	}
}

// WATCHDOG_PID of another process is none of ours, and a number that is none is told of.
func TestSystemdWatchdogOfAnother(t *testing.T) {
	for _, c := range []struct{ env, log string }{{"WATCHDOG_USEC=1000\nWATCHDOG_PID=1", ""}, {"WATCHDOG_USEC=soon", "cannot answer systemd's watchdog"}} {
		n := newNotified(t)
		cmd := exec.Command(binary, "echo", "--addr", "127.0.0.1:0")
		cmd.Env = append(append(os.Environ(), "NOTIFY_SOCKET="+n.path), strings.Split(c.env, "\n")...)
		p, _ := startCommand(t, cmd)
		if m := n.any(); m != "READY=1" {
			t.Errorf("the first message is %q", m)
		}
		p.stop(syscall.SIGTERM, 0)
		if m := n.any(); m != "STOPPING=1" || !strings.Contains(p.stderr(), c.log) {
			t.Errorf("%q: got %q, and the log\n%s", c.env, m, p.stderr())
		}
	}
}

// withSockets is a command that gets sockets as systemd passes them.
func withSockets(names string, sockets []*os.File, args ...string) *exec.Cmd {
	cmd := exec.Command("sh", append([]string{"-c", `LISTEN_PID=$$ exec "$@"`, "sh", binary}, args...)...)
	cmd.ExtraFiles = sockets
	cmd.Env = append(os.Environ(), fmt.Sprintf("LISTEN_FDS=%d", len(sockets)), "LISTEN_FDNAMES="+names)
	return cmd
}

// listenFile listens, as systemd does. The socket stays open until the test ends.
func listenFile(t *testing.T, network, address string) (f *os.File, addr string) {
	t.Helper()
	ln, err := net.Listen(network, address)
	if err != nil {
		t.Fatal(err)
	}
	if u, ok := ln.(*net.UnixListener); ok {
		u.SetUnlinkOnClose(false)
	}
	if f, err = ln.(interface{ File() (*os.File, error) }).File(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { f.Close() })
	addr = network + "://" + ln.Addr().String()
	ln.Close()
	return f, addr
}

// Every server serves the sockets that systemd has passed, also the clients that came before it.
func TestSystemdSockets(t *testing.T) {
	for _, args := range []string{"redis --addr", "http --echo --access-log off --addr", "echo --addr", "echo --backend std --addr", "proxy --listen"} {
		flag := args[strings.LastIndex(args, " "):]
		tcp, tcpAddr := listenFile(t, "tcp", "127.0.0.1:0")
		unix, unixAddr := listenFile(t, "unix", filepath.Join(t.TempDir(), "s"))
		other, otherAddr := listenFile(t, "tcp", "127.0.0.1:0")
		packets, err := net.ListenPacket("udp", "127.0.0.1:0")
		if err != nil {
			t.Fatal(err)
		}
		defer packets.Close()
		datagrams, err := packets.(*net.UDPConn).File()
		if err != nil {
			t.Fatal(err)
		}
		defer datagrams.Close()
		early := dial(t, tcpAddr)
		args := strings.Fields(args + " " + tcpAddr + flag + " " + unixAddr)
		if args[0] == "proxy" {
			_, to := start(t, "echo", "--addr", "127.0.0.1:0")
			args = append(args, "--to", to[0])
		}
		p, addresses := startCommand(t, withSockets("front:local:spare", []*os.File{tcp, unix, other, datagrams}, args...))
		if len(addresses) != 2 || addresses[0] != tcpAddr || addresses[1] != unixAddr {
			t.Errorf("%v: the addresses are %v", args, addresses)
		}
		for _, conn := range []net.Conn{early, dial(t, tcpAddr), dial(t, unixAddr)} {
			switch args[0] {
			case "redis":
				talk(t, conn, "PING\r\n", "+PONG\r\n")
			case "http":
				if got := askWith(t, conn, "POST /", "hello"); got.body != "hello" {
					t.Errorf("the body is %q", got.body)
				}
			default:
				talk(t, conn, "hello", "hello")
			}
			if args[0] == "proxy" {
				conn.Close() // the proxy waits for its clients
			}
			closeWithPeer(conn)
		}
		for _, want := range []string{
			"address=" + tcpAddr + " name=front", "address=" + unixAddr + " name=local",
			"listens at no address of this command: it is not used\" name=spare address=" + otherAddr,
			"does not listen for streams: it is not used\" name=LISTEN_FD_6",
		} {
			if !strings.Contains(p.stderr(), want) {
				t.Errorf("%v: no %q in the log:\n%s", args, want, p.stderr())
			}
		}
		p.stop(syscall.SIGTERM, 0)
		if _, err := os.Stat(strings.TrimPrefix(unixAddr, "unix://")); err != nil {
			t.Errorf("%v: systemd's socket is gone: %v", args, err)
		}
	}
}

// A listener of the proxy that a reload closes can come back: systemd has its socket still. So it is
// in the process that SIGUSR2 starts.
func TestSystemdSocketsAfterReload(t *testing.T) {
	socketsAfterReload(t, false)
	socketsAfterReload(t, true)
}

func socketsAfterReload(t *testing.T, upgrade bool) {
	_, to := start(t, "echo", "--addr", "127.0.0.1:0")
	socket, addr := listenFile(t, "tcp", "127.0.0.1:0")
	_, other := listenFile(t, "unix", filepath.Join(t.TempDir(), "s"))
	os.Remove(strings.TrimPrefix(other, "unix://"))
	file := filepath.Join(t.TempDir(), "proxy.toml")
	write := func(addrs ...string) {
		t.Helper()
		text := ""
		for _, a := range addrs {
			text += fmt.Sprintf("[[listener]]\naddress = %q\n", a)
		}
		text += fmt.Sprintf("[[pool]]\nname = \"p\"\n[[pool.target]]\naddress = %q\n", to[0])
		if err := os.WriteFile(file, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	write(addr, other)
	path, pidfile := filepath.Join(t.TempDir(), "systemd"), filepath.Join(t.TempDir(), "pid")
	local, localAddr := listenFile(t, "unix", path)
	p, _ := startCommand(t, withSockets("", []*os.File{socket, local}, "proxy", "--config", file, "--pidfile", pidfile))
	c := dial(t, addr)
	talk(t, c, "hello", "hello")
	c.Close()
	pid := p.cmd.Process.Pid
	if upgrade {
		for _, addrs := range [][]string{{addr, other}, {addr, other, localAddr}} { // which needs systemd's other socket
			write(addrs...)
			syscall.Kill(pid, syscall.SIGUSR2)
			pid = pidIn(t, pidfile, pid)
		}
		c := dial(t, localAddr)
		talk(t, c, "hello", "hello")
		c.Close()
	}
	for i, addrs := range [][]string{{other}, {other, addr}} {
		write(addrs...)
		syscall.Kill(pid, syscall.SIGHUP)
		for end := time.Now().Add(patience); strings.Count(p.stderr(), "the configuration was applied again") != i+1; time.Sleep(5 * time.Millisecond) {
			if time.Now().After(end) {
				t.Fatalf("not applied:\n%s", p.stderr())
			}
		}
	}
	c = dial(t, addr)
	talk(t, c, "hello", "hello")
	c.Close()
	syscall.Kill(pid, syscall.SIGTERM)
	p.wait(0)
	if _, err := os.Stat(path); err != nil {
		t.Errorf("systemd's socket is gone: %v", err)
	}
}

// A process that another one has replaced says nothing more: systemd would take it for the service.
func TestSystemdLeft(t *testing.T) {
	n := newNotified(t)
	t.Setenv("NOTIFY_SOCKET", n.path)
	e := &rondo.Engine{NumLoops: 1}
	defer e.Close()
	if err := e.Start(); err != nil {
		t.Fatal(err)
	}
	var left, stays manager
	left.ready(e, slog.Default())
	if m := n.any(); m != "READY=1" {
		t.Errorf("the first message is %q", m)
	}
	left.leave(1234567)
	if m := n.any(); m != "MAINPID=1234567" {
		t.Errorf("the last message is %q", m)
	}
	left.alive()
	left.reload(func() {})
	left.stopping()
	stays.follow()
	stays.ready(e, slog.Default())
	if m := n.any(); m != fmt.Sprintf("MAINPID=%d\nREADY=1", os.Getpid()) {
		t.Errorf("the next message is %q", m)
	}
}
