package redis

import (
	"slices"
	"strings"
	"testing"
	"time"
)

// entries returns the commands of the slow log, the newest first.
func (b *bench) entries() (lines []string) {
	log := &b.s.slowlog.entries
	for e := log.Front(); e != nil; e = e.Next() {
		lines = append(lines, strings.Join(e.Value.(*slowEntry).args, " "))
	}
	return lines
}

func (b *bench) expectEntries(want ...string) {
	b.t.Helper()
	if got := strings.Join(b.entries(), "\n"); got != strings.Join(want, "\n") {
		b.t.Errorf("the slow log has\n%s\nwant\n%s", got, strings.Join(want, "\n"))
	}
	b.do("a", "SLOWLOG", "RESET")
	b.s.slowlog.entries.Init()
}

func TestSlowlog(t *testing.T) {
	b := newBench(t, &Server{})
	b.script(`
		CONFIG GET slowlog-* => *4 $23 slowlog-log-slower-than $5 10000 $15 slowlog-max-len $3 128
		CONFIG SET slowlog-log-slower-than -1 => +OK
		SLOWLOG RESET => +OK
		SLOWLOG LEN => :0
		SLOWLOG GET => *0
		CONFIG SET slowlog-log-slower-than -2 => -ERR CONFIG SET failed (possibly related to argument 'slowlog-log-slower-than') - argument must be between -1 and 9223372036854775807 inclusive
		CONFIG SET slowlog-log-slower-than 0 slowlog-max-len 4 => +OK
		SLOWLOG RESET => +OK
		SLOWLOG LEN => :1
		SLOWLOG GET x => -ERR count should be greater than or equal to -1
		SLOWLOG GET -2 => -ERR count should be greater than or equal to -1
		SLOWLOG GET 1 2 => -ERR unknown subcommand or wrong number of arguments for 'GET'. Try SLOWLOG HELP.
		SLOWLOG LEN x => -ERR wrong number of arguments for 'slowlog|len' command
		SLOWLOG LEN => :4
		SLOWLOG HELP => *...
		SLOWLOG GET 0 => *0
	`)
	b.expectEntries("SLOWLOG GET 0", "SLOWLOG HELP", "SLOWLOG LEN", "SLOWLOG GET 1 2")

	b.script(`
		a: CLIENT SETNAME me => +OK
		a: PING => +PONG
		a: SLOWLOG GET 1 => *1 *6 :1...
	`)
	b.s.slowlog.entries.Init()
	b.do("a", append([]string{"SADD", "s"}, strings.Fields(strings.Repeat("x ", 30))...)...)
	b.do("a", append([]string{"SADD", "s"}, strings.Fields(strings.Repeat("x ", 31))...)...)
	b.do("a", "SADD", "s", strings.Repeat("A", 128), strings.Repeat("A", 130))
	b.expectEntries(
		"SADD s "+strings.Repeat("A", 128)+" "+strings.Repeat("A", 128)+"... (2 more bytes)",
		"SADD s"+strings.Repeat(" x", 29)+" ... (2 more arguments)",
		"SADD s"+strings.Repeat(" x", 30))
	b.script(`
		CONFIG SET slowlog-max-len 20 => +OK
		SLOWLOG RESET => +OK
		AUTH secret => -ERR AUTH...
		AUTH default x => +OK
		AUTH a b c => -ERR syntax error
		HELLO 2 AUTH default x SETNAME y => *14...
		HELLO 2 AUTH secret => -ERR Syntax error...
		HELLO AUTH u secret => -ERR Protocol version...
		HELLO 2 SETNAME AUTH AUTH default x => *14...
		CONFIG SET requirepass "" => +OK
		MULTI => +OK
		GET k => +QUEUED
		EXEC => *1 $-1
		NOPE => -ERR...
		BLPOP l 0 =>
		b: LPUSH l v => :1
		a? => *2 $1 l $1 v
		CONFIG SET slowlog-log-slower-than -1 => +OK
	`)
	b.expectEntries("BLPOP l 0", "LPUSH l v", "GET k", "MULTI", "CONFIG SET requirepass (redacted)",
		"HELLO 2 SETNAME AUTH (redacted) (redacted) (redacted)", "HELLO AUTH (redacted) (redacted)", "HELLO 2 AUTH (redacted)", "HELLO 2 AUTH (redacted) (redacted) SETNAME y",
		"AUTH (redacted) (redacted) (redacted)", "AUTH (redacted) (redacted)", "AUTH (redacted)", "SLOWLOG RESET")
	b.script(`
		GET k => $-1
		SLOWLOG LEN => :0
		CONFIG SET slowlog-log-slower-than 0 slowlog-max-len 0 => +OK
		SLOWLOG LEN => :0
	`)
}

