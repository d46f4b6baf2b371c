package main

import (
	"fmt"
	"slices"
	"strings"

	"github.com/rondo-go/rondo/bench/serve"
)

// A suite is servers and workloads that belong together: it has tables and
// charts of its own. To add one is to add it to suites.
type suite struct {
	Name      string     `json:"name"`
	Title     string     `json:"title"`
	Text      string     `json:"text,omitempty"` // what there is to know when reading its tables
	Servers   []string   `json:"servers"`
	Workloads []workload `json:"workloads"`
	Modes     []string   `json:"modes"`
	Bases     []string   `json:"bases,omitempty"` // that the others are compared with; none: the families'

	views  []view
	growth [][2]string // workloads of which the second's CPU time is compared with the first's
}

// A view is a table of servers and workloads, a chart, or both.
type view struct {
	name   string // of the chart's files; "": no chart
	title  string // %s is the unit
	metric metric
	beside *metric // in brackets, in the table
	table  tableKind
}

type tableKind int

const (
	noTable tableKind = iota
	ratios            // to the first base
	values
)

var (
	rateAndCPU = view{"rate", "%ss per second", perSecond, &cpu, ratios}
	cpuChart   = view{name: "cpu", title: "CPU time of the server for each %s, µs (less is better)", metric: cpu}
	callsTable = view{title: "System calls of the server for each %s", metric: calls, table: values}
	idleTable  = view{"memory", "Resident bytes for each idle connection", idleBytes, &echoed, values}
	idleChart  = view{name: "echoed", title: "Resident bytes for each idle connection after an echo (less is better)", metric: echoed}
	usual      = []view{rateAndCPU, cpuChart, callsTable}
)

// defaultRondo is rondo on the platform's best backend.
var defaultRondo = serve.Rondos[0].Name

