package main

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/rondo-go/rondo"
	"github.com/rondo-go/rondo/admin"
	"github.com/rondo-go/rondo/httpd"
	"github.com/rondo-go/rondo/proxy"
	"github.com/rondo-go/rondo/redis"
	"github.com/rondo-go/rondo/resp"
)

// proxySection shows a proxy's listeners and targets.
func proxySection(s *proxy.Server) admin.Section {
	return admin.Section{Name: "Proxy", Read: func(context.Context) ([]admin.Table, error) {
		stats := s.Stats()
		listeners := admin.Table{Name: "Listeners", Columns: []string{"address", "open", "accepted", "refused"}}
		for _, l := range stats.Listeners {
			listeners.Rows = append(listeners.Rows, []any{l.Network + "://" + l.Address, l.Open, l.Accepted, l.Refused})
		}
		pools := admin.Table{Name: "Pools", Columns: []string{"pool", "retries", "refused", "waiting", "waited", "in vain"}}
		targets := admin.Table{Name: "Backends", Columns: []string{"pool", "target", "name", "state", "open", "connections",
			"failed dials", "broken", "ejections", "bytes from clients", "bytes from target", "checks", "failed checks", "last check"}}
		for _, p := range stats.Pools {
			pools.Rows = append(pools.Rows, []any{p.Name, p.Retries, p.Refused, p.Waiting, p.Waited, p.InVain})
			for _, t := range p.Targets {
				targets.Rows = append(targets.Rows, []any{p.Name, t.Network + "://" + t.Address, t.Name, t.State, t.Open, t.Conns,
					t.DialsFailed, t.Broken, t.Ejections, t.FromClients, t.FromTarget, t.Checks, t.ChecksFailed, t.CheckError})
			}
		}
		return []admin.Table{targets, pools, listeners}, nil
	}}
}

// httpSection shows the counters of an HTTP server.
func httpSection(s *httpd.Server) admin.Section {
	return admin.Section{Name: "HTTP", Read: func(context.Context) ([]admin.Table, error) {
		n := s.Stats()
		t := admin.Table{Columns: []string{"counter", "value"}, Rows: [][]any{
			{"connections", n.Conns}, {"requests", n.Requests}, {"in progress", n.InProgress},
			{"answers 2xx", n.Answers[2]}, {"3xx", n.Answers[3]}, {"4xx", n.Answers[4]}, {"5xx", n.Answers[5]},
			{"without an answer", n.Answers[0]}, {"malformed", n.Malformed}, {"taken over (WebSocket)", n.Hijacked},
			{"by HTTP/2", n.HTTP2}, {"bytes of requests", n.BytesIn}, {"bytes of answers", n.BytesOut},
		}}
		return []admin.Table{t}, nil
	}}
}

// redisFields are the fields of INFO that the page shows.
var redisFields = []string{"connected_clients", "blocked_clients", "instantaneous_ops_per_sec", "total_commands_processed",
	"total_error_replies", "rejected_connections", "used_memory", "used_memory_rss", "maxmemory", "mem_fragmentation_ratio",
	"keyspace_hits", "keyspace_misses", "expired_keys", "evicted_keys", "evicted_clients", "pubsub_channels", "pubsub_patterns"}

// slowEntries is how many entries of the slow log the page shows.
const slowEntries = 50

// redisSection shows the keyspace and the slow log of a Redis server. Whoever sees the page need
// not know the server's password: only with a token it shows the arguments of slow commands.
func redisSection(s *redis.Server, withArguments bool) admin.Section {
	var client *redis.Client
	ask := func(ctx context.Context, args ...string) (v resp.Value, err error) {
		if client == nil { // now that somebody looks
			if client, err = s.NewClient(); err != nil {
				return v, err
			}
		}
		v, err = client.Do(ctx, args...)
		switch {
		case errors.Is(err, rondo.ErrClosed):
			client = nil // somebody has killed it
		case v.Kind == resp.Error:
			err = errors.New(string(v.Str))
		}
		return v, err
	}
	return admin.Section{Name: "Redis", Read: func(ctx context.Context) ([]admin.Table, error) {
		info, err := ask(ctx, "INFO", "clients", "memory", "stats", "keyspace")
		if err != nil {
			return nil, err
		}
		log, err := ask(ctx, "SLOWLOG", "GET", strconv.Itoa(slowEntries))
		if err != nil {
			return nil, err
		}
		keys, numbers := infoTables(string(info.Str))
		return []admin.Table{keys, numbers, slowlogTable(log, withArguments)}, nil
	}}
}

// infoTables makes tables of INFO's reply.
func infoTables(info string) (keys, numbers admin.Table) {
	keys = admin.Table{Name: "Keyspace", Columns: []string{"database", "keys", "that expire", "mean time to live (s)"}}
	numbers = admin.Table{Name: "INFO", Columns: []string{"field", "value"}}
	for line := range strings.Lines(info) {
		field, value, _ := strings.Cut(strings.TrimSpace(line), ":")
		var n, expires, ttl int64
		if _, err := fmt.Sscanf(value, "keys=%d,expires=%d,avg_ttl=%d", &n, &expires, &ttl); err == nil {
			keys.Rows = append(keys.Rows, []any{field, n, expires, float64(ttl) / 1000})
		} else if slices.Contains(redisFields, field) {
			numbers.Rows = append(numbers.Rows, []any{field, value})
		}
	}
	slices.SortFunc(numbers.Rows, func(a, b []any) int {
		return cmp.Compare(slices.Index(redisFields, a[0].(string)), slices.Index(redisFields, b[0].(string)))
	})
	return keys, numbers
}

// slowlogTable makes a table of the reply to SLOWLOG GET.
func slowlogTable(log resp.Value, withArguments bool) admin.Table {
	t := admin.Table{Name: "Slow log", Columns: []string{"number", "time", "took (ms)", "command", "client", "client's name"}}
	for _, e := range log.Elems {
		if len(e.Elems) < 6 {
			continue
		}
		var words []string
		for i, arg := range e.Elems[3].Elems {
			if i > 0 && !withArguments {
				words = append(words, fmt.Sprintf("(and %d more: give --admin-token to see them)", len(e.Elems[3].Elems)-1))
				break
			}
			words = append(words, fmt.Sprintf("%.64q", arg.Str))
		}
		at := time.Unix(e.Elems[1].Int, 0).Format(time.DateTime)
		t.Rows = append(t.Rows, []any{e.Elems[0].Int, at, float64(e.Elems[2].Int) / 1000, strings.Join(words, " "),
			string(e.Elems[4].Str), string(e.Elems[5].Str)})
	}
	return t
}
