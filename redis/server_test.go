package redis

import (
	"log/slog"
	"net"
	"strings"
	"testing"
	"time"
)

func TestConfig(t *testing.T) {
	b := newBench(t, &Server{})
	b.script(`
		CONFIG GET maxclients => *2 $10 maxclients $5 10000
		CONFIG GET MaxClients => *2 $10 MaxClients $5 10000
		CONFIG GET maxc* time* timeout => *4 $10 maxclients $5 10000 $7 timeout $1 0
		CONFIG GET nope => *0
		CONFIG GET save => *2 $4 save $0
		CONFIG GET appendonly => *2 $10 appendonly $2 no
		CONFIG GET client-output-buffer-limit => *2 $26 client-output-buffer-limit $67 normal 0 0 0 slave 268435456 67108864 60 pubsub 33554432 8388608 60
		CONFIG GET => -ERR wrong number of arguments for 'config|get' command
		CONFIG SET maxclients => -ERR wrong number of arguments for 'config|set' command
		CONFIG SET maxclients 5 timeout => -ERR syntax error
		CONFIG SET nope 1 => -ERR Unknown option or number of arguments for CONFIG SET - 'nope'
		CONFIG SET databases 3 => -ERR CONFIG SET failed (possibly related to argument 'databases') - can't set immutable config
		CONFIG SET hz 1 HZ 2 => -ERR CONFIG SET failed (possibly related to argument 'HZ') - duplicate parameter
		CONFIG SET hz 1 hz 2 nope 3 => -ERR CONFIG SET failed (possibly related to argument 'hz') - duplicate parameter
		CONFIG SET maxclients 0 => -ERR CONFIG SET failed (possibly related to argument 'maxclients') - argument must be between 1 and 4294967295 inclusive
		CONFIG SET MAXCLIENTS x => -ERR CONFIG SET failed (possibly related to argument 'maxclients') - argument couldn't be parsed into an integer
		CONFIG SET timeout 9 maxclients x => -ERR CONFIG SET failed (possibly related to argument 'maxclients') - argument couldn't be parsed into an integer
		CONFIG GET timeout => *2 $7 timeout $1 0
		CONFIG SET timeout -1 => -ERR CONFIG SET failed (possibly related to argument 'timeout') - argument must be between 0 and 2147483647 inclusive
		CONFIG SET timeout 9 maxclients 77 => +OK
		CONFIG GET timeout => *2 $7 timeout $1 9
		CONFIG SET maxmemory 1kb => +OK
		CONFIG GET maxmemory => *2 $9 maxmemory $4 1024
		CONFIG SET maxmemory 1x => -ERR CONFIG SET failed (possibly related to argument 'maxmemory') - argument must be a memory value
		CONFIG SET maxmemory 0 => +OK
		CONFIG SET hz 100000 => +OK
		CONFIG GET hz => *2 $2 hz $3 500
		CONFIG SET protected-mode maybe => -ERR CONFIG SET failed (possibly related to argument 'protected-mode') - argument must be 'yes' or 'no'
		CONFIG SET protected-mode no => +OK
		CONFIG SET appendonly no save "" => +OK
		CONFIG SET appendonly yes => -ERR CONFIG SET failed (possibly related to argument 'appendonly') - this server supports only 'no': nothing is written to disk, all keys are in memory only
		CONFIG SET appendonly maybe => -ERR CONFIG SET failed (possibly related to argument 'appendonly') - argument must be 'yes' or 'no'
		CONFIG SET save "60 1" => -ERR CONFIG SET failed (possibly related to argument 'save') - this server supports only '': nothing is written to disk, all keys are in memory only
		CONFIG SET maxmemory-policy allkeys-lru => +OK
		CONFIG GET maxmemory-policy => *2 $16 maxmemory-policy $11 allkeys-lru
		CONFIG SET maxmemory-policy noeviction maxmemory-samples 10 lfu-log-factor 1 lfu-decay-time 0 => +OK
		CONFIG SET maxmemory-samples 0 => -ERR CONFIG SET failed (possibly related to argument 'maxmemory-samples') - argument must be between 1 and 2147483647 inclusive
		CONFIG SET maxmemory-policy x => -ERR CONFIG SET failed (possibly related to argument 'maxmemory-policy') - argument(s) must be one of the following: volatile-lru, volatile-lfu, volatile-random, volatile-ttl, allkeys-lru, allkeys-lfu, allkeys-random, noeviction
		CONFIG SET client-output-buffer-limit "normal 1 2 3 pubsub 1mb 1kb 4" => +OK
		CONFIG GET client-output-buffer-limit => *2 $26 client-output-buffer-limit $62 normal 1 2 3 slave 268435456 67108864 60 pubsub 1048576 1024 4
	`)
	b = newBench(t, &Server{})
	b.script(`
		CONFIG SET client-output-buffer-limit "pubsub 1 2" => -ERR CONFIG SET failed (possibly related to argument 'client-output-buffer-limit') - Wrong number of arguments in buffer limit configuration.
		CONFIG SET client-output-buffer-limit "master 1 2 3" => -ERR CONFIG SET failed (possibly related to argument 'client-output-buffer-limit') - Invalid client class specified in buffer limit configuration.
		CONFIG SET client-output-buffer-limit "pubsub 1 2 -3" => -ERR CONFIG SET failed (possibly related to argument 'client-output-buffer-limit') - Error in hard, soft or soft_seconds setting in buffer limit configuration.
		CONFIG SET proto-max-bulk-len 1 => -ERR CONFIG SET failed (possibly related to argument 'proto-max-bulk-len') - argument must be between 1048576 and 9223372036854775807 inclusive
		CONFIG SET loglevel x => -ERR CONFIG SET failed (possibly related to argument 'loglevel') - argument(s) must be one of the following: debug, verbose, notice, warning
		CONFIG SET port x => -ERR CONFIG SET failed (possibly related to argument 'port') - argument couldn't be parsed into an integer
		CONFIG SET port 1 => -ERR CONFIG SET failed (possibly related to argument 'port') - Unable to listen on this port: it cannot change while the server runs
		CONFIG SET port 0 => +OK
		CONFIG REWRITE => -ERR The server is running without a config file
		CONFIG RESETSTAT => +OK
		CONFIG HELP => *...
	`)
}

