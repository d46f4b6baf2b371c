package difftest

import (
	"context"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/rondo-go/rondo/redis"
	"github.com/rondo-go/rondo/resp"
)

// ownValues are the parameters whose values differ: addresses, directories, and activedefrag,
// which is on here.
var ownValues = []string{"activedefrag", "bind", "dir", "port", "requirepass", "enable-debug-command", "maxclients", "logfile"}

// TestConfigGet compares the parameters of CONFIG GET, and their values. Hidden ones are asked
// for by name.
func TestConfigGet(t *testing.T) {
	_, clients := pairServers(t)
	theirs, ours := parameters(t, clients[0]), parameters(t, clients[1])
	for name, want := range theirs {
		if got, ok := ours[name]; !ok {
			t.Errorf("CONFIG GET has no %s", name)
		} else if got != want && !slices.Contains(ownValues, name) {
			t.Errorf("%s is %q, want %q", name, got, want)
		}
	}
	for name := range ours {
		if _, ok := theirs[name]; !ok {
			t.Errorf("redis-server has no %s", name)
		}
	}
	for _, request := range [][]string{{"MaxMemory"}, {"maxmemory", "MAXMEMORY", "maxm*y"}, {"[a"}, {"watchdog-*"}, {"watchdog-period", "use-exit-on-panic"},
		{"lua-enable-deprecated-api", "key-load-delay"}, {"slaveof", "replica*f"}, {"no*such"}} {
		a, b := pairsOf(t, clients[0], request), pairsOf(t, clients[1], request)
		if !slices.Equal(a, b) {
			t.Errorf("CONFIG GET %q: %q, want %q", request, b, a)
		}
	}
}

// parameters returns what CONFIG GET shows.
func parameters(t *testing.T, c *client, patterns ...string) map[string]string {
	t.Helper()
	v, err := c.ask(append([]string{"CONFIG", "GET"}, append(patterns, "*")...)...)
	if err != nil {
		t.Fatal(err)
	}
	all := make(map[string]string)
	for i := 0; i+1 < len(v.Elems); i += 2 {
		all[string(v.Elems[i].Str)] = string(v.Elems[i+1].Str)
	}
	return all
}

func pairsOf(t *testing.T, c *client, request []string) (pairs []string) {
	t.Helper()
	v, err := c.ask(append([]string{"CONFIG", "GET"}, request...)...)
	if err != nil {
		t.Fatal(err)
	}
	for i := 0; i+1 < len(v.Elems); i += 2 {
		pairs = append(pairs, string(v.Elems[i].Str)+" "+string(v.Elems[i+1].Str))
	}
	slices.Sort(pairs)
	return pairs
}

// configValues are tried for each parameter.
var configValues = []string{"", "x", "yes", "NO", "-1", "0", "1", "2", "10", "99", "101", "1001", "65536", "2147483648", "4294967296", "9223372036854775807",
	"1k", "5KB", "1gb", "1.5", " 1", "1 ", "5%", "101%", "10 20", "1 2 3", "a b", "a/b", "pubsub 1 2 3", "normal 1 2", "master 1 2 3",
	"local", "always", "everysec", "disabled", "swapdb", "clients", "ip", "hostname", "ignore", "panic", "allchannels", "nosave now", "force FORCE", "default",
	"KEA", "q", "allkeys-lru", "VOLATILE-ttl", "verbose", "Notice", "{title}", "{nope}", "50 99", "101 1", "relative", "1001 3000 1", "ä"}

// refusedHere are parameters with which the test would end itself, and those of which one server
// refuses values that the other one accepts: see docs/redis-conf.md.
var refusedHere = []string{"appendonly", "bind", "port", "save", "shutdown-on-sigint", "shutdown-on-sigterm", "min-replicas-to-write",
	"min-slaves-to-write", "acl-pubsub-default", "activedefrag", "maxclients", "jemalloc-bg-thread", "oom-score-adj", "oom-score-adj-values",
	"crash-log-enabled", "watchdog-period", "requirepass", "loglevel", "maxmemory", "maxmemory-clients", "dir"}

