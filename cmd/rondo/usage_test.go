package main

import (
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
	"time"

	"github.com/rondo-go/rondo/internal/pick"
	"github.com/rondo-go/rondo/internal/testkit"
)

// The error of a mistake is one sentence that names the flag and the cause once.
func TestMistakesAreOneSentence(t *testing.T) {
	const (
		noStream = "want tcp, tcp4, tcp6 or unix"
		noPacket = "want tcp, tcp4, tcp6, unix, udp, udp4, udp6 or unixgram"
	)
	commands := []string{"redis", "http --echo", "echo", "bench redis", "bench http", "bench echo"}
	type mistake struct{ args, want string }
	var mistakes []mistake
	for _, c := range commands {
		networks := noStream
		if c == "echo" {
			networks = noPacket
		}
		mistakes = append(mistakes,
			mistake{c + " --backend nope", `--backend: no backend "nope" on this platform: choose one of ` + strings.Join(pick.Names(), ", ")},
			mistake{c + " --backend std,nope", `--backend: no backend "nope" on this platform: choose one of ` + strings.Join(pick.Names(), ", ")},
			mistake{c + " --addr http://127.0.0.1:80", "--addr http://127.0.0.1:80: the network is http: " + networks},
			mistake{c + " --addr localhost", `--addr: address "localhost": missing port in address: want host:port, or :port for every interface`},
			mistake{c + " --addr tcp://localhost:", `--addr: address "tcp://localhost:": missing port in address: want host:port, or :port for every interface`},
			mistake{c + " --addr ::1:80", `--addr: address "::1:80": too many colons in address: want host:port, or :port for every interface`},
			mistake{c + " --addr", "--addr: the value is missing"},
			mistake{c + " --loops", "--loops: the value is missing"},
			mistake{c + " --backend", "--backend: the value is missing"},
			mistake{c + " --backend --loops 1", `--backend: expected string value but got "--loops" (long flag); perhaps try --backend="--loops"?`},
			mistake{c + " --loops 1000000", "--loops is 1000000: want 1024 or less"},
		)
	}
	for _, c := range []string{"redis", "http --echo", "bench redis", "bench http", "bench echo"} {
		mistakes = append(mistakes,
			mistake{c + " --addr udp://127.0.0.1:0", "--addr udp://127.0.0.1:0: the network is udp: " + noStream},
			mistake{c + " --addr unixgram:///tmp/s", "--addr unixgram:///tmp/s: the network is unixgram: " + noStream},
		)
	}
	for _, c := range []string{"redis", "http --echo", "echo"} {
		mistakes = append(mistakes,
			mistake{c + " --loops -1", "--loops is -1: want 0 or more"},
			mistake{c + " --loops=-1", "--loops is -1: want 0 or more"},
			mistake{c + " --timeout -5s", `--timeout: "-5s" is not a duration: want seconds, or a unit, as in 90s or 5m`},
			mistake{c + " --timeout", "--timeout: the value is missing"},
			mistake{c + " --tls-cert", "--tls-cert: the value is missing"},
			mistake{c + " --maxclients 0", "--maxclients is 0: want 1 or more"},
			mistake{c + " --high-water 0", "--high-water is 0: want 1 or more"},
			mistake{c + " --high-water 1GiB", "--high-water is 1073741824: want 16777216 or less"},
			mistake{c + " --receive-buffers -1", "--receive-buffers is -1: want 0 or more"},
			mistake{c + " --receive-buffers 100000", "--receive-buffers is 100000: want 32768 or less"},
			mistake{c + " --receive-buffers 64 --backend std", "--receive-buffers is 64, and backend std has none: leave the flag out, or choose --backend uring"},
			mistake{c + " --addr 127.0.0.1:99999", "--addr 127.0.0.1:99999: invalid port"},
			mistake{c + " --addr 127.0.0.1:0 --addr nowhere", `--addr: address "nowhere": missing port in address: want host:port, or :port for every interface`},
		)
	}
	mistakes = append(mistakes,
		mistake{"redis --requirepass", "--requirepass: the value is missing"},
		mistake{"bench redis --tests", "--tests: the value is missing"},
		mistake{"bench redis --rate", "--rate: the value is missing"},
		mistake{"bench redis --keyspace 2000000000", "--keyspace is 2000000000: want 1000000000 or less"},
		mistake{"bench http --path index.html", `--path, --host and --header make no request: parse "index.html": invalid URI for request`},
		mistake{"bench http --path *", "--path *: want a path that begins with a slash"},
		mistake{"bench http -H Accept", `--path, --host and --header make no request: malformed MIME header: missing colon: "Accept"`},
		mistake{"bench http -H Connection:close", "--header: connections must stay open: leave out Connection"},
		mistake{"bench http -H Content-Length:5", "--header: only --post sends a body, and its length"},
	)
	for _, c := range []string{"bench redis", "bench http", "bench echo"} {
		mistakes = append(mistakes,
			mistake{c + " --loops -1", "--loops is -1: want 1 or more"},
			mistake{c + " --count -1", "--count is -1: want 0 or more"},
			mistake{c + " --rate -1", "--rate is -1: want 0, for as many requests as the server takes, or 0.001 to 10000000"},
			mistake{c + " --rate NaN", "--rate is NaN: want 0, for as many requests as the server takes, or 0.001 to 10000000"},
			mistake{c + " --rate 1e-9", "--rate is 1e-09: want 0, for as many requests as the server takes, or 0.001 to 10000000"},
			mistake{c + " --conns 2147483647", "--conns is 2147483647: want 1048576 or less"},
			mistake{c + " --pipeline 60000000", "--pipeline is 60000000: want 1048576 or less"},
			mistake{c + " --duration 2562047h", `--duration: "2562047h" is too long: want 596523h14m7s or less`},
			mistake{c + " --timeout 0", "--timeout is 0, so every reply would be late: want more"},
			mistake{c + " --tls --addr unix:///tmp/s", "--tls needs the name in the server's certificate, and the address has none: give it with --tls-name, or set --insecure"},
		)
	}
	for _, m := range mistakes {
		out, code := run(t, strings.Fields(m.args)...)
		if want := "rondo: " + m.want + "\n"; code != 2 || out != want {
			t.Errorf("rondo %s: exit code %d, output %q, want %q", m.args, code, out, want)
		}
	}
}