func TestConfigNamesAreInOrder(t *testing.T) {
	for i := 1; i < len(params); i++ {
		if params[i-1].name >= params[i].name {
			t.Errorf("%s stands before %s", params[i-1].name, params[i].name)
		}
	}
}

func TestLogLevel(t *testing.T) {
	level := new(slog.LevelVar)
	level.Set(slog.LevelWarn)
	b := newBench(t, &Server{Level: level})
	b.script(`
		CONFIG GET loglevel => *2 $8 loglevel $7 warning
		CONFIG SET loglevel DEBUG => +OK
		CONFIG GET loglevel => *2 $8 loglevel $5 debug
	`)
	if level.Level() != slog.LevelDebug {
		t.Errorf("the level is %v", level.Level())
	}
}

func TestParseMemory(t *testing.T) {
	for _, c := range []struct {
		in   string
		want int64
		ok   bool
	}{
		{"0", 0, true}, {"", 0, true}, {"kb", 0, true}, {"100", 100, true}, {"100b", 100, true}, {"1k", 1000, true},
		{"1kb", 1024, true}, {"2M", 2e6, true}, {"2Mb", 2 << 20, true}, {"3g", 3e9, true}, {"3GB", 3 << 30, true},
		{"-1", 0, false}, {"1x", 0, false}, {"1.5g", 0, false}, {"1 kb", 0, false},
		{"9223372036854775807", 9223372036854775807, true},
		{"9223372036854775807gb", 9223372036854775807, true},
	} {
		if got, ok := parseMemory(c.in); got != c.want || ok != c.ok {
			t.Errorf("parseMemory(%q) = %d, %v", c.in, got, ok)
		}
	}
}

func TestMaxmemory(t *testing.T) {
	newBench(t, &Server{}).script(`
		SET k v => +OK
		CONFIG SET maxmemory 1 => +OK
		SET k w => -OOM command not allowed when used memory > 'maxmemory'.
		GET k => $1 v
		DEL k => :1
		MULTI => +OK
		PING => -OOM command not allowed when used memory > 'maxmemory'.
		EXEC => -EXECABORT Transaction discarded because of previous errors.
		CONFIG SET maxmemory 0 => +OK
		b: MULTI => +OK
		b: SET k v => +QUEUED
		CONFIG SET maxmemory 1 => +OK
		b: EXEC => -EXECABORT Transaction discarded because of: OOM command not allowed when used memory > 'maxmemory'.
		CONFIG SET maxmemory 0 => +OK
		b: SET k v => +OK
	`)
}

