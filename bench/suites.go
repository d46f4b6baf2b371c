package main

import (
	"fmt"
	"path"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/rondo-go/rondo/bench/serve"
)

// A workload is what the load generators do to a server.
type workload struct {
	Name, Title string
	Family      string // of servers
	Unit        string // what is counted, in the singular
	client      string // the load generator's program
	args        []string
	conns       int
	slice       time.Duration // of load, before the other server's turn
	share       float64       // of the slower server's maximum rate, in an open loop; 0: a closed loop
	memory      bool          // only the memory of idle connections is measured
	once        bool          // a process serves only one slice
}

// streams reports whether the load generator keeps its connections open.
func (w workload) streams() bool {
	return w.client != "" && w.client != "udp" && !slices.Contains(w.args, "rate")
}

// broadcasts reports whether the server sends each message to all connections.
func (w workload) broadcasts() bool { return slices.Contains(w.args, "broadcast") }

// turns returns fewer turns than asked for if a slice takes long.
func (w workload) turns(asked int) int {
	if w.conns >= manyConns || w.once {
		return (asked + 1) / 2
	}
	return asked
}

const (
	usualSlice = 100 * time.Millisecond
	mostConns  = 10000
	manyConns  = 9000 // of HTTP and WebSocket; with so many, slices are long
)

// workloads are all workloads. Add new ones here.
var workloads = slices.Concat(
	echoes("echo", "load", 64, 1, 50, 1000, mostConns),
	echoes("echo", "load", 1<<10, 50),
	echoes("echo", "load", 64<<10, 1, 8),
	[]workload{
		opened("open50-64-50", 0.5), opened("open80-64-50", 0.8),
		{Name: "rate", Title: "connect, one echo of 64 B, close, 50 at once", Family: "echo", Unit: "connection", client: "load", args: []string{"-b", "64", "rate"}, conns: 50, slice: usualSlice},
		{Name: "idle", Title: "memory of idle connections", Family: "echo", Unit: "connection", client: "load", args: []string{"-b", "64", "echo"}, conns: mostConns, memory: true},
	},
	echoes("tls", "tlsload", 1<<10, 1, 50, 1000),
	[]workload{
		{Name: "tls-rate", Title: "connect, full handshake, one echo of 64 B, close, 50 at once", Family: "tls", Unit: "handshake", client: "tlsload", args: []string{"-b", "64", "rate"}, conns: 50, slice: usualSlice},
		{Name: "tls-idle", Title: "memory of idle TLS connections", Family: "tls", Unit: "connection", client: "tlsload", args: []string{"-b", "64", "echo"}, conns: mostConns, memory: true},
	},
	redisWorkloads(),
	httpWorkloads(),
	webSocketWorkloads(),
	datagrams(64), datagrams(1200),
	completionWorkloads(),
	proxyWorkloads(),
)

// echoes returns echo workloads of a family and a size, with names such as
// echo-64k-8.
func echoes(family, client string, size int, conns ...int) []workload {
	var list []workload
	for _, n := range conns {
		list = append(list, workload{
			Name:   fmt.Sprintf("%s-%s-%d", family, sizeName(size), n),
			Title:  fmt.Sprintf("%s of %s, %s", map[string]string{"echo": "echo", "tls": "echo over TLS"}[family], sizeText(size), counted(n, "connection")),
			Family: family, Unit: "message", client: client, args: []string{"-b", strconv.Itoa(size), "echo"}, conns: n, slice: usualSlice,
		})
	}
	return list
}

// opened returns an echo workload with an open loop.
func opened(name string, share float64) workload {
	w := echoes("echo", "load", 64, 50)[0]
	w.Name, w.share = name, share
	w.Title += fmt.Sprintf(", open load at %.0f%% of the slower server's maximum", 100*share)
	return w
}

// datagrams returns UDP echo workloads of a size, with names such as
// udp-64-50x1: 50 sockets with one datagram each under way. A system may take
// many datagrams of one socket at once.
func datagrams(size int) []workload {
	var list []workload
	for _, n := range [][2]int{{50, 1}, {8, 32}} {
		list = append(list, workload{
			Name:   fmt.Sprintf("udp-%d-%dx%d", size, n[0], n[1]),
			Title:  fmt.Sprintf("UDP echo of %d B, %d sockets with %d under way", size, n[0], n[1]),
			Family: "udp", Unit: "datagram", client: "udp", args: []string{"-b", strconv.Itoa(size), "-d", strconv.Itoa(n[1])}, conns: n[0], slice: usualSlice,
		})
	}
	return list
}

