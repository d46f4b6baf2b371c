package main

import (
	"fmt"
	"net"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/rondo-go/rondo/bench/serve"
	"github.com/rondo-go/rondo/internal/pick"
)

// Names that other files use.
const (
	limitServer    = "c-epoll"      // limit/epoll.c
	redisServer    = "redis-server" // Debian's
	redisGenerator = "redis-benchmark"
	rondoGenerator = "rondo-bench"
)

// An entry is something that can be measured. To add a server is to add it to
// the registry: its name, and how it is started for each family of workloads
// that it can serve. A new family needs a line in families too, and a workload.
type entry struct {
	name     string
	module   string           // Go module whose version is told
	loopless bool             // has no event loops to choose the number of
	does     map[string]start // by family
}

// A start says how a server is started: as a child that is this program, or
// another program. Unless that is among the programs by itself, with is what
// else must be built for it.
type start struct {
	inside  serve.Server
	command func(p *programs, o options) (path string, args []string)
	with    []string
}

// options are what a server is told.
type options struct {
	port  int
	loops int    // as many as the mode has CPUs for it, unless
	asked bool   // the user chose the number
	dir   string // for what it writes
}

func (o options) address() string { return net.JoinHostPort("127.0.0.1", strconv.Itoa(o.port)) }

// families are the kinds of workloads, and what takes part in one is compared
// with, foremost with the first.
var families = map[string][]string{
	"echo":  {limitServer, "net"},
	"redis": {redisServer, "net"},
	"load":  {redisGenerator}, // load generators, each against the same server
}

// registry lists what can be measured, in the order of the tables.
var registry = slices.Concat(
	limits(),
	[]entry{{name: redisServer, loopless: true, does: map[string]start{"redis": {command: debianRedis}}}},
	rondos(),
	[]entry{
		{name: "rondo-co", does: map[string]start{"echo": {inside: serve.RondoCoEcho}}},
		{name: "gnet", module: "github.com/panjf2000/gnet/v2", does: echoRedis(serve.GnetEcho, serve.GnetRedis)},
		{name: "nbio", module: "github.com/lesismal/nbio", does: echoRedis(serve.NbioEcho, serve.NbioRedis)},
		{name: "gaio", module: "github.com/xtaci/gaio", does: echoRedis(serve.GaioEcho, serve.GaioRedis)},
		{name: "evio", module: "github.com/tidwall/evio", does: echoRedis(serve.EvioEcho, serve.EvioRedis)},
		{name: "netpoll", module: "github.com/cloudwego/netpoll", does: map[string]start{"echo": {inside: serve.NetpollEcho}}},
		{name: "redcon", module: "github.com/tidwall/redcon", loopless: true, does: map[string]start{"redis": {inside: serve.RedconRedis}}},
		{name: "net", loopless: true, does: echoRedis(serve.NetEcho, serve.NetRedis)},
		{name: redisGenerator, loopless: true, does: map[string]start{"load": {}}},
		{name: rondoGenerator, loopless: true, does: map[string]start{"load": {with: []string{"rondo"}}}},
	},
)

func echoRedis(echo, redis serve.Server) map[string]start {
	return map[string]start{"echo": {inside: echo}, "redis": {inside: redis}}
}

// limits are the C servers: all of limit/ but the load generator.
func limits() []entry {
	var entries []entry
	for _, name := range cPrograms() {
		if name == loadProgram {
			continue
		}
		entries = append(entries, entry{name: "c-" + name, does: map[string]start{"echo": {
			command: func(p *programs, o options) (string, []string) {
				return p.path(name), []string{strconv.Itoa(o.port), strconv.Itoa(o.loops)}
			},
			with: []string{name},
		}}})
	}
	return entries
}

func debianRedis(_ *programs, o options) (string, []string) {
	return redisServer, []string{"--bind", "127.0.0.1", "--port", strconv.Itoa(o.port),
		"--save", "", "--appendonly", "no", "--dir", o.dir, "--loglevel", "warning"}
}

// spins are the values of Engine.Spin besides none: enough for a server on the
// same machine to be quick, and enough to outlast the waking of a client that
// sleeps between two messages.
var spins = []time.Duration{20 * time.Microsecond, 100 * time.Microsecond}