func TestInfo(t *testing.T) {
	b := newBench(t, &Server{})
	b.script(`
		SET k v => +OK
		SET e v EX 100 => +OK
		GET k => $1 v
		GET none => $-1
		bogus => -ERR...
		INCR k => -ERR...
		SELECT 99 => -ERR...
	`)
	b.now = b.now.Add(90 * time.Second)
	all := b.do("a", "INFO", "all")
	for _, want := range []string{
		"# Server ", "redis_version:7.0.15 ", "uptime_in_seconds:90 ", "# Clients ", "connected_clients:1 ", "# Memory ",
		"used_memory:", "used_memory_rss:", "# Persistence ", "rdb_changes_since_last_save:2 ", "# Stats ",
		"total_commands_processed:", "keyspace_hits:1 ", "keyspace_misses:1 ", "total_error_replies:3 ", "# Replication ",
		"role:master ", "# CPU ", "used_cpu_user:", "# Commandstats ", "cmdstat_set:calls=2,usec=",
		"cmdstat_incr:calls=1,usec=", ",rejected_calls=0,failed_calls=1 ", "# Errorstats ", "errorstat_ERR:count=3 ", "# Cluster ",
		"cluster_enabled:0 ", "# Keyspace ", "db0:keys=2,expires=1,avg_ttl=10000",
	} {
		if !strings.Contains(all, want) {
			t.Errorf("INFO all has no %q", want)
		}
	}
	if got := b.do("a", "INFO"); strings.Contains(got, "Commandstats") || !strings.Contains(got, "# Keyspace") {
		t.Error("INFO has Commandstats, or no Keyspace")
	}
	b.script(`
		INFO cluster => $30 # Cluster cluster_enabled:0
		INFO KEYSPACE cluster => $...
		INFO bogus => $0
		HELLO 3 => %7...
		INFO cluster => =34 txt:# Cluster cluster_enabled:0
		CONFIG RESETSTAT => +OK
	`)
	if got := b.do("a", "INFO", "errorstats", "commandstats", "stats"); strings.Contains(got, "errorstat_ERR") ||
		strings.Contains(got, "cmdstat_set") || !strings.Contains(got, "keyspace_hits:0") {
		t.Errorf("after CONFIG RESETSTAT: %s", got)
	}
}

func TestServerCommands(t *testing.T) {
	b := newBench(t, &Server{Debug: DebugLocal})
	b.script(`
		FUNCTION FLUSH => +OK
		FUNCTION FLUSH ASYNC => +OK
		FUNCTION FLUSH bogus => -ERR FUNCTION FLUSH only supports SYNC|ASYNC option
		FUNCTION FLUSH SYNC x => -ERR unknown subcommand or wrong number of arguments for 'FLUSH'. Try FUNCTION HELP.
		FUNCTION LIST => *0
		FUNCTION HELP => *...
		DEBUG LOG text => +OK
		DEBUG ERROR "LOADING busy" => -LOADING busy
		DEBUG SLEEP 0 => +OK
		DEBUG SLEEP 0.001 => +OK
		DEBUG SLEEP x => +OK
		DEBUG SET-ACTIVE-EXPIRE 0 => +OK
		DEBUG REPLYBUFFER RESIZING 0 => +OK
		DEBUG bogus => -ERR unknown subcommand or wrong number of arguments for 'bogus'. Try DEBUG HELP.
		DEBUG LOG => -ERR unknown subcommand or wrong number of arguments for 'LOG'. Try DEBUG HELP.
		DEBUG HELP => *...
		TIME => *2 $10 1700000000 $1 0
	`)
}

func TestDebugSleepTakesTime(t *testing.T) {
	newBench(t, &Server{Debug: DebugYes}).script(`
		MULTI => +OK
		SET k v PX 15 => +QUEUED
		DEBUG SLEEP 0.02 => +QUEUED
		EXEC => *2 +OK +OK
		GET k => $-1
	`)
}

