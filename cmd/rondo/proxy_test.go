package main

import (
	"bufio"
	"crypto/tls"
	"encoding/json"
	"errors"
	"io"
	"net"
	"net/http"
	"os/exec"
	"path/filepath"
	"runtime"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/rondo-go/rondo"
	"github.com/rondo-go/rondo/internal/testkit"
	"github.com/rondo-go/rondo/proxy"
)

// A target that refuses is passed over; the counters and the access log tell of it.
func TestProxy(t *testing.T) {
	echo := testkit.Listen(t, &rondo.Engine{NumLoops: 1}, testkit.Echo)
	stats := testkit.FreeAddress(t)
	cmd := exec.Command(binary, "proxy", "--listen", "127.0.0.1:0", "--to", testkit.FreeAddress(t), "--to", "tcp://"+echo,
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
		"proxy":                                          "there is no address to listen on: give one with --listen, or a file with --config",
		"proxy --listen :0":                              "there is no target: give one with --to",
		"proxy --listen --to":                            `--listen: expected string value but got "--to" (long flag); perhaps try --listen="--to"?`,
		"proxy --listen nope --to :1":                    `--listen: address "nope": missing port in address: want host:port, or :port for every interface`,
		front + "--to udp://:1":                          `--to: address "udp://:1": the network is udp: want tcp, tcp4, tcp6 or unix`,
		front + "--to http://h:1":                        `--to: address "http://h:1": unknown network http: want tcp, tcp4, tcp6, unix, udp, udp4, udp6 or unixgram`,
		front + "--to :1 --tries 0":                      "--tries is 0: want 1 or more",
		front + "--to :1 --send-proxy 3":                 "--send-proxy is 3: want 2 or less",
		front + "--to :1 --tls-alpn h2":                  "--tls-alpn needs a certificate: give it with --tls-cert",
		front + "--to :1 --tls-key x":                    "--tls-key and --tls-ca need a certificate: give it with --tls-cert",
		front + "--to :1 --to-tls-name x":                "--to-tls-ca, --to-tls-name and --to-tls-insecure are for TLS: give --to-tls too",
		front + "--to :1 --accept-proxy 10.0.0/8":        "--accept-proxy 10.0.0/8: want a network, as in 10.0.0.0/8, or an address, or any",
		front + "--to unix:///x --to-tls":                `proxy: pool "default": target unix:///x: its address has no name for the certificate`,
		"proxy --config x --choose leastconns":           "--choose and --config exclude each other: write it into the file",
		"proxy --config x --tls-cert y":                  "--tls-cert and --config exclude each other: write it into the file",
		"proxy --config x --maxclients 0":                "--maxclients is 0: want 1 or more",
		front + "--to :1 --health tcp --rise 0":          "--rise is 0: want 1 or more",
		front + "--to :1 --health-host a":                "--health-path and --health-host are for requests: give --health http too",
		front + "--to :1 --health http --health-path up": `proxy: pool "default": --health-path is "up": want a path`,
		front + "--to :1 --rise 4":                       "--health-interval, --health-timeout, --rise and --fall are for checks: give --health tcp, or another kind, too",
		front + "--to :1 --health off --fall 4":          "--health-interval, --health-timeout, --rise and --fall are for checks: give --health tcp, or another kind, too",
		front + "--to :1 --queue-time 4":                 "--queue-time is for clients that wait: give --queue too",
		front + "--to :1 --eject-after 0 --eject-time 3": "--eject-time is for targets that fail, and --eject-after is 0",
		front + "--to :1 --tls-auth-clients yes":         "--tls-auth-clients needs a certificate: give it with --tls-cert",
		front + "--to :1 --check --stats nowhere":        `--stats: address "nowhere": missing port in address`,
		"proxy --config x --check --stats udp://:1":      `--stats: address "udp://:1": the network is udp`,
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

// TLS is ended and begun, with PROXY headers on the way; SIGHUP brings a new certificate.
func TestProxyTLS(t *testing.T) {
	f := newKeyFiles(t)
	_, targets := start(t, "redis", "--addr", "tcp://127.0.0.1:0", "--tls-cert", f.cert, "--tls-key", f.key, "--tls-auth-clients", "no")
	target := strings.TrimPrefix(targets[0], "tcp://")
	_, middle := start(t, "proxy", "--listen", "127.0.0.1:0", "--accept-proxy", "127.0.0.1", "--accept-proxy", "::1/128",
		"--to", target, "--to-tls", "--to-tls-ca", f.ca, "--to-tls-name", "localhost", "--health", "redis")
	p, front := start(t, "proxy", "--listen", "127.0.0.1:0", "--to", strings.TrimPrefix(middle[0], "tcp://"), "--send-proxy", "2",
		"--tls-cert", f.cert, "--tls-key", f.key, "--access-log", "off")
	old := f.connect(t, front[0], false)
	talk(t, old, "PING\r\n", "+PONG\r\n")
	if runtime.GOOS == "windows" {
		return // there is no SIGHUP
	}
	f.issue(t, "second.test")
	p.signal(syscall.SIGHUP)
	testkit.Until(t, "the new certificate", func() bool { return strings.Contains(p.stderr(), "applied again") })
	if name := serverName(t, f.connect(t, front[0], false)); name != "second.test" {
		t.Errorf("after SIGHUP the certificate is for %s", name)
	}
	f.write(t, f.cert, []byte("nothing"))
	p.signal(syscall.SIGHUP)
	testkit.Until(t, "an error", func() bool { return strings.Contains(p.stderr(), "the old one goes on") })
	talk(t, f.connect(t, front[0], false), "PING\r\n", "+PONG\r\n")
	talk(t, old, "PING\r\n", "+PONG\r\n")
	old.Close()
	p.stop(syscall.SIGTERM, 0)
}

// When descriptors run out, clients wait or are reset, no target is to blame, and later all is
// well again.
func TestProxyWithoutDescriptors(t *testing.T) {
	if runtime.GOOS == "windows" {
		return // there is no such limit
	}
	echo := testkit.Listen(t, &rondo.Engine{NumLoops: 1}, testkit.Echo)
	stats := testkit.FreeAddress(t)
	p, addresses := startCommand(t, exec.Command("sh", "-c", `ulimit -n 40; exec "$0" "$@"`, binary, "proxy",
		"--listen", "127.0.0.1:0", "--to", echo, "--loops", "1", "--access-log", "off", "--stats", stats))
	if !strings.Contains(p.stderr(), "the limit of open files is too low") {
		t.Errorf("the log is %s", p.stderr())
	}
	_, address, _ := strings.Cut(addresses[0], "://")
	var conns []net.Conn
	for range 60 {
		c, err := net.Dial("tcp", address)
		if errors.Is(err, syscall.ECONNRESET) {
			continue // the reset came before Dial had looked
		}
		if err != nil {
			t.Fatal(err)
		}
		defer c.Close()
		conns = append(conns, c)
	}
	testkit.Until(t, "a warning", func() bool { return strings.Contains(p.stderr(), "cannot accept connections") })
	for _, c := range conns {
		c.Close()
	}
	testkit.Until(t, "an echo", func() bool {
		c, err := net.Dial("tcp", address)
		if err != nil {
			return false
		}
		defer c.Close()
		c.SetDeadline(time.Now().Add(patience))
		io.WriteString(c, "hello")
		_, err = io.ReadFull(c, make([]byte, 5))
		return err == nil
	})
	var counts struct{ Proxy proxy.Stats }
	answer, err := http.Get("http://" + stats + "/")
	if err != nil {
		t.Fatal(err)
	}
	defer answer.Body.Close()
	json.NewDecoder(answer.Body).Decode(&counts)
	if target := counts.Proxy.Pools[0].Targets[0]; target.DialsFailed != 0 || target.State != "up" {
		t.Errorf("the target's counts are %+v", target)
	}
	p.stop(syscall.SIGTERM, 0)
}

// Clients go on resuming their TLS sessions after SIGHUP, as long as the certificate stays.
func TestProxyKeepsTickets(t *testing.T) {
	if runtime.GOOS == "windows" {
		return // there is no SIGHUP
	}
	f := newKeyFiles(t)
	echo := testkit.Listen(t, &rondo.Engine{NumLoops: 1}, testkit.Echo)
	file := filepath.Join(f.dir, "proxy.toml")
	f.write(t, file, []byte(`
[[listener]]
address = "127.0.0.1:0"
tls = { cert = "server.crt", key = "server.key" }
[[listener]]
address = "localhost:0"
[[listener.route]]
names = ["localhost"]
tls = { cert = "server.crt", key = "server.key", alpn = ["echo"] }
[[pool]]
[[pool.target]]
address = "`+echo+`"
`))
	for _, args := range [][]string{
		{"--listen", "127.0.0.1:0", "--to", echo, "--tls-cert", f.cert, "--tls-key", f.key},
		{"--config", file},
	} {
		p, addresses := start(t, append([]string{"proxy", "--access-log", "off"}, args...)...)
		for _, address := range addresses {
			config := &tls.Config{InsecureSkipVerify: true, ServerName: "localhost", ClientSessionCache: tls.NewLRUClientSessionCache(0)}
			resumes := func() bool {
				c := tls.Client(dial(t, address), config)
				talk(t, c, "hello", "hello") // the ticket comes behind the handshake
				c.Close()
				return c.ConnectionState().DidResume
			}
			if resumes() || !resumes() {
				t.Fatalf("%s: the first session is resumed, or the second is not", address)
			}
			reload := func() {
				n := strings.Count(p.stderr(), "applied again")
				p.signal(syscall.SIGHUP)
				testkit.Until(t, "the reload", func() bool { return strings.Count(p.stderr(), "applied again") > n })
			}
			for range 2 {
				reload()
				if !resumes() {
					t.Errorf("%s: after SIGHUP the session is not resumed", address)
				}
			}
			f.issue(t, "other.test")
			reload()
			if resumes() {
				t.Errorf("%s: with another certificate the session is resumed", address)
			}
		}
		p.stop(syscall.SIGTERM, 0)
	}
}