// The error of a failure, such as a refusal by the system, is also one sentence.
func TestFailuresAreOneSentence(t *testing.T) {
	for args, want := range map[string]string{
		"echo --addr 192.0.2.1:5000":        "cannot listen on 192.0.2.1:5000: bind: ",
		"redis --addr tcp://192.0.2.1:5000": "cannot listen on tcp://192.0.2.1:5000: bind: ",
		"http --echo --addr 192.0.2.1:5000": "cannot listen on 192.0.2.1:5000: bind: ",
	} {
		out, code := run(t, strings.Fields(args)...)
		if code != 1 || !strings.HasPrefix(out, "rondo: "+want) || strings.Count(out, "\n") != 1 {
			t.Errorf("rondo %s: exit code %d, output %q, want %q", args, code, out, want)
		}
	}
}

// Who has an address is told as far as it is known.
func TestAddressesInUse(t *testing.T) {
	file := filepath.Join(t.TempDir(), "f")
	if err := os.WriteFile(file, nil, 0o600); err != nil {
		t.Fatal(err)
	}
	free := testkit.FreeAddress(t)
	for _, c := range []string{"redis", "http --echo", "echo"} {
		for addrs, want := range map[string]string{
			" --addr unix://" + file:                     "unix://" + file + ": there is a file of that name, which is no socket; remove it, or choose another address with --addr\n",
			" --addr " + free + " --addr tcp4://" + free: "tcp4://" + free + ": another program, or another --addr, has that address; stop that program, or choose another address\n",
		} {
			out, code := run(t, strings.Fields(c+addrs)...)
			if code != 1 || out != "rondo: cannot listen on "+want {
				t.Errorf("%s%s: exit code %d, output %q, want %q", c, addrs, code, out, want)
			}
		}
	}
	if _, err := os.Stat(file); err != nil {
		t.Errorf("the file: %v", err)
	}
}

