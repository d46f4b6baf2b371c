package main

import (
	"bufio"
	"encoding/json"
	"io"
	"net"
	"net/http"
	"os/exec"
	"strings"
	"syscall"
	"testing"

	"github.com/rondo-go/rondo"
	"github.com/rondo-go/rondo/internal/testkit"
	"github.com/rondo-go/rondo/proxy"
)

// deadAddress returns an address at which nobody listens.
func deadAddress(t *testing.T) string {
	t.Helper()
	ln, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	ln.Close()
	return ln.Addr().String()
}

// A target that refuses is passed over; the counters and the access log tell of it.
func TestProxy(t *testing.T) {
	echo := testkit.Listen(t, &rondo.Engine{NumLoops: 1}, testkit.Echo)
	stats := deadAddress(t)
	cmd := exec.Command(binary, "proxy", "--listen", "127.0.0.1:0", "--to", deadAddress(t), "--to", "tcp://"+echo,
		"--access-log", "json", "--loops", "1", "--stats", stats, "--idle", "1m", "--max-per-address", "3", "--choose", "roundrobin", "--health", "tcp", "--fall", "100000", "--health-interval", "1h")
	out, err := cmd.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	p, addresses := startCommand(t, cmd)
	lines := bufio.NewScanner(out)
	for range 3 {
		conn := dial(t, addresses[0])
		talk(t, conn, "hello", "hello")
		conn.(*net.TCPConn).CloseWrite()
		io.Copy(io.Discard, conn)
		conn.Close()
		if !lines.Scan() {
			t.Fatal("there is no line in the access log")
		}
		var line struct {
			Msg, Target, Ended_by string
			Received, Sent        int
		}
		if err := json.Unmarshal(lines.Bytes(), &line); err != nil || line.Msg != "connection" || line.Target != "tcp://"+echo ||
			line.Ended_by != "client" || line.Received != 5 || line.Sent != 5 {
			t.Errorf("logged %s, %v", lines.Text(), err)
		}
	}
	answer, err := http.Get("http://" + stats + "/")
	if err != nil {
		t.Fatal(err)
	}
	defer answer.Body.Close()
	var counts struct {
		Proxy  proxy.Stats
		Engine rondo.Stats
	}
	if err := json.NewDecoder(answer.Body).Decode(&counts); err != nil {
		t.Fatal(err)
	}
	targets := counts.Proxy.Pools[0].Targets
	if targets[0].State != "down" || targets[0].ChecksFailed != 1 || targets[1].Conns != 3 || targets[1].FromTarget != 15 || counts.Engine.Accepted != 3 {
		t.Errorf("the counters are %+v", counts)
	}
	p.stop(syscall.SIGTERM, 0)
}

// One sentence for a mistake.
func TestProxyMistakes(t *testing.T) {
	taken, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer taken.Close()
	const front = "proxy --listen 127.0.0.1:0 "
	for args, want := range map[string]string{
		"proxy":                                          "there is no address to listen on: give one with --listen",
		"proxy --listen :0":                              "there is no target: give one with --to",
		"proxy --listen --to":                            `--listen: expected string value but got "--to" (long flag); perhaps try --listen="--to"?`,
		"proxy --listen nope --to :1":                    `--listen: address "nope": missing port in address: want host:port, or :port for every interface`,
		front + "--to udp://:1":                          `--to: address "udp://:1": the network is udp: want tcp, tcp4, tcp6 or unix`,
		front + "--to http://h:1":                        `--to: address "http://h:1": unknown network http: want tcp, tcp4, tcp6, unix, udp, udp4, udp6 or unixgram`,
		front + "--to :1 --tries 0":                      "--tries is 0: want 1 or more",
		front + "--to :1 --rise 0":                       "--rise is 0: want 1 or more",
		front + "--to :1 --health-host a":                "--health-path and --health-host are for requests: give --health http too",
		front + "--to :1 --health http --health-path up": `proxy: pool "default": Check.Path is "up": want a path`,
		front + "--to :1 --choose best":                  `--choose must be one of "roundrobin","leastconns","sourcehash" but got "best"`,
		front + "--to :1 --to :1":                        `proxy: pool "default": target tcp://:1 is there twice: give it a weight instead`,
		front + "--to :1 --backend x":                    `--backend: no backend "x"`,
	} {
		out, code := run(t, strings.Fields(args)...)
		if code != 2 || !strings.HasPrefix(out, "rondo: "+want) || strings.Count(out, "\n") != 1 {
			t.Errorf("rondo %s: exit code %d, output %q, want %q", args, code, out, want)
		}
	}
	out, code := run(t, "proxy", "--to", ":1", "--listen", taken.Addr().String())
	if want := "rondo: cannot listen on tcp://" + taken.Addr().String() + ": bind: "; code != 1 || !strings.HasPrefix(out, want) {
		t.Errorf("exit code %d, output %q, want %q", code, out, want)
	}
}