// TestConfigSet compares the answers to CONFIG SET of every parameter with many values, and what
// CONFIG GET shows then.
func TestConfigSet(t *testing.T) {
	_, clients := pairServers(t)
	names := []string{"watchdog-period", "key-load-delay", "rdb-key-save-delay", "loading-process-events-interval-bytes", "nope"}
	for name := range parameters(t, clients[0]) {
		names = append(names, name)
	}
	slices.Sort(names)
	compared := 0
	for _, name := range names {
		if strings.HasPrefix(name, "tls-") || slices.Contains(refusedHere, name) {
			continue // loads files, or opens ports
		}
		for _, value := range configValues {
			var replies [2]string
			for i, c := range clients {
				replies[i] = said(t, c, "CONFIG", "SET", name, value) + " " + said(t, c, "CONFIG", "GET", name)
			}
			if replies[0] != replies[1] {
				t.Errorf("CONFIG SET %s %q:\n%s, want\n%s", name, value, replies[1], replies[0])
			}
			compared++
		}
	}
	if compared < 5000 {
		t.Errorf("only %d answers were compared", compared)
	}
	for _, request := range [][]string{{"hz", "20", "nope", "1"}, {"nope", "1", "databases", "2"}, {"databases", "2", "nope", "1"}, {"hz", "20", "hz", "30"},
		{"hz", "20", "timeout", "x"}, {"timeout", "5", "hz"}, {"slave-priority", "1", "replica-priority", "2"}, {"dir", "/"}, {"dbfilename", "x"}} {
		var replies [2]string
		for i, c := range clients {
			replies[i] = said(t, c, append([]string{"CONFIG", "SET"}, request...)...) + fmt.Sprint(pairsOf(t, c, []string{"hz", "timeout", "replica-priority"}))
		}
		if replies[0] != replies[1] {
			t.Errorf("CONFIG SET %q:\n%s, want\n%s", request, replies[1], replies[0])
		}
	}
}

// said is a reply as text.
func said(t *testing.T, c *client, request ...string) string {
	t.Helper()
	v, err := c.ask(request...)
	if err != nil {
		t.Fatalf("%q: %v", request, err)
	}
	return show(v)
}

func show(v resp.Value) string {
	if len(v.Elems) == 0 {
		return string(v.Str)
	}
	var parts []string
	for _, e := range v.Elems {
		parts = append(parts, show(e))
	}
	return strings.Join(parts, "=")
}

// TestConfigFiles reads the same lines with redis-server and with package redis, and compares the
// errors, or all parameters.
func TestConfigFiles(t *testing.T) {
	path, reason := findReference()
	if path == "" {
		t.Skip(reason)
	}
	for _, text := range []string{"hz", "hz 1 2", "hz x", "\n\nhz 'a", "HZ \"1\\x30\"\nnope", "maxmemory 1tb", "client-output-buffer-limit normal 1 2",
		"bind a b c d e f g h i j k l m n o p q", "rename-command nope a", "rename-command get set", "list-max-ziplist-value 3\nsave 60",
		"maxmemory-policy x", "include", "user", "unixsocketperm 9", "unixsocketperm 1000", "dir /none", "appendfilename ''", "loglevel",
		"client-output-buffer-limit \"normal 1 2\"", "shutdown-on-sigterm save nosave", "replicaof a", "replicaof a b", "hash-max-listpack-entries -1"} {
		file := filepath.Join(t.TempDir(), "redis.conf")
		if err := os.WriteFile(file, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
		ctx, cancel := context.WithTimeout(context.Background(), patience)
		want, ended := exec.CommandContext(ctx, path, file).CombinedOutput()
		cancel()
		_, err := redis.LoadConfig([]string{file}, nil)
		if err == nil || ended == nil || strings.TrimSpace(err.Error()) != strings.TrimSpace(string(want)) {
			t.Errorf("%q:\n%v\nwant\n%s", text, err, want)
		}
	}
}
