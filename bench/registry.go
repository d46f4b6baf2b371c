package main

import (
	"fmt"
	"net"
	"path/filepath"
	"slices"
	"strconv"
	"strings"

	"github.com/rondo-go/rondo/bench/serve"
)

// Names that other files use.
const (
	limitServer    = "c-epoll"      // limit/epoll.c
	redisServer    = "redis-server" // Debian's
	redisGenerator = "redis-benchmark"
	rondoGenerator = "rondo-bench"
)

// An entry is something that can be measured. What is a server in Go is added to
// serve.Libraries and is then here; a C program in limit likewise; anything else
// is added to the registry. A new family of workloads needs a line in families.
type entry struct {
	name     string
	module   string           // Go module whose version is told
	loopless bool             // has no event loops to choose the number of
	does     map[string]start // by family
}

// A start says how a server is started, and what must be built for it.
type start struct {
	command func(p *programs, o options) (path string, args []string)
	with    string
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
	"echo":        {limitServer, "net"},
	"redis":       {redisServer, "net"},
	"udp":         {"net"},
	"tls":         {"net"},
	"completions": {"gaio"},
	"load":        {redisGenerator}, // load generators, each against the same server
}

// registry lists what can be measured, in the order of the tables.
var registry = slices.Concat(
	limits(),
	[]entry{{name: redisServer, loopless: true, does: map[string]start{"redis": {command: debianRedis}}}},
	libraries(),
	[]entry{
		{name: redisGenerator, loopless: true, does: map[string]start{"load": {}}},
		{name: rondoGenerator, loopless: true, does: map[string]start{"load": {with: "rondo"}}},
	},
)

// limits are the C servers: all of limit/ but the load generators.
func limits() []entry {
	var entries []entry
	for _, name := range cPrograms() {
		if name == loadProgram || name == udpProgram {
			continue
		}
		entries = append(entries, entry{name: "c-" + name, does: map[string]start{"echo": {
			command: func(p *programs, o options) (string, []string) {
				return p.path(name), []string{strconv.Itoa(o.port), strconv.Itoa(o.loops)}
			},
			with: name,
		}}})
	}
	return entries
}

// libraries are those of package serve; and rondo is a Redis server too.
func libraries() []entry {
	var entries []entry
	for _, l := range serve.Libraries {
		e := entry{name: l.Name, module: l.Module, loopless: l.Loopless, does: map[string]start{}}
		for family := range l.Do {
			e.does[family] = start{with: serverProgram, command: func(p *programs, o options) (string, []string) {
				return p.path(serverProgram), []string{family, l.Name, o.address(), strconv.Itoa(o.loops)}
			}}
		}
		entries = append(entries, e)
	}
	for _, r := range serve.Rondos {
		i := slices.IndexFunc(entries, func(e entry) bool { return e.name == r.Name })
		entries[i].does["redis"] = start{with: "rondo", command: func(p *programs, o options) (string, []string) {
			if !o.asked {
				o.loops = 1 // rondo redis's own default
			}
			return p.path("rondo"), []string{"redis", "--backend", r.Backend, "--addr", o.address(),
				"--loops", strconv.Itoa(o.loops), "--spin", r.Spin.String(), "--log-level", "error"}
		}}
	}
	return entries
}

func debianRedis(_ *programs, o options) (string, []string) {
	return redisServer, []string{"--bind", "127.0.0.1", "--port", strconv.Itoa(o.port),
		"--save", "", "--appendonly", "no", "--dir", o.dir, "--loglevel", "warning"}
}

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
	return s.does[family].command(p, o)
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
