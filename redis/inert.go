package redis

import (
	"cmp"
	"fmt"
	"math"
	"slices"
	"strconv"
	"strings"

	"github.com/rondo-go/rondo/redis/conf"
)

// inertText lists parameters of Redis that change nothing here: they concern persistence,
// replication or C's allocator. Clients, tools and files set them, so the server checks and keeps
// a value. A line has the names, the default, and what values there may be: an integer from..to,
// with b an amount of memory, with o an octal number; or words with | between them. Without that
// it is yes or no for such a default, else any text. The first name is the parameter's own. Words
// behind that say more:
//
//	fixed      Redis's CONFIG SET cannot change it
//	frozen     Redis's can, but this server's cannot
//	only       the server supports no other value; see directives.txt for the reason
//	optional   CONFIG REWRITE writes no line if it is empty
//	protected  CONFIG SET changes it if enable-protected-configs lets it
//	secret     the log does not show it
//	words      there may be several words
//
// A name behind a dot is shown only if CONFIG GET asks for it by name.
const inertText = `
.key-load-delay 0 -2147483648..2147483647
.loading-process-events-interval-bytes 2097152 1024..2147483647
.lua-enable-deprecated-api no fixed
.rdb-key-save-delay 0 -2147483648..2147483647
.use-exit-on-panic no
.watchdog-period 0 0..2147483647
active-defrag-cycle-max 25 1..99
active-defrag-cycle-min 1 1..99
active-defrag-ignore-bytes 104857600 1..b
active-defrag-max-scan-fields 1000 1..
active-defrag-threshold-upper 100 0..1000
active-expire-effort 1 1..10
activerehashing yes
always-show-logo no fixed
aof-disable-auto-gc no
aof-load-truncated yes
aof-rewrite-incremental-fsync yes
aof-timestamp-enabled no
aof-use-rdb-preamble yes
aof_rewrite_cpulist "" fixed optional
appenddirname appendonlydir fixed
appendfilename appendonly.aof fixed
appendfsync everysec everysec|always|no
appendonly no only
auto-aof-rewrite-min-size 67108864 0..b
auto-aof-rewrite-percentage 100 0..2147483647
bgsave_cpulist "" fixed optional
bind-source-addr "" optional
bio_cpulist "" fixed optional
cluster-allow-pubsubshard-when-down yes
cluster-allow-reads-when-down no
cluster-allow-replica-migration yes
cluster-announce-bus-port 0 0..65535
cluster-announce-hostname "" optional
cluster-announce-ip "" optional
cluster-announce-port 0 0..65535
cluster-announce-tls-port 0 0..65535
cluster-config-file nodes.conf fixed
cluster-enabled no fixed only
cluster-link-sendbuf-limit 0 0..b
cluster-migration-barrier 1 0..2147483647
cluster-node-timeout 15000 0..
cluster-port 0 0..65535 fixed
cluster-preferred-endpoint-type ip ip|hostname|unknown-endpoint
cluster-replica-no-failover,cluster-slave-no-failover no
cluster-replica-validity-factor,cluster-slave-validity-factor 10 0..2147483647
cluster-require-full-coverage yes
crash-log-enabled yes
crash-memcheck-enabled yes
daemonize no fixed
dbfilename dump.rdb protected
disable-thp yes fixed
dynamic-hz yes
enable-module-command no no|yes|local fixed
ignore-warnings ""
io-threads-do-reads no fixed
jemalloc-bg-thread yes
lazyfree-lazy-eviction no
lazyfree-lazy-expire no
lazyfree-lazy-server-del no
lazyfree-lazy-user-del no
lazyfree-lazy-user-flush no
logfile "" fixed
masterauth "" secret optional
masteruser "" secret optional
maxmemory-eviction-tenacity 10 0..100
min-replicas-max-lag,min-slaves-max-lag 10 0..2147483647
min-replicas-to-write,min-slaves-to-write 0 0..2147483647 only
no-appendfsync-on-rewrite no
oom-score-adj no no|yes|relative|absolute
pidfile "" fixed optional
proc-title-template "{title} {listen-addr} {server-mode}"
propagation-error-behavior ignore ignore|panic|panic-on-replicas
rdb-del-sync-files no
rdb-save-incremental-fsync yes
rdbchecksum yes fixed
repl-backlog-size 1048576 1..b
repl-backlog-ttl 3600 0..
repl-disable-tcp-nodelay no
repl-diskless-load disabled disabled|on-empty-db|swapdb
repl-diskless-sync yes
repl-diskless-sync-delay 5 0..2147483647
repl-diskless-sync-max-replicas 0 0..2147483647
repl-ping-replica-period,repl-ping-slave-period 10 1..2147483647
repl-timeout 60 1..2147483647
replica-announce-ip,slave-announce-ip "" optional
replica-announce-port,slave-announce-port 0 0..65535
replica-announced yes
replica-ignore-disk-write-errors no
replica-ignore-maxmemory,slave-ignore-maxmemory yes
replica-lazy-flush,slave-lazy-flush no
replica-priority,slave-priority 100 0..2147483647
replica-read-only,slave-read-only yes
replica-serve-stale-data,slave-serve-stale-data yes
sanitize-dump-payload no no|yes|clients
server_cpulist "" fixed optional
set-proc-title yes fixed
shutdown-on-sigint default default|save|nosave|now|force words
shutdown-on-sigterm default default|save|nosave|now|force words
shutdown-timeout 10 0..2147483647
socket-mark-id 0 0..4294967295 fixed only
stop-writes-on-bgsave-error yes
supervised no upstart|systemd|auto|no fixed
syslog-enabled no fixed only
syslog-facility local0 user|local0|local1|local2|local3|local4|local5|local6|local7 fixed
syslog-ident redis fixed
tcp-backlog 511 0..2147483647 fixed
tcp-keepalive 300 0..2147483647
tls-auth-clients yes no|yes|optional frozen
tls-ca-cert-dir "" optional only
tls-ca-cert-file "" optional frozen
tls-cert-file "" optional frozen
tls-ciphers "" optional only
tls-ciphersuites "" optional only
tls-client-cert-file "" optional
tls-client-key-file "" optional
tls-client-key-file-pass "" optional
tls-cluster no
tls-dh-params-file "" optional
tls-key-file "" optional frozen
tls-key-file-pass "" optional only
tls-port 0 0..65535 frozen
tls-prefer-server-ciphers no
tls-protocols "" optional frozen
tls-replication no
tls-session-cache-size 20480 0..2147483647
tls-session-cache-timeout 300 0..2147483647
tls-session-caching yes
unixsocketperm 0 0..511o fixed
`

