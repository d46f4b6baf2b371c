package main

import (
	"bytes"
	"encoding/json"
	"fmt"
	"maps"
	"net/http"
	"os"
	"os/exec"
	"regexp"
	"slices"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/rondo-go/rondo"
	"github.com/rondo-go/rondo/internal/testkit"
	"github.com/rondo-go/rondo/redis"
)

// serveHere serves an address in this process.
func serveHere(t *testing.T, network, address string, open rondo.OpenFunc) string {
	t.Helper()
	e := &rondo.Engine{NumLoops: 1}
	ln, err := e.Listen(network, address, rondo.SocketOptions{}, open)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { e.Close() })
	return ln.Addr().String()
}

func echoHere(t *testing.T) (address string) {
	return serveHere(t, "tcp", "127.0.0.1:0", func(*rondo.Conn) rondo.Handler { return rondo.HandlerFunc((*rondo.Conn).Write) })
}

func redisHere(t *testing.T, password string) (address string) {
	t.Helper()
	s := &redis.Server{Engine: &rondo.Engine{NumLoops: 1}, Password: password}
	ln, err := s.Listen("tcp", "127.0.0.1:0", rondo.SocketOptions{})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		s.Close()
		s.Engine.Close()
	})
	return ln.Addr().String()
}

// runBench runs "rondo bench" to its end.
func runBench(t *testing.T, args ...string) (stdout, stderr string, code int) {
	t.Helper()
	cmd := exec.Command(binary, append([]string{"bench"}, args...)...)
	var out, errs bytes.Buffer
	cmd.Stdout, cmd.Stderr = &out, &errs
	if err := cmd.Run(); err != nil && cmd.ProcessState == nil {
		t.Fatal(err)
	}
	return out.String(), errs.String(), cmd.ProcessState.ExitCode()
}

// results runs a load with --json.
func results(t *testing.T, args ...string) []map[string]any {
	t.Helper()
	stdout, stderr, code := runBench(t, append(args, "--json", "--warmup", "10ms")...)
	if code != 0 || stderr != "" {
		t.Fatalf("%v: exit code %d, standard error %q", args, code, stderr)
	}
	var got struct{ Results []map[string]any }
	if err := json.Unmarshal([]byte(stdout), &got); err != nil {
		t.Fatalf("%v: %v in %s", args, err, stdout)
	}
	return got.Results
}

func TestBenchEchoJSON(t *testing.T) {
	address := echoHere(t)
	all := results(t, "echo", "--addr", address, "--conns", "4", "--size", "1KiB", "--pipeline", "3", "--count", "2000", "--loops", "2")
	if len(all) != 1 {
		t.Fatalf("%d results", len(all))
	}
	r := all[0]
	for name, want := range map[string]any{
		"test": "echo", "address": address, "loops": 2.0, "conns": 4.0, "pipeline": 3.0, "size_bytes": 1024.0,
		"warmup_s": 0.01, "requests": 2000.0, "interrupted": false,
	} {
		if r[name] != want {
			t.Errorf("%s is %v, want %v", name, r[name], want)
		}
	}
	for _, name := range []string{"elapsed_s", "requests_per_s", "sent_bytes_per_s", "received_bytes_per_s"} {
		if v, ok := r[name].(float64); !ok || v <= 0 {
			t.Errorf("%s is %v", name, r[name])
		}
	}
	latency, _ := r["latency_us"].(map[string]any)
	last := 0.0
	for _, name := range []string{"p50", "p90", "p99", "p99.9", "max"} {
		v, ok := latency[name].(float64)
		if !ok || v <= 0 || v < last {
			t.Errorf("latencies are %v", latency)
		}
		last = v
	}
	want := []string{"address", "backend", "conns", "elapsed_s", "interrupted", "latency_us", "loops", "pipeline", "received_bytes_per_s",
		"requests", "requests_per_s", "sent_bytes_per_s", "size_bytes", "test", "warmup_s"}
	if got := slices.Sorted(maps.Keys(r)); !slices.Equal(got, want) {
		t.Errorf("the names are %q, want %q", got, want)
	}
}

func TestBenchRedis(t *testing.T) {
	address := redisHere(t, "secret")
	all := results(t, "redis", "--addr", address, "--password", "secret", "--keyspace", "100", "-P", "8", "-n", "1000")
	var names []string
	for _, r := range all {
		names = append(names, r["test"].(string))
		if r["requests"] != 1000.0 || r["keyspace"] != 100.0 {
			t.Errorf("%v", r)
		}
	}
	if want := []string{"ping", "set", "get", "incr", "mset"}; !slices.Equal(names, want) {
		t.Errorf("the tests are %q, want %q", names, want)
	}
	if all = results(t, "redis", "--addr", address, "-a", "secret", "-t", "get", "-r", "100", "--zipf", "1.5", "-n", "100"); len(all) != 1 || all[0]["zipf"] != 1.5 {
		t.Errorf("with Zipf's law: %v", all)
	}
	if all = results(t, "redis", "--addr", address, "-a", "secret", "--tests", "GET,ping", "-n", "10"); len(all) != 2 || all[0]["test"] != "get" || all[1]["test"] != "ping" {
		t.Errorf("of two tests: %v", all)
	}
}

