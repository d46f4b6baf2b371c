package redis

import (
	"flag"
	"fmt"
	"log/slog"
	"os"
	"path/filepath"
	"reflect"
	"slices"
	"strings"
	"testing"
)

var update = flag.Bool("update", false, "write the table of docs/redis-conf.md")

// load reads a file of such a text, and what follows its name.
func load(t testing.TB, text string, args ...string) (*Config, error) {
	t.Helper()
	file := filepath.Join(t.TempDir(), "redis.conf")
	if err := os.WriteFile(file, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	return LoadConfig(append([]string{file}, args...), strings.NewReader(""))
}

func TestLoadConfig(t *testing.T) {
	t.Chdir(t.TempDir())
	for name, text := range map[string]string{"a.conf": "maxclients 20\n", "d/1.conf": "hz 20", "d/2.conf": "hz 30\ninclude ../a.conf\n"} {
		os.MkdirAll(filepath.Dir(name), 0o700)
		if err := os.WriteFile(name, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	for _, c := range []struct{ text, args, want string }{
		{"", "", "port 6379, bind * -::*, save , databases 16"},
		{"PORT 7000 # no comment", "", "wrong number of arguments"},
		{"port 7000\nport 7001\n", "--port 7002", "port 7002"},
		{"bind 127.0.0.1 -::1\n", "", "bind 127.0.0.1 -::1"},
		{`bind ""`, "", "bind "},
		{`bind "a b"`, "", "bind a b"},
		{"maxmemory 1GB\nclient-output-buffer-limit replica 1mb 2kb 3\nclient-output-buffer-limit normal 1 2 3 pubsub 4 5 6", "",
			"maxmemory 1073741824, client-output-buffer-limit normal 1 2 3 slave 1048576 2048 3 pubsub 4 5 6"},
		{"requirepass \"a\\x20b'\"", "", "requirepass a b'"},
		{"include a.conf", "", "maxclients 20"},
		{"dir d\ninclude [12].conf\n", "", "hz 30, maxclients 20"},
		{"include none*.conf", "--hz 40", "hz 40"},
		{"hash-max-ziplist-entries 7\nlist-max-ziplist-value 3\nlua-time-limit 9", "", "hash-max-listpack-entries 7, busy-reply-threshold 9"},
		{"save 60 1\nsave 70 2", "--save", "save "},
		{"daemonize yes", "--daemonize no", "daemonize no"},
		{"daemonize yes\nsupervised systemd", "", "daemonize yes"},
		{"appendonly yes\n", "--appendonly no", "appendonly no"},
		{"shutdown-on-sigterm now nosave", "", "shutdown-on-sigterm nosave now"},
		{"unixsocketperm 770\nproc-title-template '{title} {{x}}'", "", "unixsocketperm 770, proc-title-template {title} {{x}}"},
		{"tls-protocols \"TLSv1.2 TLSv1.3\"\noom-score-adj relative\noom-score-adj-values 1 02 3", "", "tls-protocols TLSv1.2 TLSv1.3, oom-score-adj yes, oom-score-adj-values 1 2 3"},
		{"replicaof no one", "", "replicaof "},
		{"latency-tracking-info-percentiles 10 20.5", "", "latency-tracking-info-percentiles 10 20.5"},
	} {
		loaded, err := load(t, c.text, strings.Fields(c.args)...)
		if err != nil {
			if !strings.Contains(err.Error(), c.want) {
				t.Errorf("%q: %v", c.text, err)
			}
			continue
		}
		for _, pair := range strings.Split(c.want, ", ") {
			name, want, _ := strings.Cut(pair, " ")
			if got := loaded.Get(name); got != want {
				t.Errorf("%q: %s is %q, want %q", c.text, name, got, want)
			}
		}
	}
	c, err := LoadConfig([]string{"-", "--hz", "12"}, strings.NewReader("hz 11\nmaxclients 33\n"))
	if err != nil || c.Get("hz") != "12" || c.Get("maxclients") != "33" || c.File() != "" || c.Get("nope") != "" {
		t.Errorf("from standard input: %v", err)
	}
	file := filepath.Join(t.TempDir(), "redis.conf")
	if err := os.WriteFile(file, []byte("hz 1\nmaxclients 2"), 0o600); err != nil { // without an end of the last line
		t.Fatal(err)
	}
	c, err = LoadConfig([]string{file, "--timeout", "3", "-"}, strings.NewReader("databases 4"))
	if err != nil || c.Get("maxclients")+c.Get("databases")+c.Get("timeout") != "243" {
		t.Errorf("from a file and standard input: %v", err)
	}
}

func TestLoadConfigErrors(t *testing.T) {
	t.Chdir(t.TempDir())
	if err := os.WriteFile("loop.conf", []byte("hz 1\ninclude loop.conf\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	for text, want := range map[string]string{
		"\nport":                         "at line 2\n>>> 'port'\nwrong number of arguments",
		"hz 1\n  PORT x ":                "at line 2\n>>> 'PORT x'\nargument couldn't be parsed into an integer",
		"nope 1":                         "at line 1\n>>> 'nope 1'\nBad directive or wrong number of arguments",
		"include a b":                    "Bad directive or wrong number of arguments",
		"port 'x":                        "Unbalanced quotes in configuration line",
		"bind \"a 'b\"":                  "Unbalanced quotes in configuration line",
		"appendonly maybe":               "argument must be 'yes' or 'no'",
		"hz 1\nappendonly yes\nhz 2":     "at line 2\n>>> 'appendonly yes'\nthis server supports only 'no': nothing is written to disk",
		"save 60 1":                      "this server supports only '': nothing is written to disk",
		"save 60":                        "Invalid save parameters",
		"save 0 1":                       "Invalid save parameters",
		"replicaof h 1":                  ">>> 'replicaof h 1'\nthis server cannot be a replica: there is no replication",
		"slaveof h 1":                    ">>> 'slaveof h 1'\nthis server cannot be a replica: there is no replication",
		"replicaof h x":                  "Invalid master port",
		"replicaof h":                    "wrong number of arguments",
		"cluster-enabled yes":            "it is no part of a cluster",
		"min-slaves-to-write 1":          ">>> 'min-slaves-to-write 1'\nthis server supports only '0': there is no replication",
		"daemonize yes":                  "this server supports only 'no': the program stays in the foreground",
		"supervised upstart":             "does not support 'upstart'",
		"syslog-enabled yes":             "there is no syslog",
		"shutdown-on-sigint save":        "does not support 'save': nothing is saved",
		"shutdown-on-sigint save nosave": "shutdown options SAVE and NOSAVE can't be used simultaneously",
		"shutdown-on-sigint \"\"":        "argument(s) must be one of the following: default, save, nosave, now, force",
		"tls-protocols TLSv1":            "does not support 'TLSv1'",
		"user u +nix":                    "Unknown command or category name in ACL",
		"loadmodule m.so":                "this server has no modules",
		"mod.x 1":                        "this server has no modules",
		"sentinel monitor":               "sentinel directive while not in sentinel mode",
		"rename-command nope x":          "No such command in rename-command",
		"rename-command get SET":         "Target command name already exists",
		"rename-command get " + strings.Repeat("x", 65): "Target command name has more than 64 bytes",
		"rename-command get":                            "Bad directive or wrong number of arguments",
		"bind a b c d e f g h i j k l m n o p q":        "Too many bind addresses specified.",
		"dir /nope":                                     ">>> 'dir /nope'\nNo such file or directory",
		"dir loop.conf":                                 "Not a directory",
		"include loop.conf":                             "Files include each other",
		"oom-score-adj-values 1 2":                      "wrong number of arguments",
		"oom-score-adj-values 1 2 2001":                 "elements must be between -2000 and 2000",
		"unixsocketperm 800":                            "argument couldn't be parsed as an octal number",
		"unixsocketperm 1000":                           "argument must be between 0 and 777 inclusive",
		"dbfilename a/b":                                "dbfilename can't be a path, just a filename",
		"appendfilename ''":                             "appendfilename can't be empty",
		"proc-title-template {x}":                       "template format is invalid or contains unknown variables",
		"cluster-announce-hostname a_b":                 "Hostnames may only contain alphanumeric characters, hyphens or dots",
		"enable-debug-command maybe":                    "argument(s) must be one of the following: no, yes, local",
		"databases 0":                                   "argument must be between 1 and 16384 inclusive",
	} {
		_, err := load(t, text)
		if err == nil || !strings.Contains(err.Error(), want) || !strings.HasPrefix(err.Error(), "*** FATAL CONFIG FILE ERROR (Redis 7.0.15) ***\nReading the configuration file") {
			t.Errorf("%q: %v\nwant %s", text, err, want)
		}
	}
	if _, err := LoadConfig([]string{"none.conf"}, nil); err == nil || !strings.HasSuffix(err.Error(), "none.conf': No such file or directory") {
		t.Error(err)
	}
	if _, err := load(t, "include none.conf"); err == nil || !strings.HasSuffix(err.Error(), "none.conf': No such file or directory") {
		t.Error(err)
	}
}

// Parameters of a file act, and so do new names of commands.
func TestServerConfig(t *testing.T) {
	c, err := load(t, `
		databases 3
		requirepass secret
		maxmemory 100mb
		maxmemory-policy allkeys-lru
		notify-keyspace-events KEA
		hash-max-listpack-entries 1
		rename-command FLUSHALL ""
		rename-command SHUTDOWN ""
		rename-command get FETCH
		rename-command mset b840fc02d524045429941cc15f59e41cb7be6c52
		tls-port 7001
		port 0
		dynamic-hz no
		appendfsync always
	`)
	if err != nil {
		t.Fatal(err)
	}
	if got, want := c.Ignored(), []string{"appendfsync", "dynamic-hz"}; !slices.Equal(got, want) {
		t.Errorf("without effect: %q, want %q", got, want)
	}
	b := newBench(t, &Server{Config: c})
	b.script(`
		PING => -NOAUTH Authentication required.
		AUTH secret => +OK
		SELECT 3 => -ERR DB index is out of range
		SELECT 2 => +OK
		HSET h a 1 b 2 => :2
		OBJECT ENCODING h => $9 hashtable
		FLUSHALL => -ERR unknown command 'FLUSHALL', with args beginning with:
		SET k v => +OK
		fetch k => $1 v
		GET k => -ERR unknown command 'GET', with args beginning with: 'k'
		B840FC02d524045429941cc15f59e41cb7be6c52 k => -ERR wrong number of arguments for 'mset' command
		COMMAND COUNT => :...
		CONFIG GET maxmemory-policy notify-keyspace-events => *4 $16 maxmemory-policy $11 allkeys-lru $22 notify-keyspace-events $3 AKE
		CONFIG SET bind 127.0.0.1 => -ERR CONFIG SET failed (possibly related to argument 'bind') - Failed to bind to specified addresses: they cannot change while the server runs
		CONFIG SET bind "* -::*" port 0 tls-port 7001 => +OK
		CONFIG SET dir / => -ERR CONFIG SET failed (possibly related to argument 'dir') - can't set protected config
	`)
	if got := b.do("a", "INFO", "server"); !strings.Contains(got, "tcp_port:7001 ") || !strings.Contains(got, "config_file:"+c.File()+" ") {
		t.Error(got)
	}
	s := &Server{Config: c, Password: "x"}
	if err := s.checkFields(); err == nil || !strings.Contains(err.Error(), "Server.Config has all parameters") {
		t.Error(err)
	}
}

func TestProtectedConfigs(t *testing.T) {
	c, err := load(t, "enable-protected-configs local")
	if err != nil {
		t.Fatal(err)
	}
	newBench(t, &Server{Config: c}).script(`
		CONFIG SET dbfilename other.rdb => +OK
		CONFIG GET dbfilename => *2 $10 dbfilename $9 other.rdb
		CONFIG SET dir /nope => -ERR CONFIG SET failed (possibly related to argument 'dir') - No such file or directory
		CONFIG SET dir / => -ERR CONFIG SET failed (possibly related to argument 'dir') - the directory cannot change while the server runs
		CONFIG SET enable-protected-configs yes => -ERR CONFIG SET failed (possibly related to argument 'enable-protected-configs') - can't set immutable config
	`)
}

func TestConfigRewrite(t *testing.T) {
	c, err := load(t, "# the first line\nPort 7000\nmaxmemory 1gb\n\n\n# limits\nhash-max-ziplist-entries 20\ndir .\ninclude none*\n", "--maxclients", "50")
	if err != nil {
		t.Fatal(err)
	}
	if err := os.Chmod(c.File(), 0o640); err != nil {
		t.Fatal(err)
	}
	b := newBench(t, &Server{Config: c})
	b.script(`
		CONFIG SET maxmemory 2mb hash-max-listpack-entries 100 requirepass "p w" client-output-buffer-limit "normal 1mb 1 2" => +OK
		CONFIG REWRITE => +OK
	`)
	dir, _ := os.Getwd()
	want := "# the first line\nport 7000\nmaxmemory 2mb\n\n# limits\nhash-max-listpack-entries 100\ndir \"" + dir + "\"\ninclude none*\n\n" +
		"# Generated by CONFIG REWRITE\nclient-output-buffer-limit normal 1mb 1 2\nlatency-tracking-info-percentiles 50 99 99.9\nmaxclients 50\n" +
		"requirepass \"p w\"\nsave \"\"\nuser default on #98913e6cb4a5776c38dbbc32f28532ae88f01ced08853a91c1bbdcbe3210f68e ~* &* +@all\n"
	got, err := os.ReadFile(c.File())
	if err != nil || string(got) != want {
		t.Errorf("%v\ngot\n%s\nwant\n%s", err, got, want)
	}
	if info, err := os.Stat(c.File()); err != nil || info.Mode().Perm() != 0o640 && filepath.Separator == '/' {
		t.Errorf("%v, %v", info.Mode(), err)
	}
	b.script(`CONFIG REWRITE => +OK`)
	if again, _ := os.ReadFile(c.File()); string(again) != want+"\n" {
		t.Errorf("rewritten again:\n%s", again)
	}
	if left, _ := filepath.Glob(c.File() + ".*"); len(left) > 0 {
		t.Errorf("%q are left", left)
	}
	if err := os.RemoveAll(filepath.Dir(c.File())); err != nil {
		t.Fatal(err)
	}
	b.script(`CONFIG REWRITE => -ERR Rewriting config file: No such file or directory`)
}

// CONFIG REWRITE neither writes a user a second time, whose line is elsewhere, nor forgets its changes.
func TestConfigRewriteOfUsersElsewhere(t *testing.T) {
	dir := t.TempDir()
	included := filepath.ToSlash(filepath.Join(dir, "users.conf"))
	if err := os.WriteFile(included, []byte("user in on nopass ~a\nuser default on >pw ~* +@all\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	text := "user own on nopass ~b\ninclude " + included + "\n"
	c, err := load(t, text, "--user", "line", "on", "nopass", "~c")
	if err != nil {
		t.Fatal(err)
	}
	b := newBench(t, &Server{Config: c})
	if err := b.s.defineUsers(); err != nil {
		t.Fatal(err)
	}
	b.script(`
		AUTH pw => +OK
		ACL SETUSER own ~c => +OK
		ACL SETUSER new on => +OK
		CONFIG REWRITE => +OK
	`)
	again, err := LoadConfig([]string{c.File(), "--user", "line", "on", "nopass", "~c"}, nil)
	if err != nil {
		t.Fatal(err)
	}
	b2 := newBench(t, &Server{Config: again})
	if err := b2.s.defineUsers(); err != nil {
		t.Fatal(err)
	}
	if got, want := b2.s.users.Format(), b.s.users.Format(); got != want {
		t.Errorf("got\n%swant\n%s", got, want)
	}
	const refused = " => -ERR Rewriting config file: User 'NAME' has changed, and its line is in an included file or on the command line: change it there, or put all users into an aclfile\n"
	b.script("ACL SETUSER line off => +OK\nCONFIG REWRITE" + strings.Replace(refused, "NAME", "line", 1) +
		"ACL SETUSER line on => +OK\nCONFIG REWRITE => +OK\n" +
		"ACL DELUSER in => :1\nCONFIG REWRITE" + strings.Replace(refused, "NAME", "in", 1) +
		"CONFIG SET requirepass other => +OK\nCONFIG REWRITE" + strings.Replace(refused, "NAME", "default", 1))
}

// With a file of users requirepass has no effect, as in Redis; the log says so.
func TestRequirePassBesideUsersFile(t *testing.T) {
	dir := t.TempDir()
	users := filepath.ToSlash(filepath.Join(dir, "users.acl"))
	if err := os.WriteFile(users, []byte("user alice on nopass\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	c, err := load(t, "requirepass pw\naclfile "+users+"\n")
	if err != nil {
		t.Fatal(err)
	}
	b := newBench(t, &Server{Config: c})
	var log strings.Builder
	b.s.Logger = slog.New(slog.NewTextHandler(&log, nil))
	if err := b.s.defineUsers(); err != nil {
		t.Fatal(err)
	}
	if !strings.Contains(log.String(), "level=WARN msg=\"requirepass has no effect") || !strings.Contains(log.String(), "open=true") {
		t.Errorf("the log is %q", log.String())
	}
	b.script("PING => +PONG")
}

// A file that has a line for every parameter says the same as before.
func TestConfigRewriteForceAll(t *testing.T) {
	c, err := load(t, "enable-debug-command yes\nnotify-keyspace-events KEA\nmaxmemory-clients 5%\nunixsocketperm 700\nbind a 'b\"c'\n")
	if err != nil {
		t.Fatal(err)
	}
	newBench(t, &Server{Config: c}).script(`DEBUG CONFIG-REWRITE-FORCE-ALL => +OK`)
	again, err := LoadConfig([]string{c.File()}, nil)
	if err != nil {
		t.Fatal(err)
	}
	for _, p := range params {
		if got, want := again.Get(p.name), c.Get(p.name); got != want {
			t.Errorf("%s is %q, want %q", p.name, got, want)
		}
	}
}

// Whatever a file says, a rewritten one says the same.
func FuzzConfigRewrite(f *testing.F) {
	for _, text := range []string{"", "port 1\nPORT 2\n", "save 1 1\nsave ''", "bind a b\nbind ''", "# x\n\nrequirepass \"a\\\"\\n\"",
		"client-output-buffer-limit normal 1gb 1k 1\nmaxmemory-clients 0%", "latency-tracking-info-percentiles 0.1 1e-9", "rename-command get x\nhz 9999999",
		"hash-max-ziplist-entries 1\nhash-max-listpack-entries 2", "unixsocket 'a b'\nproc-title-template '{title}  x'", "bind 'a\"b'"} {
		f.Add(text)
	}
	read := func(text string) (*Config, error) {
		c := &Config{config: fileDefaults(), commands: allCommands()}
		return c, c.readAll(text)
	}
	f.Fuzz(func(t *testing.T, text string) {
		if lower := strings.ToLower(text); strings.Contains(lower, "include") || strings.Contains(lower, "dir") || strings.Contains(text, "\\") && strings.Contains(text, "x") {
			return // other files, also by a name in escapes
		}
		c, err := read(text)
		if err != nil {
			return
		}
		rewritten := c.config.rewritten(text, len(text)%2 == 1)
		again, err := read(rewritten)
		if err != nil {
			t.Fatalf("%q becomes %q: %v", text, rewritten, err)
		}
		for _, p := range params {
			if got, want := again.Get(p.name), c.Get(p.name); got != want {
				t.Errorf("%q becomes %q: %s is %q, was %q", text, rewritten, p.name, got, want)
			}
		}
		if !reflect.DeepEqual(again.renames, c.renames) {
			t.Errorf("%q becomes %q: commands have other names", text, rewritten)
		}
		second := again.config.rewritten(rewritten, false)
		if third := again.config.rewritten(second, false); third != second {
			t.Errorf("%q becomes %q, then %q", text, second, third)
		}
	})
}

// directiveTable is the table of docs/redis-conf.md.
func directiveTable() string {
	var b strings.Builder
	b.WriteString("| directive | default | here | |\n|---|---|---|---|\n")
	initial := fileDefaults()
	for _, p := range params {
		if p.alias != "" {
			continue
		}
		names, value := "`"+p.name+"`", "`"+p.get(&initial)+"`"
		for _, other := range params {
			if other.alias == p.name {
				names += ", `" + other.name + "`"
			}
		}
		if value == "``" || p.name == "dir" {
			value = ""
		}
		e := effects[p.name]
		note := e.note
		if e.kind == "limited" {
			note = strings.ToUpper(note[:1]) + note[1:] + "."
		}
		fmt.Fprintf(&b, "| %s | %s | %s | %s |\n", names, value, e.kind, note)
	}
	return b.String()
}

func TestDirectivesAreDocumented(t *testing.T) {
	named := make(map[string]bool)
	for _, p := range params {
		if p.alias != "" {
			if own := findParam(p.alias); own == nil || own.alias != "" {
				t.Errorf("%s is another name of %s, which is none", p.name, p.alias)
			}
			continue
		}
		named[p.name] = true
		switch e := effects[p.name]; e.kind {
		case "acts", "ignored":
			if p.only != nil && limits[p.name] == nil {
				t.Errorf("%s: %s, but only some values are supported", p.name, e.kind)
			}
		case "limited":
			if p.only == nil {
				t.Errorf("%s is not limited", p.name)
			}
		default:
			t.Errorf("directives.txt does not say what %s does", p.name)
		}
	}
	for name := range effects {
		if !named[name] {
			t.Errorf("directives.txt names %s, which is no parameter's own name", name)
		}
	}
	const page = "../docs/redis-conf.md"
	text, err := os.ReadFile(page)
	if err != nil {
		t.Fatal(err)
	}
	const begin = "<!-- the table of redis/directives.txt -->\n"
	before, rest, ok := strings.Cut(string(text), begin)
	if !ok {
		t.Fatalf("%s has no place for the table", page)
	}
	old, behind, _ := strings.Cut(strings.TrimPrefix(rest, "\n"), "\n\n")
	if *update {
		if err := os.WriteFile(page, []byte(before+begin+"\n"+directiveTable()+"\n"+behind), 0o644); err != nil {
			t.Fatal(err)
		}
		return
	}
	if old+"\n" != directiveTable() {
		t.Errorf("%s has another table: go test ./redis -run Documented -update", page)
	}
}