// maxInert is how many of these parameters a config has room for.
const maxInert = 160

// inertParams returns the parameters of inertText, of which config.inert has the
// values, and the defaults.
func inertParams() (all []*param, defaults [maxInert]string) {
	for i, line := range strings.Split(strings.TrimSpace(inertText), "\n") {
		words, _ := conf.Split(line)
		defaults[i] = words[1]
		first := ""
		for _, name := range strings.Split(words[0], ",") {
			name, hidden := strings.CutPrefix(name, ".")
			p := &param{name: name, alias: first, hidden: hidden, get: func(c *config) string { return c.inert[i] }}
			p.describe(words[2:], i, defaults[i])
			first = cmp.Or(first, name)
			if f := limits[name]; f != nil {
				p.only = f
			}
			all = append(all, p)
		}
	}
	return all, defaults
}

// describe sets what the rest of a line of inertText says.
func (p *param) describe(words []string, i int, value string) {
	kind, several := "", false
	for _, w := range words {
		switch w {
		case "fixed":
			p.immutable = true
		case "frozen":
			p.frozen = "it cannot change while the server runs"
		case "only":
			p.only = func(c *config) string { return onlyValue(cmp.Or(p.alias, p.name), value, c.inert[i]) }
		case "optional":
			p.form = formOptional
		case "protected":
			p.protected = true
		case "secret":
			p.secret = true
		case "words":
			several = true
		default:
			kind = w
		}
	}
	check := inertTexts[p.name]
	if check == nil {
		check = textCheck
	}
	switch from, to, isRange := strings.Cut(kind, ".."); {
	case isRange && strings.HasSuffix(to, "b"):
		p.form, check = formMemory, rangeCheck(from, to)
	case isRange:
		check = rangeCheck(from, to)
	case kind != "":
		check = wordCheck(strings.Split(kind, "|"))
	case value == "yes" || value == "no":
		check = yesNoCheck
	case p.form == formPlain:
		p.form = formText
	}
	if several {
		p.only = func(c *config) string { return onlyWithout(c.inert[i], "save") }
		p.setAll = func(c *config, words []string) string { return setShutdown(&c.inert[i], words, check) }
		return
	}
	p.set = func(c *config, v string) string {
		v, failure := check(v)
		if failure == "" {
			if n, _ := strconv.Atoi(v); p.name == "repl-backlog-size" && n < leastBacklog {
				v = strconv.Itoa(leastBacklog)
			}
			c.inert[i] = v
		}
		return failure
	}
}

// leastBacklog is the least repl-backlog-size that Redis takes seriously.
const leastBacklog = 16 << 10

// onlyValue returns why the server cannot have a value, unless it is the only one that it can.
func onlyValue(name, only, v string) string {
	if v == only {
		return ""
	}
	return fmt.Sprintf("this server supports only '%s': %s", only, effects[name].note)
}