// backends are this platform's, the best one first.
func backends() []string { return pick.Names() }

// rondos are rondo on each backend, and each of these spinning.
func rondos() []entry {
	var entries []entry
	for _, b := range backends() {
		entries = append(entries, rondo(b, 0))
		for _, n := range spins {
			entries = append(entries, rondo(b, n))
		}
	}
	return entries
}

func rondo(backend string, spin time.Duration) entry {
	e := entry{name: "rondo-" + backend, does: map[string]start{
		"echo": {inside: serve.RondoEcho(backend, spin)},
		"redis": {
			command: func(p *programs, o options) (string, []string) {
				if !o.asked {
					o.loops = 1 // rondo redis's own default
				}
				return p.path("rondo"), []string{"redis", "--backend", backend, "--addr", o.address(),
					"--loops", strconv.Itoa(o.loops), "--spin", spinText(spin), "--log-level", "error"}
			},
			with: []string{"rondo"},
		},
	}}
	if spin > 0 {
		e.name += "-spin" + spinText(spin)
	}
	return e
}

// spinText is a duration as names have it, in plain letters.
func spinText(d time.Duration) string { return strings.Replace(d.String(), "µ", "u", 1) }

// entryOf finds an entry.
func entryOf(name string) (entry, bool) {
	i := slices.IndexFunc(registry, func(e entry) bool { return e.name == name })
	if i < 0 {
		return entry{}, false
	}
	return registry[i], true
}

func serverNames() []string {
	var names []string
	for _, e := range registry {
		names = append(names, e.name)
	}
	return names
}

// A server is an entry to measure: "gnet", or "gnet@2" for two event loops
// instead of as many as the mode gives it.
type server struct {
	entry
	name  string // as chosen
	loops int    // 0: the mode's
}

// serves tells whether the server belongs to a family.
func (s server) serves(family string) bool {
	_, ok := s.does[family]
	return ok
}

// command is how the server is started.
func (s server) command(p *programs, family string, o options) (path string, args []string) {
	if s.loops > 0 {
		o.loops, o.asked = s.loops, true
	}
	start := s.does[family]
	if start.command != nil {
		return start.command(p, o)
	}
	return p.path(selfProgram), []string{"serve", family, s.entry.name, "--addr", o.address(), "--loops", strconv.Itoa(o.loops)}
}

// parseServers reads names, of which "all" is every one. A name may end in "*".
func parseServers(names []string) ([]server, error) {
	var servers []server
	for _, name := range names {
		base, count, many := strings.Cut(name, "@")
		loops, err := strconv.Atoi(count)
		if many && (err != nil || loops < 1) {
			return nil, fmt.Errorf("server %q: want a number of event loops after @, as in %s@2", name, base)
		}
		found := false
		for _, e := range registry {
			if !matches(base, e.name) {
				continue
			}
			found = true
			if many && e.loopless {
				return nil, fmt.Errorf("server %q: %s has no event loops to choose the number of", name, e.name)
			}
			s := server{entry: e, name: e.name, loops: loops}
			if many {
				s.name += "@" + count
			}
			if !slices.ContainsFunc(servers, func(t server) bool { return t.name == s.name }) {
				servers = append(servers, s)
			}
		}
		if !found {
			return nil, fmt.Errorf("no server %q: choose among all, %s, or a beginning with *, as in rondo-*",
				name, strings.Join(serverNames(), ", "))
		}
	}
	return servers, nil
}

// matches tells whether a pattern given by the user means a name.
func matches(pattern, name string) bool {
	prefix, star := strings.CutSuffix(pattern, "*")
	return pattern == "all" || pattern == name || star && strings.HasPrefix(name, prefix)
}

// cPrograms are the names of limit's sources.
func cPrograms() []string {
	files, err := sources.ReadDir("limit")
	if err != nil {
		panic(err) // it is in this executable
	}
	var names []string
	for _, f := range files {
		names = append(names, strings.TrimSuffix(f.Name(), filepath.Ext(f.Name())))
	}
	return names
}
