package main

import (
	"context"
	"fmt"
	"slices"
	"strconv"
	"strings"
)

// A workload is what is done to a server. To add one is to add it to workloads;
// what is new about it is its measure.
type workload struct {
	Name   string `json:"name"`
	Title  string `json:"title"`
	Family string `json:"family"` // of servers
	Unit   string `json:"unit"`   // what is counted, in the singular

	once    bool   // the same in every mode: measured in the first
	against string // the server that all are measured against, where those that are measured are none
	with    string // program that it needs
	measure measure
}

// A measure measures a server once. It ends with its context.
type measure func(context.Context, *rig, *target) (figures, error)

// Connections of idle, and at most of any workload.
const mostConns = 10000

var workloads = slices.Concat(
	echoes("echo", 64, 1, 50, 1000, mostConns),
	echoes("echo", 1<<10, 1, 50, 1000, mostConns),
	echoes("echo", 64<<10, 1, 8, 50, 1000, mostConns),
	[]workload{
		{Name: "rate", Title: "connect, one echo of 64 B, close, 50 at once", Family: "echo", Unit: "connection", measure: measureRate(loadProgram, 50, 64)},
		{Name: "idle", Title: "memory of idle connections", Family: "echo", Unit: "connection", once: true, measure: measureIdle(loadProgram, mostConns, 64)},
	},
	echoes("tls", 1<<10, 1, 50, 1000),
	[]workload{
		{Name: "tls-rate", Title: "connect, full handshake, one echo of 64 B, close, 50 at once", Family: "tls", Unit: "handshake", with: tlsProgram, measure: measureRate(tlsProgram, 50, 64)},
		{Name: "tls-idle", Title: "memory of idle TLS connections", Family: "tls", Unit: "connection", once: true, with: tlsProgram, measure: measureIdle(tlsProgram, mostConns, 64)},
	},
	redisWorkloads(),
	completionWorkloads(),
	datagrams(64),
	datagrams(1200),
)

// echoes are echo workloads of a family and a size, named as in echo-64k-1000.
func echoes(family string, size int, conns ...int) []workload {
	title, program, with := "echo", loadProgram, ""
	if family == "tls" {
		title, program, with = "echo over TLS", tlsProgram, tlsProgram
	}
	var list []workload
	for _, n := range conns {
		list = append(list, workload{
			Name:    fmt.Sprintf("%s-%s-%d", family, sizeName(size), n),
			Title:   fmt.Sprintf("%s, %s, %s", title, sizeText(size), connsText(n)),
			Family:  family,
			Unit:    "message",
			with:    with,
			measure: measureEcho(program, n, size),
		})
	}
	return list
}

// datagrams are UDP echo workloads of a size, named as in udp-64-50x1: from 50
// sockets, 1 datagram of each under way. Many of one socket are what a system can
// take as one.
func datagrams(size int) []workload {
	var list []workload
	for _, n := range [][2]int{{50, 1}, {8, 32}} {
		list = append(list, workload{
			Name:    fmt.Sprintf("udp-%d-%dx%d", size, n[0], n[1]),
			Title:   fmt.Sprintf("UDP echo, %d B, %d sockets with %d under way", size, n[0], n[1]),
			Family:  "udp",
			Unit:    "datagram",
			with:    udpProgram,
			measure: measureDatagrams(n[0], n[1], size),
		})
	}
	return list
}

// redisWorkloads ask Redis servers by each generator, and compare generators.
func redisWorkloads() []workload {
	const conns = 50
	var servers, generators []workload
	for _, pipeline := range []int{1, 32} {
		for _, command := range []string{"set", "get"} {
			name := fmt.Sprintf("%s-p%d", command, pipeline)
			what := fmt.Sprintf("%s -c %d -P %d", strings.ToUpper(command), conns, pipeline)
			servers = append(servers,
				workload{Name: "redis-" + name, Title: what + ", by redis-benchmark", Family: "redis", Unit: "command",
					measure: measureRedis(redisGenerator, command, conns, pipeline)},
				workload{Name: "redis-" + name + "-by-rondo", Title: what + ", by rondo bench", Family: "redis", Unit: "command",
					with: "rondo", measure: measureRedis(rondoGenerator, command, conns, pipeline)})
			for _, s := range []string{redisServer, defaultRondo} {
				generators = append(generators, workload{
					Name: "load-" + name + "-" + s, Title: "asking " + s + " to " + what, Family: "load", Unit: "command",
					against: s, measure: measureGenerator(command, conns, pipeline)})
			}
		}
	}
	return append(servers, generators...)
}

func sizeName(n int) string {
	if n >= 1<<10 {
		return fmt.Sprintf("%dk", n>>10)
	}
	return strconv.Itoa(n)
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
		found := false
		for _, w := range workloads {
			if !matches(name, w.Name) {
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