// suites are what a run without choices measures, in this order.
var suites = []suite{
	{
		Name: "peers", Title: "Echo, beside other libraries",
		Servers:   oneOfEach("net"),
		Workloads: named("echo-64-1", "echo-64-50", "echo-64-1000", "echo-64-10000", "echo-1k-50", "echo-64k-1", "echo-64k-8"),
		Modes:     modeNames, views: usual, growth: [][2]string{{"echo-64-50", "echo-64-10000"}},
	},
	{
		Name: "connections", Title: "Connections: how fast they come and go, and what an idle one costs",
		Servers:   oneOfEach("net", "rondo-std", "rondo-poll"),
		Workloads: named("rate", "idle"),
		Modes:     modeNames, views: []view{rateAndCPU, idleTable, idleChart},
	},
	{
		Name: "latency", Title: "Latency at one connection, with and without spinning",
		Text:      "-spinT is rondo with Engine.Spin T: a loop that has run out of work looks for more for that time before it sleeps.",
		Servers:   slices.Concat([]string{limitServer}, known("c-uring"), spinning(), []string{"net"}),
		Workloads: named("echo-64-1"),
		Modes:     modeNames, views: []view{{"p50", "Median latency, µs", p50, &cpu, ratios}, {title: "Median latency in µs", metric: p50, beside: &p99, table: values}},
	},
	{
		Name: "backends", Title: "Backends",
		Text:      "c-epoll and c-uring are the limits: nothing but system calls, with epoll and with io_uring.",
		Servers:   slices.Concat([]string{limitServer}, known("c-uring"), ofBackends()),
		Workloads: named("echo-64-1", "echo-64-50", "echo-64-1000", "echo-64-10000", "echo-1k-1", "echo-1k-50", "echo-1k-1000", "echo-1k-10000", "echo-64k-1", "echo-64k-50", "echo-64k-1000", "echo-64k-10000", "idle"),
		Modes:     modeNames[:1], Bases: known(limitServer, "c-uring"), views: append(usual, idleTable), growth: [][2]string{{"echo-64-50", "echo-64-10000"}},
	},
	{
		Name: "loops", Title: "One loop and two, where the client shares the CPUs",
		Text:      "@N is a server with N event loops. The client is a thread that wants a CPU too.",
		Servers:   []string{defaultRondo + "@1", defaultRondo + "@2", limitServer + "@1", limitServer + "@2"},
		Workloads: named("echo-64-50", "echo-64-1000", "echo-1k-50", "echo-64k-8", "rate"),
		Modes:     modeNames[1:], Bases: []string{defaultRondo + "@1", limitServer + "@1"}, views: usual,
	},
	{
		Name: "styles", Title: "Ways to write a server on rondo",
		Text:      "rondo-co is net's code, line by line, in coroutines.",
		Servers:   known(limitServer, defaultRondo, "rondo-co", "rondo-proactor", "net"),
		Workloads: named("echo-64-50", "echo-64-1000", "echo-64-10000", "echo-1k-50", "echo-64k-8", "idle"),
		Modes:     modeNames, views: append(usual, idleTable),
	},
	{
		Name: "tls", Title: "TLS",
		Text:      "Servers have an ECDSA P-256 certificate; handshakes are full ones of TLS 1.3 with X25519. The client is rondo too, with as much to encrypt and decrypt as the server, and more to compute in a handshake: where it is busy all the time, compare CPU times. net is a goroutine for each connection with crypto/tls, as rondo has it; nbio brings its own version of it.",
		Servers:   known("rondo-epoll", "rondo-uring", "nbio", "net"),
		Workloads: named("tls-1k-1", "tls-1k-50", "tls-1k-1000", "tls-rate", "tls-idle"),
		Modes:     modeNames, views: append(usual, idleTable, idleChart),
	},
	{
		Name: "datagrams", Title: "UDP echo",
		Text:      "NxW is N sockets with W datagrams under way each. rondo receives and sends many in one system call, and has Linux segment runs of them to one peer (UDP_SEGMENT); net has a goroutine that reads and writes one at a time.",
		Servers:   known("rondo-epoll", "rondo-uring", "rondo-std", "gnet", "net"),
		Workloads: named("udp-64-50x1", "udp-64-8x32", "udp-1200-50x1", "udp-1200-8x32"),
		Modes:     modeNames, views: usual,
	},
	{
		Name: "completions", Title: "Completions for goroutines: gaio's own cases",
		Text:      "Server and clients are one process, each with a watcher (gaio, compat/gaio) or a queue with one loop (package proactor), and a goroutine that waits for results. A stream's client writes message after message, each when the system has taken the last one, while it reads what comes back. The others begin with the first dial, and end when each client has its message back; of rounds that is not measured. CPU time and memory are those of all.",
		Servers:   []string{"gaio", "rondo-proactor", "rondo-compat-gaio"},
		Workloads: named("completions-*"),
		Modes:     modeNames[1:],
		views: []view{
			rateAndCPU, cpuChart,
			{title: "MB/s", metric: megabytes, table: values},
			{"elapsed", "Time until all clients have their message back, ms (less is better)", elapsed, nil, values},
			{title: "Allocations of server and client for each %s", metric: allocs, beside: &allocBytes, table: values},
		},
	},
	{
		Name: "redis", Title: "Redis",
		Text:      "All but redis-server and rondo are toys that know SET and GET only. The client is redis-benchmark.",
		Servers:   redises,
		Workloads: named("redis-set-p1", "redis-get-p1", "redis-set-p32", "redis-get-p32"),
		Modes:     modeNames, views: usual,
	},
	{
		Name: "redis-verified", Title: "Redis, by a client that verifies every reply",
		Text:      "The client is rondo bench redis.",
		Servers:   redises,
		Workloads: named("redis-set-p1-by-rondo", "redis-get-p1-by-rondo", "redis-set-p32-by-rondo", "redis-get-p32-by-rondo"),
		Modes:     modeNames[:1], views: usual,
	},
	{
		Name: "generators", Title: "rondo bench redis as a load generator, beside redis-benchmark",
		Text:      "CPU time here is the generator's own. rondo bench verifies every reply, redis-benchmark none.",
		Servers:   []string{redisGenerator, rondoGenerator},
		Workloads: named("load-*"),
		Modes:     modeNames, views: []view{rateAndCPU, cpuChart},
	},
}