func TestDebugIsForWhomItIsAllowed(t *testing.T) {
	const refused = `-ERR DEBUG command not allowed. If the enable-debug-command option is set to "local", you can run it from a local connection, otherwise you need to set this option in the configuration file, and then restart the server.`
	newBench(t, &Server{}).script(`
		DEBUG SLEEP 0 => ` + refused + `
		CONFIG GET enable-debug-command => *2 $20 enable-debug-command $2 no
	`)
	newBench(t, &Server{Debug: DebugYes}).script(`
		DEBUG SLEEP 0 => +OK
		CONFIG GET enable-debug-command => *2 $20 enable-debug-command $3 yes
	`)
	b := newBench(t, &Server{Debug: DebugLocal})
	b.script(`
		DEBUG SLEEP 0 => +OK
		CONFIG GET enable-debug-command => *2 $20 enable-debug-command $5 local
	`)
	b.connect("stranger").remote = &net.TCPAddr{IP: net.IPv4(192, 0, 2, 1), Port: 1}
	b.script(`stranger: DEBUG SLEEP 0 => ` + refused)
}

func TestCommandTable(t *testing.T) {
	b := newBench(t, &Server{})
	b.script(`
		COMMAND INFO get => *1 *10 $3 get :2 *2 +readonly +fast :1 :1 :1 *3 +@read +@string +@fast *0 *1 *6 $5 flags *2 +RO +access $12 begin_search *4 $4 type $5 index $4 spec *2 $5 index :1 $9 find_keys *4 $4 type $5 range $4 spec *6 $7 lastkey :0 $7 keystep :1 $5 limit :0 *0
		COMMAND INFO nope client|id => *2 $-1 *10 $9 client|id :2 *3 +noscript +loading +stale :0 :0 :0 *2 +@slow +@connection *0 *0 *0
		COMMAND DOCS nope => *0
		COMMAND DOCS GET => *2 $3 get *10 $7 summary...
		COMMAND LIST FILTERBY ACLCAT transaction => *5 $7 discard $4 exec $5 multi $7 unwatch $5 watch
		COMMAND LIST FILTERBY PATTERN GETR* => *1 $8 getrange
		COMMAND LIST FILTERBY MODULE x => *0
		COMMAND LIST FILTERBY ACLCAT nope => *0
		COMMAND LIST FILTERBY bogus x => -ERR syntax error
		COMMAND LIST bogus => -ERR syntax error
		COMMAND GETKEYS get k => *1 $1 k
		COMMAND GETKEYS mset a 1 b 2 => *2 $1 a $1 b
		COMMAND GETKEYS rename a b => *2 $1 a $1 b
		COMMAND GETKEYS del a b c => *3 $1 a $1 b $1 c
		COMMAND GETKEYS ping x => -ERR The command has no key arguments
		COMMAND GETKEYS nope x => -ERR Invalid command specified
		COMMAND GETKEYS set k => -ERR Invalid number of arguments specified for command
		COMMAND GETKEYSANDFLAGS set k v => *1 *2 $1 k *2 +OW +update
		COMMAND GETKEYSANDFLAGS set k v get => *1 *2 $1 k *3 +RW +access +update
		COMMAND HELP => *...
		COMMAND bogus => -ERR unknown subcommand 'bogus'. Try COMMAND HELP.
	`)
	for _, request := range []string{"COMMAND", "COMMAND INFO", "COMMAND DOCS", "COMMAND LIST"} {
		if got := b.do("a", strings.Fields(request)...); len(got) < 1000 {
			t.Errorf("%s: %s", request, got)
		}
	}
}

func TestCommandTableIsSound(t *testing.T) {
	b := newBench(t, &Server{})
	b.s.commands.all(func(cmd *command) {
		switch {
		case cmd.name != strings.ToLower(cmd.name) || len(cmd.name) > maxName:
			t.Errorf("%s: bad name", cmd.name)
		case cmd.run == nil && cmd.subs == nil:
			t.Errorf("%s: nothing runs it", cmd.name)
		case cmd.arity == 0:
			t.Errorf("%s: no arity", cmd.name)
		case cmd.doc.summary == "" || cmd.doc.since == "" || cmd.doc.group == "" || cmd.doc.complexity == "":
			t.Errorf("%s: not documented", cmd.name)
		case cmd.flags&(flagWrite|flagReadonly) != 0 && len(cmd.keys) == 0 && cmd.cats&(catKeyspace|catScripting) == 0 && cmd.name != "lolwut":
			t.Errorf("%s: touches keys but does not say which", cmd.name)
		}
		if got := b.s.commands.named([]byte(strings.ToUpper(cmd.name))); got != cmd {
			t.Errorf("%s is not found", cmd.name)
		}
	})
}