// Brief commands of a pipeline are measured together; a slow one is found all the same.
func TestSlowlogOfPipelines(t *testing.T) {
	b := newBench(t, &Server{Debug: DebugYes, Commands: []Command{
		{Name: "nap", Arity: 1, Flags: "fast", Run: func(c *Call, _ [][]byte) {
			time.Sleep(12 * time.Millisecond)
			c.Int(1)
		}}}})
	if err := b.s.addCommands(); err != nil {
		t.Fatal(err)
	}
	for range 64 { // beyond the calls that are measured anyway
		b.do("a", "NAP")
	}
	f := b.connect("a")
	b.s.slowlog.entries.Init()
	b.send(f, []byte(strings.Repeat("PING 1\r\nGET k\r\n", 200)+"NAP\r\n"))
	if got := b.entries(); len(got) == 0 || got[0] != "NAP" {
		t.Errorf("the slow log has %q", got)
	}
	b.s.slowlog.entries.Init()
	b.send(f, []byte("GET k\r\nDEBUG SLEEP 0.011\r\nGET k\r\nGET k\r\n"))
	if got := b.entries(); !slices.Contains(got, "DEBUG SLEEP 0.011") { // a busy machine may add others
		t.Errorf("the slow log has %q", got)
	}
}

func TestMonitor(t *testing.T) {
	b := newBench(t, &Server{Password: "p"})
	b.now = time.Unix(1_700_000_000, 123456789)
	b.script(`
		m: AUTH p => +OK
		m: MONITOR => +OK
		m: MONITOR =>
		a: AUTH p => +OK
		a: SET k "a\"\\\n\r\t\a\b\x00ÿ" => +OK
		a: SELECT 3 => +OK
		a: GET => -ERR wrong...
		a: MULTI => +OK
		a: GET k => +QUEUED
		a: EXEC => *1 $-1
		a: CONFIG SET hz 10 => +OK
		a: EVAL "return redis.call('GET', KEYS[1])" 1 k => $-1
		a: BLPOP l 0 =>
		m? => +1700000000.123456 [0 127.0.0.1:50001] "AUTH" "(redacted)" +1700000000.123456 [0 127.0.0.1:50001] "SET" "k" "a\"\\\n\r\t\a\b\x00\xc3\xbf" +1700000000.123456 [3 127.0.0.1:50001] "SELECT" "3" +1700000000.123456 [3 127.0.0.1:50001] "MULTI" +1700000000.123456 [3 127.0.0.1:50001] "GET" "k" +1700000000.123456 [3 127.0.0.1:50001] "EXEC" +1700000000.123456 [3 127.0.0.1:50001] "EVAL" "return redis.call('GET', KEYS[1])" "1" "k" +1700000000.123456 [3 lua] "GET" "k" +1700000000.123456 [3 127.0.0.1:50001] "BLPOP" "l" "0"
		m: GET k => -ERR Replica can't interact with the keyspace
		m: SET k v => -ERR Replica can't interact with the keyspace
		m: PUBLISH c m => -ERR Replica can't interact with the keyspace
		m: PING => +PONG +1700000000.123456 [0 127.0.0.1:50000] "PING"
		m: MULTI => +OK +1700000000.123456 [0 127.0.0.1:50000] "MULTI"
		m: DISCARD => +OK +1700000000.123456 [0 127.0.0.1:50000] "DISCARD"
		m: RESET => +RESET
		m: AUTH p => +OK
		c: AUTH p => +OK
		m? =>
		m: MULTI => +OK
		m: MONITOR => +QUEUED
		m: EXEC => *1 -ERR MONITOR isn't allowed for DENY BLOCKING client
		m: MONITOR => +OK
		c: CLIENT LIST => $...
	`)
	if list := b.do("c", "CLIENT", "LIST"); !strings.Contains(list, " flags=O ") {
		t.Errorf("no client is a monitor:\n%s", list)
	}
	b.do("m", "QUIT")
	b.clients["m"].end()
	if n := len(b.s.monitors.list); n != 0 {
		t.Errorf("%d monitors are left", n)
	}
}

