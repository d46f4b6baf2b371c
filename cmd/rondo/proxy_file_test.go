package main

import (
	"crypto/tls"
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"runtime"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/rondo-go/rondo"
	"github.com/rondo-go/rondo/internal/testkit"
	"github.com/rondo-go/rondo/proxy"
)

// Every setting of the file reaches the configuration.
func TestProxyFile(t *testing.T) {
	f := newKeyFiles(t)
	name := filepath.Join(f.dir, "proxy.toml")
	f.write(t, name, []byte(`
[[listener]]
address = "tcp://127.0.0.1:443"
pool = "web"
max-conns = 1000
hello-timeout = "3s"
accept-proxy = ["10.0.0.0/8", "::1"]
tls = { cert = "server.crt", key = "server.key", ca = "ca.crt", auth-clients = "optional", alpn = ["h2", "http/1.1"] }

[[listener.route]]
names = ["a.example", "*.b.example"]
pool = "app"

[[listener.route]]
names = ["c.example"]
pool = "web"
tls = { cert = "server.crt", key = "server.key" }

[[listener]]
address = "unix:///run/front.sock"
pool = "app"

[[pool]]
name = "web"
choose = "sourcehash"
connect-timeout = "2s"
tries = 4
eject-after = 5
eject-time = 60
resolve = "1m"
idle = "10m"
limit = "1h"
send-proxy = 2
slow-start = "30s"
queue = 9
queue-time = "7s"
tls = { ca = "ca.crt", name = "web.example", cert = "client.crt", key = "client.key" }
health = { check = "http", interval = "5s", timeout = "1s", rise = 6, fall = 7, path = "/up", host = "h.example", status = 204 }

[[pool.target]]
address = "web.example:80"
weight = 3
max-conns = 100
drain = true

[[pool]]
name = "app"
eject-after = 0
resolve = 0

[[pool.target]]
address = "unix:///run/app.sock"
`))
	c, err := readProxyFile(name)
	if err != nil {
		t.Fatal(err)
	}
	l, web, app := c.Listeners[0], c.Pools[0], c.Pools[1]
	if l.Network != "tcp" || l.Address != "127.0.0.1:443" || l.Pool != "web" || l.MaxConns != 1000 || l.HelloTimeout != 3*time.Second ||
		l.TLS.ClientAuth != tls.VerifyClientCertIfGiven || len(l.TLS.NextProtos) != 2 || l.TLS.ClientCAs == nil || l.AcceptProxy.Trust == nil ||
		c.Listeners[1].Network != "unix" || c.Listeners[1].Address != "/run/front.sock" || c.Listeners[1].TLS != nil {
		t.Errorf("the listeners are %+v", c.Listeners)
	}
	if r := l.Routes; len(r) != 2 || fmt.Sprint(r[0].Names) != "[a.example *.b.example]" || r[0].Pool != "app" || r[0].TLS != nil || r[1].TLS == nil {
		t.Errorf("the routes are %+v", l.Routes)
	}
	if web.TLS.ServerName != "web.example" || len(web.TLS.Certificates) != 1 || web.TLS.RootCAs == nil {
		t.Errorf("TLS to the targets is %+v", web.TLS)
	}
	web.TLS = nil
	want := proxy.Pool{Name: "web", Balance: proxy.SourceHash, ConnectTimeout: 2 * time.Second, Tries: 4, EjectAfter: 5, EjectTime: time.Minute,
		Resolve: time.Minute, Idle: 10 * time.Minute, Limit: time.Hour, SendProxy: 2, SlowStart: 30 * time.Second, Queue: 9, QueueTime: 7 * time.Second,
		Targets: []proxy.Target{{Network: "tcp", Address: "web.example:80", Weight: 3, MaxConns: 100, Drain: true}},
		Check:   proxy.Check{Kind: proxy.CheckHTTP, Interval: 5 * time.Second, Timeout: time.Second, Rise: 6, Fall: 7, Path: "/up", Host: "h.example", Status: 204}}
	if fmt.Sprintf("%+v", web) != fmt.Sprintf("%+v", want) {
		t.Errorf("the pool is %+v, want %+v", web, want)
	}
	if app.EjectAfter != -1 || app.Resolve != -1 || app.Targets[0].Network != "unix" {
		t.Errorf("the pool is %+v", app)
	}
}

