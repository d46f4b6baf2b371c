package main

import (
	"context"
	"fmt"
	"slices"
	"strings"
)

// A workload is what is done to a server. A further kind of server is a family
// in package serve, an entry in bases, and workloads with a measure of their own.
type workload struct {
	Name   string `json:"name"`
	Title  string `json:"title"`
	Family string `json:"family"` // of servers
	Unit   string `json:"unit"`   // what is counted, in the singular

	once    bool // the same in every mode: measured in the first
	quick   bool // part of --quick
	measure measure
}

// A measure measures a server once. It ends with its context.
type measure func(context.Context, *rig, *target) (figures, error)

// bases are the servers that others are compared with, the first one foremost.
var bases = map[string][]string{
	"echo":  {limitServer, "net"},
	"redis": {redisServer, "net"},
}

// Connections of idle, and at most of any workload.
const mostConns = 10000

var workloads = slices.Concat(
	[]workload{
		echo("echo-64-1", 1, 64),
		quick(echo("echo-64-50", 50, 64)),
		echo("echo-64-1000", 1000, 64),
		echo("echo-64-10000", mostConns, 64),
		echo("echo-1k-50", 50, 1<<10),
		echo("echo-64k-1", 1, 64<<10),
		quick(echo("echo-64k-8", 8, 64<<10)),
		quick(workload{Name: "rate", Title: "connect, one echo of 64 B, close, 50 at once", Family: "echo", Unit: "connection",
			measure: measureRate(50, 64)}),
		quick(workload{Name: "idle", Title: "memory of idle connections", Family: "echo", Unit: "connection",
			once: true, measure: measureIdle(mostConns, 64)}),
	},
	redis("set", 1), redis("get", 1), redis("set", 32), redis("get", 32),
)

func echo(name string, conns, size int) workload {
	return workload{
		Name:    name,
		Title:   fmt.Sprintf("echo, %s, %s", sizeText(size), connsText(conns)),
		Family:  "echo",
		Unit:    "message",
		measure: measureEcho(conns, size),
	}
}

func redis(command string, pipeline int) []workload {
	return []workload{{
		Name:    fmt.Sprintf("redis-%s-p%d", command, pipeline),
		Title:   fmt.Sprintf("redis-benchmark -t %s -c 50 -P %d", command, pipeline),
		Family:  "redis",
		Unit:    "command",
		quick:   command == "get" && pipeline > 1,
		measure: measureRedis(command, 50, pipeline),
	}}
}

func quick(w workload) workload {
	w.quick = true
	return w
}

func sizeText(n int) string {
	if n >= 1<<10 {
		return fmt.Sprintf("%d KiB", n>>10)
	}
	return fmt.Sprintf("%d B", n)
}

func connsText(n int) string {
	if n == 1 {
		return "1 connection"
	}
	return thousands(float64(n)) + " connections"
}

// parseWorkloads reads names, of which "all" is every one. A name may end in
// "*".
func parseWorkloads(names []string) ([]workload, error) {
	var chosen []workload
	for _, name := range names {
		prefix, star := strings.CutSuffix(name, "*")
		found := false
		for _, w := range workloads {
			if name != "all" && name != w.Name && !(star && strings.HasPrefix(w.Name, prefix)) {
				continue
			}
			found = true
			if !slices.Contains(workloadNames(chosen), w.Name) {
				chosen = append(chosen, w)
			}
		}
		if !found {
			return nil, fmt.Errorf("no workload %q: choose among all, %s, or a beginning with *, as in redis-*",
				name, strings.Join(workloadNames(workloads), ", "))
		}
	}
	return chosen, nil
}

func workloadNames(list []workload) []string {
	var names []string
	for _, w := range list {
		names = append(names, w.Name)
	}
	return names
}