// onlyWithout returns why the words of a value cannot have one of them.
func onlyWithout(words, not string) string {
	if !slices.Contains(strings.Fields(words), not) {
		return ""
	}
	return fmt.Sprintf("this server does not support '%s': nothing is saved", not)
}

// inertTexts are the parameters that are texts with a form.
var inertTexts = map[string]func(string) (string, string){
	"appenddirname":             nameCheck("appenddirname", "dirname", true),
	"appendfilename":            nameCheck("appendfilename", "filename", true),
	"cluster-announce-hostname": hostCheck,
	"dbfilename":                nameCheck("dbfilename", "filename", false),
	"proc-title-template":       titleCheck,
}

func textCheck(v string) (string, string) { return v, "" }

func yesNoCheck(v string) (string, string) {
	var on bool
	failure := parseYesNo(v, &on)
	return yesNo(on), failure
}

// wordCheck is for one of several words. The word relative means the same as yes.
func wordCheck(words []string) func(string) (string, string) {
	return func(v string) (string, string) {
		for _, w := range words {
			if strings.EqualFold(v, w) {
				if w == "relative" {
					w = "yes"
				}
				return w, ""
			}
		}
		return "", "argument(s) must be one of the following: " + strings.Join(words, ", ")
	}
}

// nameCheck is for the name of a file in the server's directory.
func nameCheck(name, what string, full bool) func(string) (string, string) {
	return func(v string) (string, string) {
		switch {
		case full && v == "":
			return "", name + " can't be empty"
		case strings.ContainsAny(v, `/\`):
			return "", name + " can't be a path, just a " + what
		}
		return v, ""
	}
}

func hostCheck(v string) (string, string) {
	if len(v) >= 256 {
		return "", "Hostnames must be less than 256 characters"
	}
	for _, c := range []byte(strings.ToLower(v)) {
		if !(c >= 'a' && c <= 'z' || c >= '0' && c <= '9' || c == '-' || c == '.') {
			return "", "Hostnames may only contain alphanumeric characters, hyphens or dots"
		}
	}
	return v, ""
}

// titleCheck is for a text with the names of variables in braces.
func titleCheck(v string) (string, string) {
	const wrong = "template format is invalid or contains unknown variables"
	filled := false // whatever the variables are that may be empty
	for rest := v; ; {
		before, after, found := strings.Cut(rest, "{")
		filled = filled || strings.TrimSpace(before) != ""
		switch {
		case !found && !filled:
			return "", wrong
		case !found:
			return v, ""
		}
		if strings.HasPrefix(after, "{") { // stands for one
			rest, filled = after[1:], true
			continue
		}
		name, behind, closed := strings.Cut(after, "}")
		switch name {
		case "listen-addr", "port", "tls-port":
			filled = true
		case "title", "server-mode", "unixsocket", "config-file":
		default:
			return "", wrong
		}
		if !closed {
			return "", wrong
		}
		rest = behind
	}
}

// shutdownWords are the words of shutdown-on-sigint and shutdown-on-sigterm in the order in which
// Redis shows them.
var shutdownWords = []string{"save", "nosave", "now", "force"}

// setShutdown sets such a parameter. There is nothing to save.
func setShutdown(to *string, words []string, check func(string) (string, string)) string {
	given := make(map[string]bool)
	for _, w := range words {
		name, failure := check(w)
		if failure != "" {
			return failure
		}
		given[name] = true
	}
	switch {
	case len(words) == 0:
		_, failure := check("")
		return failure
	case given["save"] && given["nosave"]:
		return "shutdown options SAVE and NOSAVE can't be used simultaneously"
	}
	var shown []string
	for _, w := range shutdownWords {
		if given[w] {
			shown = append(shown, w)
		}
	}
	*to = cmp.Or(strings.Join(shown, " "), "default")
	return ""
}

func rangeCheck(from, to string) func(v string) (string, string) {
	to, isMemory := strings.CutSuffix(to, "b")
	to, isOctal := strings.CutSuffix(to, "o")
	least, _ := strconv.ParseInt(from, 10, 64)
	most := int64(math.MaxInt64)
	if to != "" {
		most, _ = strconv.ParseInt(to, 10, 64)
	}
	return func(v string) (string, string) {
		var n int64
		switch {
		case isOctal:
			return octal(v, least, most)
		case !isMemory:
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

func octal(v string, least, most int64) (string, string) {
	n, err := strconv.ParseInt(v, 8, 64)
	switch {
	case err != nil:
		return "", "argument couldn't be parsed as an octal number"
	case n < least || n > most:
		return "", fmt.Sprintf("argument must be between %o and %o inclusive", least, most)
	}
	return strconv.FormatInt(n, 8), ""
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