// goName finds a field of package proxy.
var goName = regexp.MustCompile(`\b(Listener|Route|Pool|Target|Check|AcceptProxy)\.[A-Z]`)

// A mistake is told with the file and the setting; --check tells it too.
func TestProxyFileMistakes(t *testing.T) {
	name := filepath.Join(t.TempDir(), "proxy.toml")
	const front = "[[listener]]\naddress = \":1\"\n"
	const pool = "[[pool]]\nname = \"web\"\n"
	const target = "[[pool.target]]\naddress = \":2\"\n"
	for text, want := range map[string]string{
		"":                               "there is no [[listener]]",
		"[[listener]\n":                  "line 2: expected end of table",
		"[[listeners]]\n":                "there is no setting listeners",
		front + "adress = \":1\"\n":      "there is no setting listener.adress",
		front + "max-conns = \"many\"\n": "line 3",
		front + pool:                     `pool "web": it has no targets`,
		front + target:                   "incompatible types",
		front + pool + "idle = \"soon\"\n" + target:                           `"soon" is not a duration`,
		front + pool + "choose = \"best\"\n" + target:                         `pool "web": choose is "best": want roundrobin, leastconns or sourcehash`,
		front + pool + "health = {check=\"ftp\"}\n":                           `pool "web": health: check is "ftp": want off, tcp, tls, http or redis`,
		front + pool + "health = {rise=1}\n":                                  `pool "web": health: there is no check`,
		front + "tls = {}\n" + pool + target:                                  "listener :1: tls: there is no cert",
		front + "tls = {cert=\"x\"}\n" + pool + target:                        "listener :1: tls: cert and key: open ",
		front + "accept-proxy = []\n" + pool + target:                         "listener :1: accept-proxy is empty: want networks",
		front + "hello-timeout = 3\n" + pool + target:                         "listener :1: hello-timeout is for routes",
		front + "max-conns = -1\n" + pool + target:                            "listener tcp://:1: max-conns is -1",
		front + "[[listener.route]]\nnames=[]\n" + pool + target:              "a route has no names: want some, or the listener's pool",
		front + pool + target + "weight = 0\n":                                `pool "web": target :2: weight is 0: want 1 or more; drain = true`,
		front + pool + target + "weight = -1\n":                               "target tcp://:2: weight is -1: want 1 to 1000",
		front + pool + target + "weight = 1001\n":                             "target tcp://:2: weight is 1001: want 1 to 1000",
		front + pool + target + "max-conns = -1\n":                            "target tcp://:2: max-conns is -1",
		front + pool + "tries = -1\n" + target:                                `pool "web": tries is -1`,
		front + pool + "queue = -1\n" + target:                                `pool "web": queue is -1`,
		front + pool + "send-proxy = 3\n" + target:                            `pool "web": send-proxy is 3`,
		front + pool + "queue-time = 3\n" + target:                            `pool "web": queue-time is for clients that wait`,
		front + pool + "eject-after = 0\neject-time = 3\n" + target:           `pool "web": eject-time is for targets that fail`,
		front + pool + "health = {check=\"tcp\",path=\"/\"}\n" + target:       `pool "web": health: path, host and status are for requests`,
		front + pool + "health = {check=\"tcp\",rise=-1}\n" + target:          `pool "web": health.rise is -1`,
		front + pool + "health = {check=\"tcp\",fall=-1}\n" + target:          `pool "web": health.fall is -1`,
		front + pool + "health = {check=\"http\",path=\"up\"}\n" + target:     `pool "web": health.path is "up"`,
		front + pool + "health = {check=\"http\",host=\"a b\"}\n" + target:    `pool "web": health.host is "a b"`,
		front + pool + "health = {check=\"http\",status=7}\n" + target:        `pool "web": health.status is 7`,
		front + pool + "tls = {}\n[[pool.target]]\naddress = \"unix:///x\"\n": "want the name in tls",
		front + "accept-proxy = [\"here\"]\n" + pool:                          "listener :1: accept-proxy here: want a network",
		front + pool + "tls = {ca=\"nofile\"}\n" + target:                     `pool "web": tls: `,
		"[[listener]]\naddress = \"udp://:1\"\n":                              `listener udp://:1: address: address "udp://:1": the network is udp`,
		front + "pool = \"app\"\n" + pool + target:                            `listener tcp://:1: there is no pool "app"`,
	} {
		if err := os.WriteFile(name, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
		if _, err := readProxyFile(name); err == nil || !strings.HasPrefix(err.Error(), name+": ") || !strings.Contains(err.Error(), want) {
			t.Errorf("%q: %v, want %q", text, err, want)
		} else if goName.MatchString(err.Error()) || strings.Contains(err.Error(), " --") {
			t.Errorf("%q: %v names what is not in a file", text, err)
		}
	}
	if err := os.WriteFile(name, []byte(front+pool+target), 0o600); err != nil {
		t.Fatal(err)
	}
	if out, code := run(t, "proxy", "--config", name, "--check"); code != 0 || out != "there are no mistakes: 1 listeners, 1 pools\n" {
		t.Errorf("exit code %d, output %q", code, out)
	}
	if err := os.WriteFile(name, []byte(front+pool), 0o600); err != nil {
		t.Fatal(err)
	}
	out, code := run(t, "proxy", "--config", name, "--check")
	if want := "rondo: " + name + `: pool "web": it has no targets` + "\n"; code != 1 || out != want {
		t.Errorf("exit code %d, output %q, want %q", code, out, want)
	}
	if out, code := run(t, "proxy", "--config", name+"x"); code != 1 || !strings.HasPrefix(out, "rondo: --config: open ") {
		t.Errorf("exit code %d, output %q", code, out)
	}
	if out, code := run(t, "proxy", "--listen", ":1", "--to", ":2", "--check"); code != 0 || !strings.Contains(out, "no mistakes") {
		t.Errorf("exit code %d, output %q", code, out)
	}
}

// The file of docs/proxy.md is one.
func TestProxyFileOfThePage(t *testing.T) {
	page, err := os.ReadFile("../../docs/proxy.md")
	if err != nil {
		t.Fatal(err)
	}
	block := regexp.MustCompile("(?s)\n```toml\n(.*?)```").FindSubmatch(page)
	if block == nil {
		t.Fatal("the page shows no file")
	}
	f := newKeyFiles(t)
	name := filepath.Join(f.dir, "proxy.toml")
	f.write(t, name, block[1])
	if _, err := readProxyFile(name); err != nil {
		t.Error(err)
	}
}

// SIGHUP reads the file again: connections go on, and a mistake changes nothing.
func TestProxyFileReload(t *testing.T) {
	if runtime.GOOS == "windows" {
		return // there is no SIGHUP
	}
	one := testkit.Listen(t, &rondo.Engine{NumLoops: 1}, testkit.Echo)
	name := filepath.Join(t.TempDir(), "proxy.toml")
	write := func(target string) {
		t.Helper()
		text := "[[listener]]\naddress = \"127.0.0.1:0\"\n[[pool]]\nname = \"web\"\n[[pool.target]]\naddress = \"" + target + "\"\n"
		if err := os.WriteFile(name, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	write(one)
	p, addresses := start(t, "proxy", "--config", name, "--access-log", "off", "--loops", "2", "--log-level", "info")
	old := dial(t, addresses[0])
	talk(t, old, "hello", "hello")
	write("nowhere")
	p.signal(syscall.SIGHUP)
	testkit.Until(t, "an error", func() bool { return strings.Contains(p.stderr(), "the old one goes on") })
	talk(t, dial(t, addresses[0]), "hello", "hello")
	two := testkit.Listen(t, &rondo.Engine{NumLoops: 1}, func(c *rondo.Conn) rondo.Handler {
		fmt.Fprint(c, "two")
		return nil
	})
	write(two)
	p.signal(syscall.SIGHUP)
	testkit.Until(t, "the new file", func() bool { return strings.Contains(p.stderr(), "applied again") })
	talk(t, dial(t, addresses[0]), "", "two")
	talk(t, old, "still there", "still there")
	old.Close()
	p.stop(syscall.SIGTERM, 0)
}