// Every flag shows its default.
func TestDefaultsAreShown(t *testing.T) {
	flag := regexp.MustCompile(`^ {2,6}(?:-\w, )?--(\[no-\])?([\w-]+)`)
	for cmd, want := range map[string]map[string]string{
		"redis": {"loops": "1", "addr": "tcp://127.0.0.1:6379", "maxclients": "10000", "high-water": "256KiB", "protected-mode": "yes",
			"requirepass": "none", "balance": "roundrobin", "tls-auth-clients": "yes", "tls-cert": "none"},
		"http": {"addr": "tcp://127.0.0.1:8080", "dir": "none", "echo": "no", "proxy": "none", "list": "yes", "hidden": "no", "compressed": "yes",
			"access-log": "combined", "max-header": "64KiB", "send-timeout": "1m", "timeout": "2m", "tls-auth-clients": "no"},
		"echo":        {"loops": "0", "timeout": "0", "shutdown-timeout": "10s", "log-level": "info"},
		"bench echo":  {"conns": "50", "json": "no", "spin": "yes", "size": "64", "tls": "no"},
		"bench http":  {"path": "/", "post": "no", "header": "none"},
		"bench redis": {"tests": "ping,set,get,incr,mset", "keyspace": "1", "password": "none", "rate": "0"},
	} {
		out, code := run(t, append(strings.Fields(cmd), "--help")...)
		if code != 0 {
			t.Fatalf("rondo %s --help: exit code %d:\n%s", cmd, code, out)
		}
		shown := make(map[string]string)
		name := ""
		for line := range strings.Lines(out) {
			if m := flag.FindStringSubmatch(line); m != nil {
				name = m[2]
			} else if strings.TrimSpace(line) == "" {
				name = ""
			}
			shown[name] += " " + strings.TrimSpace(line)
		}
		delete(shown, "")
		if len(shown) < 10 {
			t.Fatalf("rondo %s --help shows %d flags:\n%s", cmd, len(shown), out)
		}
		for name, text := range shown {
			if name != "help" && name != "version" && !strings.Contains(text, "Default: ") {
				t.Errorf("rondo %s --help: no default of --%s: %q", cmd, name, text)
			}
		}
		_, best, _ := pick.Find("")
		want["backend"] = best
		for name, value := range want {
			if !strings.HasSuffix(shown[name], "Default: "+value+".") {
				t.Errorf("rondo %s --help: the default of --%s is not %s: %q", cmd, name, value, shown[name])
			}
		}
	}
}

// A load over TLS reports at once that the server does not speak it, although most servers
// take the handshake for an incomplete request and wait.
func TestBenchTellsOfAServerWithoutTLS(t *testing.T) {
	_, redis := start(t, "redis", "--addr", "127.0.0.1:0", "--requirepass", "secret")
	_, web := serveHTTP(t, "--echo")
	_, echo := start(t, "echo", "--addr", "127.0.0.1:0")
	for cmd, addr := range map[string]string{"redis": redis[0], "http": web, "echo": echo[0]} {
		began := time.Now()
		stdout, stderr, code := runBench(t, cmd, "--addr", addr, "--tls", "--insecure", "--timeout", "1h")
		want := fmt.Sprintf("rondo: %s does not speak TLS: leave out --tls, or give another address with --addr\n", addr)
		if code != 1 || stdout != "" || stderr != want {
			t.Errorf("bench %s: exit code %d, output %q, errors %q, want %q", cmd, code, stdout, stderr, want)
		}
		if took := time.Since(began); took > patience {
			t.Errorf("bench %s: told after %v", cmd, took)
		}
	}
}