// Files and an echo, over TLS and a unix socket too.
func TestBenchHTTP(t *testing.T) {
	d := newTree(t)
	d.write("a.txt", "hello world", early)
	_, files := serveHTTP(t, "--dir", d.dir)
	f := newKeyFiles(t)
	_, echo := start(t, f.args("http", "--echo", "--access-log", "off")...)
	for _, c := range []struct {
		args string
		size float64
	}{
		{"--addr " + files + " --path /a.txt -P 16", 11},
		{"--addr " + files + " --path /a.txt -H Range:bytes=0-4", 5},
		{"--addr " + files + " --path / --rate 1000", 0},
		{"--addr " + echo[0] + " --tls --tls-ca " + f.ca + " --post --size 100KiB -P 2", 100 << 10},
		{"--addr " + echo[0] + " --tls --insecure", 0},
	} {
		r := results(t, append([]string{"http", "--conns", "4", "--count", "200", "--loops", "2"}, strings.Fields(c.args)...)...)
		if len(r) != 1 || r[0]["test"] != "http" || r[0]["requests"] != 200.0 || c.size > 0 && r[0]["size_bytes"] != c.size {
			t.Errorf("%s: %v", c.args, r)
		}
	}
}

// An HTTP load tells what is wrong with the server.
func TestBenchHTTPFailures(t *testing.T) {
	_, files := serveHTTP(t, "--dir", t.TempDir())
	var n atomic.Int32
	changing := serveBackend(t, func(w http.ResponseWriter, r *http.Request) { fmt.Fprintf(w, "answer %04d", n.Add(1)) })
	closing := serveBackend(t, func(w http.ResponseWriter, r *http.Request) { w.Header().Set("Connection", "close") })
	echo, missing := echoHere(t), testkit.FreeAddress(t)
	for _, c := range []struct{ args, want string }{
		{"--addr " + files + " --path /none", files + ` answers GET /none with 404 Not Found: "404 page not found"; choose another request with --path or --header`},
		{"--conns 1 --addr " + changing[len("http://"):], "connection 1 of 1: reply 1 is wrong at byte 10 of the body: got \"answer 0002\", want \"answer 0001\""},
		{"--addr " + closing[len("http://"):], " closes the connection after its answer"},
		{"--addr " + echo, echo + " gives no answer over HTTP: malformed HTTP"},
		{"--addr " + missing, "cannot connect to " + missing + `: no server listens there; start one, such as "rondo http --dir .", or give another address with --addr`},
	} {
		stdout, stderr, code := runBench(t, append(strings.Fields("http --json --warmup 0 "), strings.Fields(c.args)...)...)
		if code != 1 || stdout != "" || strings.Count(stderr, "\n") != 1 || !strings.Contains(stderr, c.want) {
			t.Errorf("%s: exit code %d, output %q, errors %q, want %q", c.args, code, stdout, stderr, c.want)
		}
	}
	if r := results(t, "http", "--any-body", "--count", "10", "--addr", changing[len("http://"):]); len(r) != 1 || r[0]["requests"] != 10.0 {
		t.Errorf("with --any-body: %v", r)
	}
}

// The text output.
func TestBenchText(t *testing.T) {
	stdout, stderr, code := runBench(t, "echo", "--addr", echoHere(t), "--conns", "2", "--count", "1200", "--warmup", "0", "--rate", "500")
	want := regexp.MustCompile(`^ECHO: 127\.0\.0\.1:\d+, 2 connections, 1 in flight on each, 64 B, open loop at 500 requests/s, \w+, 1 loop
  [\d.]+ requests/s \(1200 in \d+\.\d\d s\), [\d.]+ \w+/s sent, [\d.]+ \w+/s received
  latency p50 [\d.]+ \S+, p90 [\d.]+ \S+, p99 [\d.]+ \S+, p99\.9 [\d.]+ \S+, max [\d.]+ \S+
(  fell behind: .*\n)?$`)
	if code != 0 || !want.MatchString(stdout) {
		t.Errorf("exit code %d, output %q", code, stdout)
	}
	if !regexp.MustCompile(`(?m)^echo: \d+ s, \d+ requests/s, p99 `).MatchString(stderr) {
		t.Errorf("progress is %q", stderr)
	}
}

func TestBenchInterrupted(t *testing.T) {
	begun := make(chan bool, 1)
	requests := 0
	address := serveHere(t, "tcp", "127.0.0.1:0", func(*rondo.Conn) rondo.Handler {
		return rondo.HandlerFunc(func(c *rondo.Conn, in []byte) (int, error) {
			if requests++; requests == 1000 {
				begun <- true
			}
			return c.Write(in)
		})
	})
	cmd := exec.Command(binary, "bench", "echo", "--addr", address, "--duration", "1h", "--warmup", "0")
	signalable(cmd)
	var out bytes.Buffer
	cmd.Stdout = &out
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	defer cmd.Process.Kill()
	select {
	case <-begun:
	case <-time.After(patience):
		t.Fatal("no load came")
	}
	if err := sendSignal(cmd, os.Interrupt); err != nil {
		t.Fatal(err)
	}
	if err := cmd.Wait(); err != nil {
		t.Error(err)
	}
	if got := out.String(); !strings.Contains(got, "  latency p50 ") || !strings.HasSuffix(got, "  interrupted: these are the measurements so far\n") {
		t.Errorf("output %q", got)
	}
}

