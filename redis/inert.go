package redis

import (
	"fmt"
	"math"
	"strconv"
	"strings"
)

// inertText lists parameters of Redis that change nothing here: they concern
// persistence, replication or C's allocator. Clients and tools set them, so
// CONFIG SET checks and keeps a value. A line has the names, the default, and
// what values there may be: an integer from..to, an amount of memory from..to
// with the unit b, or words with | between them. Without that it is yes or no for
// such a default, else any text. A parameter that is fixed cannot be set. A name
// behind a dot is shown only if CONFIG GET asks for it by name.
const inertText = `
.key-load-delay 0 -2147483648..2147483647
.loading-process-events-interval-bytes 2097152 1024..2147483647
.rdb-key-save-delay 0 -2147483648..2147483647
.use-exit-on-panic no
.watchdog-period 0 0..2147483647
acllog-max-len 128 0..
active-defrag-cycle-max 25 1..99
active-defrag-cycle-min 1 1..99
active-defrag-ignore-bytes 104857600 1..b
active-defrag-max-scan-fields 1000 1..
active-defrag-threshold-upper 100 0..1000
active-expire-effort 1 1..10
activerehashing yes
aof-load-truncated yes
aof-rewrite-incremental-fsync yes
aof-timestamp-enabled no
aof-use-rdb-preamble yes
appendfsync everysec everysec|always|no
auto-aof-rewrite-min-size 67108864 0..b
auto-aof-rewrite-percentage 100 0..2147483647
busy-reply-threshold,lua-time-limit 5000 0..
crash-log-enabled yes
disable-thp yes fixed
dynamic-hz yes
io-threads-do-reads no fixed
jemalloc-bg-thread yes
lazyfree-lazy-eviction no
lazyfree-lazy-expire no
lazyfree-lazy-server-del no
lazyfree-lazy-user-del no
lazyfree-lazy-user-flush no
logfile "" fixed
masterauth "" secret
masteruser "" secret
maxmemory-eviction-tenacity 10 0..100
min-replicas-max-lag,min-slaves-max-lag 10 0..2147483647
min-replicas-to-write,min-slaves-to-write 0 0..0
no-appendfsync-on-rewrite no
pidfile "" fixed
rdb-save-incremental-fsync yes
rdbchecksum yes fixed
repl-backlog-size 1048576 1..b
repl-backlog-ttl 3600 0..
repl-disable-tcp-nodelay no
repl-diskless-load disabled disabled|on-empty-db|swapdb
repl-diskless-sync yes
repl-diskless-sync-delay 5 0..2147483647
repl-ping-replica-period,repl-ping-slave-period 10 1..2147483647
repl-timeout 60 1..2147483647
replica-ignore-maxmemory,slave-ignore-maxmemory yes
replica-lazy-flush,slave-lazy-flush no
replica-priority,slave-priority 100 0..2147483647
replica-read-only,slave-read-only yes
replica-serve-stale-data,slave-serve-stale-data yes
replicaof,slaveof "" fixed
sanitize-dump-payload no no|yes|clients
shutdown-timeout 10 0..2147483647
stop-writes-on-bgsave-error yes
supervised no fixed
tcp-backlog 511 fixed
tcp-keepalive 300 0..2147483647
unixsocketperm 0 fixed
`

// maxInert is how many of these parameters a config has room for.
const maxInert = 80

// inertParams returns the parameters of inertText, of which config.inert has the
// values, and the defaults.
func inertParams() (all []*param, defaults [maxInert]string) {
	for i, line := range strings.Split(strings.TrimSpace(inertText), "\n") {
		names, rest, _ := strings.Cut(line, " ")
		value, kind, _ := strings.Cut(rest, " ")
		defaults[i] = strings.Trim(value, `"`)
		for _, name := range strings.Split(names, ",") {
			name, hidden := strings.CutPrefix(name, ".")
			p := &param{name: name, hidden: hidden, secret: kind == "secret", get: func(c *config) string { return c.inert[i] }}
			if check := inertCheck(kind, defaults[i]); kind != "fixed" {
				p.set = func(c *config, v string) string {
					v, failure := check(v)
					if failure == "" {
						c.inert[i] = v
					}
					return failure
				}
			}
			all = append(all, p)
		}
	}
	return all, defaults
}

// inertCheck returns what checks the values of a kind of parameter. It returns a
// value as CONFIG GET shows it, or why it is wrong.
func inertCheck(kind, value string) func(v string) (string, string) {
	from, to, isRange := strings.Cut(kind, "..")
	switch {
	case isRange:
		return rangeCheck(from, to)
	case strings.Contains(kind, "|"):
		words := strings.Split(kind, "|")
		return func(v string) (string, string) {
			for _, w := range words {
				if strings.EqualFold(v, w) {
					return w, ""
				}
			}
			return "", "argument(s) must be one of the following: " + strings.Join(words, ", ")
		}
	case value == "yes" || value == "no":
		return func(v string) (string, string) {
			var on bool
			failure := parseYesNo(v, &on)
			return yesNo(on), failure
		}
	}
	return func(v string) (string, string) { return v, "" }
}

func rangeCheck(from, to string) func(v string) (string, string) {
	to, isMemory := strings.CutSuffix(to, "b")
	least, _ := strconv.ParseInt(from, 10, 64)
	most := int64(math.MaxInt64)
	if to != "" {
		most, _ = strconv.ParseInt(to, 10, 64)
	}
	return func(v string) (string, string) {
		var n int64
		if !isMemory {
			failure := parseRange(v, least, most, &n)
			return strconv.FormatInt(n, 10), failure
		}
		n, ok := parseMemory(v)
		switch {
		case !ok:
			return "", "argument must be a memory value"
		case n < least || n > most:
			return "", rangeError(least, most)
		}
		return strconv.FormatInt(n, 10), ""
	}
}

// The parameter maxmemory-clients: bytes, or a percentage of maxmemory.

func getClientMemory(c *config) string {
	if c.clientMemory < 0 {
		return fmt.Sprintf("%d%%", -c.clientMemory)
	}
	return strconv.FormatInt(c.clientMemory, 10)
}

func setClientMemory(c *config, v string) string {
	if digits, ok := strings.CutSuffix(v, "%"); ok {
		n, err := strconv.ParseInt(digits, 10, 64)
		switch {
		case err != nil || n < 0:
			return "argument must be a memory or percent value"
		case n > 100:
			return "percentage argument must be less or equal to 100"
		}
		c.clientMemory = -n
		return ""
	}
	n, ok := parseMemory(v)
	if !ok {
		return "argument must be a memory or percent value"
	}
	c.clientMemory = n
	return ""
}
