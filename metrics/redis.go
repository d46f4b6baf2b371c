package metrics

import (
	"context"
	"errors"
	"strconv"
	"strings"
	"time"

	"github.com/prometheus/client_golang/prometheus"

	"github.com/rondo-go/rondo/resp"
)

// redisPatience is how long a scrape waits for the loop with the commands. Prometheus waits
// ten seconds by default.
const redisPatience = 5 * time.Second

// A RedisClient runs commands: a *redis.Client, from redis.Server's NewClient.
type RedisClient interface {
	Do(ctx context.Context, args ...string) (resp.Value, error)
}

// Redis returns a collector of the counters of a redis.Server, which it reads by INFO. So a
// scrape waits for the loop with the commands, up to five seconds, and counts as a command. If
// the server does not answer, rondo_redis_up is 0, and alone. CONFIG RESETSTAT begins the
// counters at 0 again. Register the server's engine beside it, by Engine.
func Redis(c RedisClient) prometheus.Collector { return redisServer{c} }

type redisServer struct{ client RedisClient }

var redisUp = gauge("rondo_redis_up", "1 if the server answers INFO.")

// redisFamilies show fields of INFO that are one number.
var redisFamilies = []struct {
	field string
	family
}{
	{"uptime_in_seconds", gauge("rondo_redis_uptime_seconds", "Time since the server started.")},
	{"connected_clients", gauge("rondo_redis_connected_clients", "Clients now.")},
	{"blocked_clients", gauge("rondo_redis_blocked_clients", "Clients that wait in a command such as BLPOP.")},
	{"maxclients", gauge("rondo_redis_max_clients", "The most clients that the server serves at once.")},
	{"used_memory", gauge("rondo_redis_memory_used_bytes", "Memory of keys, values and clients.")},
	{"maxmemory", gauge("rondo_redis_memory_max_bytes", "The limit of that memory. 0: none.")},
	{"total_connections_received", counter("rondo_redis_connections_total", "Clients that were accepted.")},
	{"rejected_connections", counter("rondo_redis_rejected_connections_total", "Clients above the limit of clients.")},
	{"expired_keys", counter("rondo_redis_expired_keys_total", "Keys that have expired.")},
	{"evicted_keys", counter("rondo_redis_evicted_keys_total", "Keys that made room for others.")},
	{"evicted_clients", counter("rondo_redis_evicted_clients_total", "Clients that were closed to make room.")},
	{"keyspace_hits", counter("rondo_redis_keyspace_hits_total", "Keys that were looked up and found.")},
	{"keyspace_misses", counter("rondo_redis_keyspace_misses_total", "Keys that were looked up and not there.")},
	{"pubsub_channels", gauge("rondo_redis_pubsub_channels", "Channels with subscribers.")},
	{"pubsub_patterns", gauge("rondo_redis_pubsub_patterns", "Patterns with subscribers.")},
}

var (
	redisKeys     = gauge("rondo_redis_keys", "Keys of a database.", "db")
	redisExpiring = gauge("rondo_redis_expiring_keys", "Keys of a database that expire.", "db")
	redisErrors   = counter("rondo_redis_error_replies_total", "Error replies by their code.", "code")
	redisRejected = counter("rondo_redis_rejected_commands_total", "Commands that were refused before they ran.", "command")
	redisFailed   = counter("rondo_redis_failed_commands_total", "Commands that ran and replied with an error.", "command")
	redisDuration = prometheus.NewDesc("rondo_redis_command_duration_seconds", "Time that commands took to run.", []string{"command"}, nil)
)

func (redisServer) Describe(to chan<- *prometheus.Desc) {
	describe(to, redisUp, redisKeys, redisExpiring, redisErrors, redisRejected, redisFailed)
	for _, f := range redisFamilies {
		describe(to, f.family)
	}
	to <- redisDuration
}

func (r redisServer) Collect(to chan<- prometheus.Metric) {
	text, err := r.info()
	if err != nil {
		redisUp.send(to, 0)
		return
	}
	redisUp.send(to, 1)
	i := readInfo(text)
	for _, f := range redisFamilies {
		if v, ok := number(i.fields[f.field]); ok {
			f.send(to, v)
		}
	}
	for db, v := range i.under("db") {
		v.send(to, redisKeys, "keys", db)
		v.send(to, redisExpiring, "expires", db)
	}
	for code, v := range i.under("errorstat_") {
		v.send(to, redisErrors, "count", code)
	}
	percentiles := i.under("latency_percentiles_usec_")
	for command, v := range i.under("cmdstat_") {
		v.send(to, redisRejected, "rejected_calls", command)
		v.send(to, redisFailed, "failed_calls", command)
		calls, _ := number(v["calls"])
		usec, _ := number(v["usec"])
		quantiles := percentiles[command].quantiles()
		sendIf(to)(prometheus.NewConstSummary(redisDuration, uint64(calls), usec/1e6, quantiles, command))
	}
}

// info asks for all sections of INFO.
func (r redisServer) info() (string, error) {
	ctx, cancel := context.WithTimeout(context.Background(), redisPatience)
	defer cancel()
	v, err := r.client.Do(ctx, "INFO", "everything")
	if err == nil && v.Kind != resp.Bulk && v.Kind != resp.Verbatim {
		err = errors.New(string(v.Str))
	}
	return string(v.Str), err
}

// info is INFO's reply by its fields.
type info struct{ fields map[string]string }

func readInfo(text string) info {
	i := info{make(map[string]string)}
	for line := range strings.Lines(text) {
		if name, value, ok := strings.Cut(strings.TrimSpace(line), ":"); ok {
			i.fields[name] = value
		}
	}
	return i
}

// values has the named numbers of one field of INFO, as in calls=2,usec=3.
type values map[string]string

// under returns fields of which the name begins with a prefix and the value has several
// values, by the rest of their name.
func (i info) under(prefix string) map[string]values {
	all := make(map[string]values)
	for name, text := range i.fields {
		rest, ok := strings.CutPrefix(name, prefix)
		if !ok || !strings.Contains(text, "=") {
			continue
		}
		v := make(values)
		for part := range strings.SplitSeq(text, ",") {
			key, value, _ := strings.Cut(part, "=")
			v[key] = value
		}
		all[rest] = v
	}
	return all
}

func (v values) send(to chan<- prometheus.Metric, f family, name string, labels ...string) {
	if n, ok := number(v[name]); ok {
		f.send(to, n, labels...)
	}
}

// quantiles turns percentiles in microseconds, as in p99.9=12.3, into quantiles in seconds.
func (v values) quantiles() map[float64]float64 {
	all := make(map[float64]float64)
	for name, text := range v {
		p, ok1 := number(strings.TrimPrefix(name, "p"))
		usec, ok2 := number(text)
		if ok1 && ok2 {
			q, _ := strconv.ParseFloat(strconv.FormatFloat(p/100, 'g', 10, 64), 64) // 0.999, not 0.9990000000000001
			all[q] = usec / 1e6
		}
	}
	return all
}

func number(text string) (float64, bool) {
	n, err := strconv.ParseFloat(text, 64)
	return n, err == nil
}