// redisWorkloads send redis-benchmark's SET and GET.
func redisWorkloads() []workload {
	var list []workload
	for _, depth := range []int{1, 32} {
		for _, command := range []string{"set", "get"} {
			list = append(list, workload{
				Name:   fmt.Sprintf("%s-p%d", command, depth),
				Title:  fmt.Sprintf("%s, 50 connections, pipelines of %d", strings.ToUpper(command), depth),
				Family: "redis", Unit: "command", client: "load", args: []string{"-d", strconv.Itoa(depth), command}, conns: 50, slice: usualSlice,
			})
		}
	}
	return list
}

// httpWorkloads ask HTTP servers for a text of 13 bytes, alone and in pipelines, for JSON
// of 1 KiB, and for 64 KiB. Idle connections have had a request, or none.
func httpWorkloads() []workload {
	var list []workload
	add := func(name, title, family, client, path string, depth int, conns ...int) {
		for _, n := range conns {
			list = append(list, workload{
				Name:   fmt.Sprintf("%s-%s-%d", family, name, n),
				Title:  fmt.Sprintf("%s, %s", title, counted(n, "connection")),
				Family: family, Unit: "request", client: client, args: []string{"-d", strconv.Itoa(depth), "http", path}, conns: n, slice: usualSlice,
			})
		}
	}
	add("text", "text of 13 B", "http", "load", serve.TextPath, 1, 2, 64, 1000, manyConns)
	add("json", "JSON of 1 KiB", "http", "load", serve.JSONPath, 1, 2, 64, 1000, manyConns)
	add("64k", "64 KiB", "http", "load", serve.LargePath, 1, 2, 64, 1000)
	add("p16", "text of 13 B in pipelines of 16", "http", "load", serve.TextPath, 16, 2, 64, 1000, manyConns)
	add("p64", "text of 13 B in pipelines of 64", "http", "load", serve.TextPath, 64, 2, 64, 1000, manyConns)
	add("text", "text of 13 B over TLS", "https", "tlsload", serve.TextPath, 1, 2, 64, 1000, manyConns)
	add("64k", "64 KiB over TLS", "https", "tlsload", serve.LargePath, 1, 2, 64)
	for _, of := range [][2]string{{"http", "load"}, {"https", "tlsload"}} {
		family, client := of[0], of[1]
		list = append(list, workload{
			Name: family + "-idle", Title: "memory of idle " + strings.ToUpper(family) + " connections", Family: family, Unit: "connection",
			client: client, args: []string{"http", serve.TextPath}, conns: manyConns, memory: true,
		})
	}
	return list
}

// webSocketWorkloads send binary messages, which come back, and texts of 1 KiB, which all
// connections get.
func webSocketWorkloads() []workload {
	var list []workload
	add := func(w workload, name, title, kind string, size int) {
		w.Name, w.Title, w.client, w.args = name, title, "load", []string{"-b", strconv.Itoa(size), kind}
		w.slice = max(w.slice, usualSlice)
		list = append(list, w)
	}
	for _, of := range []struct {
		family, title string
		size          int
		conns         []int
	}{
		{"ws", "", 64, []int{2, 64, 1000, manyConns}},
		{"ws", "", 1 << 10, []int{2, 64, 1000, manyConns}},
		{"ws", "", 64 << 10, []int{2, 64, 1000}},
		{"wsz", " with permessage-deflate", 1 << 10, []int{2, 64, 1000}},
	} {
		for _, n := range of.conns {
			add(workload{Family: of.family, Unit: "message", conns: n}, fmt.Sprintf("%s-%s-%d", of.family, sizeName(of.size), n),
				fmt.Sprintf("echo of WebSocket messages of %s%s, %s", sizeText(of.size), of.title, counted(n, "connection")), "frames", of.size)
		}
	}
	add(workload{Family: "ws", Unit: "broadcast", conns: manyConns, slice: 500 * time.Millisecond},
		"ws-broadcast", "broadcast of 1 KiB to "+counted(manyConns, "connection"), "broadcast", 1<<10)
	add(workload{Family: "ws", Unit: "connection", conns: manyConns, memory: true}, "ws-idle", "memory of idle WebSockets", "frames", 64)
	return list
}