// A monitor that does not read is closed as client-output-buffer-limit says.
func TestMonitorThatDoesNotRead(t *testing.T) {
	b := newBench(t, &Server{})
	b.script(`
		CONFIG SET client-output-buffer-limit "normal 1000 0 0" => +OK
		m: MONITOR => +OK
	`)
	b.clients["m"].waiting = 2000
	b.script(`PING => +PONG`)
	if b.clients["m"].aborted == nil {
		t.Error("the monitor is still there")
	}
}

func TestLatency(t *testing.T) {
	b := newBench(t, &Server{Debug: DebugYes})
	b.script(`
		LATENCY LATEST => *0
		LATENCY RESET => :0
		LATENCY HISTORY command => *0
		LATENCY GRAPH command => -ERR No samples available for event 'command'
		LATENCY HELP x => -ERR wrong number of arguments for 'latency|help' command
		LATENCY NOPE => -ERR unknown subcommand 'NOPE'. Try LATENCY HELP.
		LATENCY DOCTOR => $...
		DEBUG SLEEP 0.02 => +OK
		LATENCY LATEST => *0
		CONFIG SET latency-monitor-threshold 10 => +OK
		LATENCY DOCTOR => $...
		DEBUG SLEEP 0.02 => +OK
	`)
	b.advance(3 * time.Second)
	b.script(`
		DEBUG SLEEP 0.02 => +OK
		LATENCY HISTORY command => *2 *2 :1700000000 :...
		LATENCY LATEST => *1 *4 $7 command :1700000003 :...
		LATENCY DOCTOR => $...
		LATENCY RESET nope command => :1
		LATENCY RESET => :0
	`)
}

func TestLatencyGraph(t *testing.T) {
	e := latencyEvent{most: 500}
	for i, took := range []int64{300, 400, 500, 310} {
		e.samples = append(e.samples, latencySample{at: 1000 + 40*int64(i), took: took})
	}
	want := "command - high 500 ms, low 300 ms (all time high 500 ms)\n" + strings.Repeat("-", 80) + "\n" +
		"  # \n _| \n || \n_||_\n    \n2145\nmm5s\n  s \n"
	if got := e.graph("command", 1125); got != want {
		t.Errorf("got\n%s\nwant\n%s", got, want)
	}
}

func TestLatencyHistogram(t *testing.T) {
	b := newBench(t, &Server{})
	set := b.s.commands.named([]byte("set"))
	for _, us := range []int64{0, 1, 2, 30, 33, 34, 2000, 5_000_000} {
		set.observe(time.Duration(us) * time.Microsecond)
		set.calls++
	}
	b.script(`
		LATENCY HISTOGRAM set nope get => *2 $3 set *4 $5 calls :8 $14 histogram_usec *12 :1 :2 :2 :3 :33 :5 :66 :6 :2113 :7 :1073741 :8
		LATENCY HISTOGRAM nope => *0
		CONFIG GET latency-tracking* => *4 $16 latency-tracking $3 yes $33 latency-tracking-info-percentiles $10 50 99 99.9
		CONFIG SET latency-tracking-info-percentiles "50 101" => -ERR...
		CONFIG SET latency-tracking-info-percentiles "50 100" => +OK
	`)
	if info := b.do("a", "INFO", "latencystats"); !strings.Contains(info, "latency_percentiles_usec_set:p50=30.0") {
		t.Error(info)
	}
	b.script(`
		CONFIG RESETSTAT => +OK
		LATENCY HISTOGRAM set => *0
		CONFIG SET latency-tracking no => +OK
		GET k => $-1
		LATENCY HISTOGRAM get => *0
	`)
}