func TestBenchFailures(t *testing.T) {
	silent := echoHere(t)
	corrupt := serveHere(t, "tcp", "127.0.0.1:0", func(*rondo.Conn) rondo.Handler {
		return rondo.HandlerFunc(func(c *rondo.Conn, in []byte) (int, error) {
			bad := bytes.Clone(in)
			bad[len(bad)-1] = '!'
			return c.Write(bad)
		})
	})
	closing := serveHere(t, "tcp", "127.0.0.1:0", func(*rondo.Conn) rondo.Handler {
		return rondo.HandlerFunc(func(c *rondo.Conn, in []byte) (int, error) {
			c.Close()
			return len(in), nil
		})
	})
	protected := redisHere(t, "secret")
	missing := testkit.FreeAddress(t)
	for _, c := range []struct {
		args string
		code int
		want string
	}{
		{"echo --addr " + missing, 1, "cannot connect to " + missing + `: no server listens there; start one, such as "rondo echo", or give another address with --addr`},
		{"redis --addr " + missing, 1, `"rondo redis"`},
		{"echo --conns 1 --addr " + corrupt, 1, "connection 1 of 1: reply 1 is wrong at byte 63: got "},
		{"echo --conns 1 --addr " + closing, 1, "connection 1 of 1: lost after 0 replies, with 1 outstanding: the server closed it"},
		{"redis --addr " + protected, 1, protected + " requires a password: give it with --password"},
		{"redis --password wrong --addr " + protected, 1, protected + " rejected the password of --password"},
		{"echo --addr nowhere", 2, "--addr: address \"nowhere\""},
		{"echo --conns 0 --addr " + silent, 2, "--conns is 0: want 1 or more"},
		{"echo --size 0 --addr " + silent, 2, "--size is 0: want 1 or more"},
		{"echo --size 1GiB --addr " + silent, 2, "want fewer or smaller requests"},
		{"echo --count 0 --duration 0 --addr " + silent, 2, "--duration and --count are both 0"},
		{"echo --backend nope --addr " + silent, 2, "choose one of"},
		{"redis --tests set,nope --addr " + silent, 2, `no test "nope": choose from ping, set, get, incr, mset`},
		{"redis --keyspace 0 --addr " + silent, 2, "--keyspace is 0: want 1 or more"},
		{"redis --zipf 0.9 --addr " + silent, 2, "--zipf is 0.9: want a number above 1"},
	} {
		stdout, stderr, code := runBench(t, append(strings.Fields(c.args), "--json", "--warmup", "0")...)
		if code != c.code || stdout != "" || strings.Count(stderr, "\n") != 1 || !strings.HasPrefix(stderr, "rondo: ") || !strings.Contains(stderr, c.want) {
			t.Errorf("rondo bench %s: exit code %d, output %q, errors %q, want %q", c.args, code, stdout, stderr, c.want)
		}
	}
}

func TestBenchHelpTeaches(t *testing.T) {
	for args, want := range map[string][]string{
		"bench --help":       {"bench echo", "bench http", "bench redis"},
		"bench http --help":  {"Examples:", "rondo bench http --post", "Size of the bodies of --post", "the body of the first", "Ctrl-C"},
		"bench echo --help":  {"Examples:", "rondo bench echo --rate 20000", "the time the request was due", "Size of messages", "Ctrl-C"},
		"bench redis --help": {"Examples:", "-t set,get -P 32", "Size of values", "a server whose data matters"},
	} {
		out, code := run(t, strings.Fields(args)...)
		out = strings.Join(strings.Fields(out), " ") // lines may be wrapped anywhere
		for _, want := range want {
			if code != 0 || !strings.Contains(out, want) {
				t.Errorf("rondo %s: exit code %d, no %q in:\n%s", args, code, want, out)
			}
		}
	}
}

func TestScaled(t *testing.T) {
	for micros, want := range map[float64]string{
		0: "0 µs", 7: "7 µs", 7.25: "7.25 µs", 12.34: "12.3 µs", 999.4: "999 µs", 999.6: "1.00 ms", 12345: "12.3 ms", 2.5e6: "2.50 s", 3.6e9: "3600 s",
	} {
		if got := timeText(micros); got != want {
			t.Errorf("%v µs are %q, want %q", micros, got, want)
		}
	}
	for n, want := range map[float64]string{64: "64 B", 1024: "1 KiB", 1536: "1.50 KiB", 5e6: "4.77 MiB"} {
		if got := bytesText(n); got != want {
			t.Errorf("%v bytes are %q, want %q", n, got, want)
		}
	}
}