// completionWorkloads are gaio's own cases, BenchmarkEcho64K, BenchmarkEcho1K
// and Test8k. The measured process contains both the server and its clients.
// Connecting takes most of the time of Test8k, so there is also a case with
// rounds of echoes on existing connections.
func completionWorkloads() []workload {
	of := func(name, title, unit, kind string, conns, size int) workload {
		return workload{Name: "completions-" + name, Title: title, Family: "completions", Unit: unit,
			args: []string{kind, strconv.Itoa(size)}, conns: conns, slice: 200 * time.Millisecond, once: true}
	}
	return []workload{
		of("stream-64k", "a stream of echoes of 64 KiB", "message", "stream", 1, 64<<10),
		of("stream-1k", "a stream of echoes of 1 KiB", "message", "stream", 1, 1<<10),
		of("clients-8192", "8,192 clients connect and echo 1 KiB", "client", "clients", 8192, 1<<10),
		of("rounds-8192", "8,192 connected clients echo 1 KiB at once", "message", "rounds", 8192, 1<<10),
	}
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

func counted(n int, what string) string {
	if n == 1 {
		return "1 " + what
	}
	return thousands(float64(n)) + " " + what + "s"
}

// A suite is a set of servers that are compared with one, the base, under
// workloads, in a mode. It has a results file.
type suite struct {
	Name, Title string
	Mode        string
	Base        string
	Servers     []string
	Workloads   []string
}

var (
	peers     = []string{"gnet", "nbio", "gaio", "evio", "netpoll", "netpoll-go", "net"}
	streaming = slices.Concat([]string{"c-uring", rondoServer, "rondo-uring"}, peers)
)

// suites are all suites, in the order in which they are measured.
var suites = []suite{
	{"peers", "Echo, beside other libraries", "pinned", limitServer, streaming,
		[]string{"echo-64-1", "echo-64-50", "echo-64-1000", "echo-64-10000", "echo-1k-50", "echo-64k-1", "echo-64k-8"}},
	{"peers-free", "Echo where server and client share the CPUs", "free", limitServer, streaming, []string{"echo-64-50", "echo-64-1000", "echo-64k-8", "rate"}},
	{"redis", "Redis", "pinned", redisServer, []string{rondoServer, "rondo-uring", "gnet", "nbio", "gaio", "evio", "redcon", "net"},
		[]string{"set-p1", "get-p1", "set-p32", "get-p32"}},
	{"http", "HTTP", "pinned", "net-http", []string{"rondo-httpd-loop", "rondo-httpd", "rondo-http1", "fasthttp", "nbio-http", "gnet-toy", "evio-toy"}, []string{"http-*"}},
	{"https", "HTTP over TLS", "pinned", "net-http", []string{"rondo-httpd-loop", "rondo-httpd", "rondo-http1", "fasthttp", "nbio-http"}, []string{"https-*"}},
	{"websocket", "WebSocket", "pinned", "gws", []string{"rondo-websocket", "rondo-upgrade", "gorilla", "gobwas", "nbio-websocket"}, []string{"ws-*"}},
	{"websocket-deflate", "WebSocket with permessage-deflate", "pinned", "gws", []string{"rondo-websocket", "gorilla", "nbio-websocket"}, []string{"wsz-*"}},
	{"proxy", "TCP proxies", "pinned", rondoServer, []string{"rondo-uring", "haproxy", "haproxy-splice", "nginx", "net"}, []string{"proxy-*"}},
	{"tls", "TLS", "pinned", "net", []string{rondoServer, "rondo-uring", "nbio"}, []string{"tls-1k-1", "tls-1k-50", "tls-1k-1000", "tls-rate", "tls-idle"}},
	{"completions", "Completions for goroutines: gaio's own cases", "free", "gaio", []string{"rondo-proactor", "rondo-compat-gaio"}, []string{"completions-*"}},
	{"styles", "Ways to write a server on rondo", "pinned", rondoServer, []string{"rondo-co", "rondo-proactor", "net"},
		[]string{"echo-64-50", "echo-64-1000", "echo-64-10000", "echo-1k-50", "echo-64k-8", "idle"}},
	{"connections", "Connections: how fast they come and go, and the memory of idle ones", "pinned", limitServer, streaming, []string{"rate", "idle"}},
	{"latency", "Latency under open load", "pinned", limitServer, []string{rondoServer, "rondo-uring", "gnet", "nbio", "net"}, []string{"open50-64-50", "open80-64-50"}},
	{"latency-gnet", "The same beside gnet, at the same rates", "pinned", "gnet", []string{rondoServer, "rondo-uring"}, []string{"open50-64-50", "open80-64-50"}},
	{"spin", "A loop that spins before it sleeps", "pinned", rondoServer, []string{"rondo-epoll-spin20us", "rondo-epoll-spin100us"}, []string{"echo-64-1"}},
	{"spare", "A spare processor for two loops, which park without", "free", rondoServer, []string{"rondo-epoll-spare"}, []string{"echo-64-50", "echo-64-1000", "echo-64k-8", "rate"}},
	{"spare-one", "One loop without the spare processor that it has by default here", "pinned", rondoServer, []string{"rondo-epoll-nospare"}, []string{"echo-64-1", "echo-64-50"}},
	{"scale", "From one loop to a loop for each CPU, with the client on the same CPUs", "free", "rondo-epoll@1", []string{"rondo-epoll"},
		[]string{"echo-64-50", "echo-64-1000", "echo-64k-8", "rate"}},
	{"scale-limit", "The same for the C server", "free", "c-epoll@1", []string{limitServer}, []string{"echo-64-50", "echo-64-1000", "echo-64k-8", "rate"}},
	{"backends", "Backends that ask about each connection", "pinned", rondoServer, []string{"rondo-uring", "rondo-poll", "rondo-std"},
		[]string{"echo-64-1", "echo-64-50", "echo-64-1000", "echo-64k-8"}},
	{"datagrams", "UDP echo", "pinned", "net", []string{rondoServer, "rondo-uring", "rondo-std", "gnet"}, []string{"udp-*"}},
	{"article", "The event-loop article's three servers", "free", redisServer, []string{rondoServer, "rondo-poll", "rondo-std"}, []string{"set-p1", "get-p1"}},
	{"options-gnet", "Options of gnet, to its defaults", "pinned", "gnet", []string{"gnet+tags", "gnet-edge", "gnet-lock"}, []string{"echo-64-50", "echo-64-1000", "echo-64k-8"}},
	{"options-nbio", "Options of nbio, to its defaults", "pinned", "nbio", []string{"nbio-edge", "nbio-lock"}, []string{"echo-64-50", "echo-64-1000", "echo-64k-8"}},
	{"options-gaio", "Options of gaio, to its defaults", "pinned", "gaio", []string{"gaio-own"}, []string{"echo-64-50", "echo-64-1000", "echo-64k-8"}},
	{"options-netpoll", "Options of netpoll, to its defaults", "pinned", "netpoll", []string{"netpoll-go", "netpoll-inline"}, []string{"echo-64-50", "echo-64-1000", "echo-64k-8"}},
	{"quick", "A quick look", "pinned", limitServer, []string{rondoServer, "rondo-uring", "gnet", "net"}, []string{"echo-64-50", "echo-64k-8", "rate", "idle"}},
}

// chosenSuite finds a suite, and narrows it to some servers and workloads,
// given as patterns of package path.
func chosenSuite(name string, servers, names []string) (suite, error) {
	i := slices.IndexFunc(suites, func(s suite) bool { return s.Name == name })
	if i < 0 {
		return suite{}, fmt.Errorf("no suite %q: see list", name)
	}
	s := suites[i]
	var all []string
	for _, w := range workloads {
		all = append(all, w.Name)
	}
	s.Workloads = matching(all, s.Workloads)
	for _, list := range []struct {
		of   *[]string
		by   []string
		what string
	}{{&s.Servers, servers, "server"}, {&s.Workloads, names, "workload"}} {
		if len(list.by) == 0 {
			continue
		}
		had := *list.of
		if *list.of = matching(had, list.by); len(*list.of) == 0 {
			return s, fmt.Errorf("suite %s has no %s %s: it has %s", name, list.what, strings.Join(list.by, ","), strings.Join(had, ", "))
		}
	}
	return s, nil
}

// matching returns the names that match a pattern.
func matching(names, patterns []string) []string {
	var found []string
	for _, n := range names {
		if slices.ContainsFunc(patterns, func(p string) bool { ok, err := path.Match(p, n); return ok && err == nil }) {
			found = append(found, n)
		}
	}
	return found
}

// workloadOf finds a workload by its name.
func workloadOf(name string) (workload, error) {
	i := slices.IndexFunc(workloads, func(w workload) bool { return w.Name == name })
	if i < 0 {
		return workload{}, fmt.Errorf("no workload %q", name)
	}
	return workloads[i], nil
}

type listCommand struct{}

// Run prints the suites and workloads.
func (listCommand) Run() error {
	for _, s := range suites {
		s, err := chosenSuite(s.Name, nil, nil)
		if err != nil {
			return err
		}
		fmt.Printf("%s: %s, %s\n    %s\n    to %s: %s\n", s.Name, s.Title, s.Mode, strings.Join(s.Workloads, " "), s.Base, strings.Join(s.Servers, " "))
	}
	fmt.Println("\nworkloads:")
	for _, w := range workloads {
		fmt.Printf("    %-24s %s\n", w.Name, w.Title)
	}
	return nil
}