// redises are the Redis servers that are compared.
var redises = slices.Concat([]string{redisServer}, known("rondo-epoll", "rondo-uring"), []string{"gnet", "nbio", "gaio", "evio", "redcon", "net"})

// quickSuite is what --quick measures.
var quickSuite = suite{
	Name: "quick", Title: "A quick look",
	Servers:   slices.Concat(oneOfEach("net"), []string{redisServer, "redcon"}),
	Workloads: named("echo-64-50", "echo-64k-8", "rate", "idle", "redis-get-p32"),
	Modes:     modeNames[:1], views: append(usual, idleTable),
}

// chosenSuite is made of what the user chose.
func chosenSuite(servers, workloads, modes []string) (suite, error) {
	s := suite{Name: "chosen", Title: "Chosen servers and workloads", Servers: []string{"all"}, Modes: modeNames, views: append(usual, idleTable)}
	var err error
	if len(servers) > 0 {
		s.Servers = servers
	}
	if len(modes) > 0 {
		s.Modes = modes
	}
	if len(workloads) == 0 {
		workloads = []string{"all"}
	}
	if s.Workloads, err = parseWorkloads(workloads); err != nil {
		return s, err
	}
	parsed, err := parseServers(s.Servers)
	if err != nil {
		return s, err
	}
	s.Servers = nil
	for _, p := range parsed {
		s.Servers = append(s.Servers, p.name)
	}
	return s, nil
}

// parseSuites reads names; none are all.
func parseSuites(names []string) ([]suite, error) {
	if len(names) == 0 {
		names = []string{"all"}
	}
	var chosen []suite
	for _, name := range names {
		found := false
		for _, s := range suites {
			if !matches(name, s.Name) {
				continue
			}
			found = true
			if !slices.ContainsFunc(chosen, func(c suite) bool { return c.Name == s.Name }) {
				chosen = append(chosen, s)
			}
		}
		if !found {
			return nil, fmt.Errorf("no suite %q: choose among all, %s", name, strings.Join(suiteNames(), ", "))
		}
	}
	return chosen, nil
}

func suiteNames() []string {
	var names []string
	for _, s := range suites {
		names = append(names, s.Name)
	}
	return names
}

// bases are what a workload's servers are compared with.
func (s *suite) bases(w workload) []string {
	if len(s.Bases) > 0 {
		return s.Bases
	}
	var bases []string
	for _, b := range families[w.Family] {
		if slices.Contains(s.Servers, b) {
			bases = append(bases, b)
		}
	}
	for i := 0; i < len(s.Servers) && len(bases) == 0; i++ {
		name, _, _ := strings.Cut(s.Servers[i], "@")
		e, _ := entryOf(name)
		if _, serves := e.does[w.Family]; serves {
			bases = append(bases, s.Servers[i])
		}
	}
	return bases
}

// known are those of the names that are in the registry: not every platform has
// every backend.
func known(names ...string) []string {
	return slices.DeleteFunc(names, func(name string) bool {
		_, ok := entryOf(name)
		return !ok
	})
}

// oneOfEach are the limits, rondo on its event-queue backends, the peers with
// an echo server, and others.
func oneOfEach(others ...string) []string {
	return slices.Concat(known("c-epoll", "c-uring", "rondo-epoll", "rondo-uring"), []string{"gnet", "nbio", "gaio", "evio", "netpoll"}, others)
}

// ofBackends are rondo on each of them, not spinning.
func ofBackends() []string {
	var names []string
	for _, r := range serve.Rondos {
		if r.Spin == 0 {
			names = append(names, r.Name)
		}
	}
	return names
}

// spinning are the best backends, spinning and not.
func spinning() []string {
	var names []string
	for _, r := range serve.Rondos {
		if r.Backend == "epoll" || r.Backend == "uring" {
			names = append(names, r.Name)
		}
	}
	return names
}

// named are workloads that must exist.
func named(names ...string) []workload {
	list, err := parseWorkloads(names)
	if err != nil {
		panic(err)
	}
	return list
}
