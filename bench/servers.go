package main

import (
	"context"
	"embed"
	"fmt"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/rondo-go/rondo/bench/serve"
)

// Servers that are not in package serve.
const (
	limitServer = "c-epoll"      // limit/epoll.c
	redisServer = "redis-server" // Debian's
)

// A server is one to measure: "gnet", or "gnet@2" for two event loops instead
// of as many as the mode has CPUs for it.
type server struct {
	name  string
	base  string // without @
	loops int    // 0: the mode's
}

// serverNames lists what can be measured, in the order of the tables.
var serverNames = []string{
	limitServer, redisServer,
	"rondo-epoll", "rondo-epoll-spin", "rondo-poll", "rondo-poll-spin", "rondo-std", "rondo-std-spin", "rondo-co",
	"gnet", "nbio", "gaio", "evio", "netpoll", "redcon", "net",
}

// loopless are the servers that have no event loops to choose the number of.
var loopless = []string{redisServer, "net", "redcon"}

// serves tells whether the server belongs to a family.
func (s server) serves(family string) bool {
	switch {
	case s.base == limitServer:
		return family == "echo"
	case s.base == redisServer:
		return family == "redis"
	case family == "redis" && s.isRondo():
		return true // cmd/rondo
	}
	return serve.Families[family][s.base] != nil
}

func (s server) isRondo() bool { return strings.HasPrefix(s.base, "rondo-") && s.base != "rondo-co" }

// parseServers reads names, of which "all" is every one.
func parseServers(names []string) ([]server, error) {
	var servers []server
	for _, name := range names {
		if name == "all" {
			all, err := parseServers(serverNames)
			if err != nil {
				return nil, err
			}
			servers = append(servers, all...)
			continue
		}
		base, count, many := strings.Cut(name, "@")
		loops, err := strconv.Atoi(count)
		switch {
		case !slices.Contains(serverNames, base):
			return nil, fmt.Errorf("no server %q: choose among all, %s", base, strings.Join(serverNames, ", "))
		case many && slices.Contains(loopless, base):
			return nil, fmt.Errorf("server %q: %s has no event loops to choose the number of", name, base)
		case many && (err != nil || loops < 1):
			return nil, fmt.Errorf("server %q: want a number of event loops after @, as in %s@2", name, base)
		}
		servers = append(servers, server{name, base, loops})
	}
	return withoutDoubles(servers), nil
}

func withoutDoubles(servers []server) []server {
	var once []server
	for _, s := range servers {
		if !slices.Contains(once, s) {
			once = append(once, s)
		}
	}
	return once
}

//go:embed limit/epoll.c limit/load.c
var sources embed.FS

// programs are the executables of a run.
type programs struct {
	dir   string // holds what was built; the caller removes it
	self  string // this program, which is most servers
	load  string
	limit string
	rondo string // "" unless it was asked for
}

// build makes the programs in dir.
func build(ctx context.Context, dir string, withRondo bool) (*programs, error) {
	self, err := os.Executable()
	if err != nil {
		return nil, err
	}
	p := &programs{dir: dir, self: self}
	if p.limit, err = compile(ctx, dir, "epoll"); err != nil {
		return nil, err
	}
	if p.load, err = compile(ctx, dir, "load"); err != nil {
		return nil, err
	}
	if withRondo {
		p.rondo = filepath.Join(dir, "rondo")
		cmd := exec.CommandContext(ctx, "go", "build", "-C", "..", "-o", p.rondo, "./cmd/rondo")
		if out, err := cmd.CombinedOutput(); err != nil {
			return nil, fmt.Errorf("build ../cmd/rondo: %w: run this in the directory bench\n%s", err, out)
		}
	}
	return p, nil
}

// compile builds one of the C programs.
func compile(ctx context.Context, dir, name string) (string, error) {
	source, err := sources.ReadFile("limit/" + name + ".c")
	if err != nil {
		return "", err
	}
	path := filepath.Join(dir, name)
	if err := os.WriteFile(path+".c", source, 0o600); err != nil {
		return "", err
	}
	cmd := exec.CommandContext(ctx, "gcc", "-O2", "-pthread", "-o", path, path+".c")
	if out, err := cmd.CombinedOutput(); err != nil {
		return "", fmt.Errorf("build limit/%s.c: %w: gcc is needed\n%s", name, err, out)
	}
	return path, nil
}

// command is how a server is started.
func (p *programs) command(s server, family string, port, loops int) (path string, args []string) {
	address := net.JoinHostPort("127.0.0.1", strconv.Itoa(port))
	if s.loops > 0 {
		loops = s.loops
	}
	switch {
	case s.base == limitServer:
		return p.limit, []string{strconv.Itoa(port), strconv.Itoa(loops)}
	case s.base == redisServer:
		return redisServer, []string{"--bind", "127.0.0.1", "--port", strconv.Itoa(port),
			"--save", "", "--appendonly", "no", "--dir", p.dir, "--loglevel", "warning"}
	case family == "redis" && s.isRondo():
		backend, spins := strings.CutSuffix(strings.TrimPrefix(s.base, "rondo-"), "-spin")
		// One loop unless told otherwise, as is rondo redis's own default.
		args := []string{"redis", "--backend", backend,
			"--addr", address, "--loops", strconv.Itoa(max(1, s.loops)), "--log-level", "error"}
		if spins {
			args = append(args, "--spin", strconv.Itoa(serve.Spin))
		}
		return p.rondo, args
	}
	return p.self, []string{"serve", family, s.base, "--addr", address, "--loops", strconv.Itoa(loops)}
}

// serveCommand is this program as a server.
type serveCommand struct {
	Family string `arg:"" help:"What to serve: echo or redis." enum:"echo,redis"`
	Name   string `arg:"" help:"The library to serve with."`
	Addr   string `help:"Address to listen on." default:"127.0.0.1:5000"`
	Loops  int    `help:"Event loops, where the library has them." default:"1"`
}

// Run serves until it is killed.
func (c *serveCommand) Run() error {
	s := serve.Families[c.Family][c.Name]
	if s == nil {
		return fmt.Errorf("no %s server %q: choose among %s", c.Family, c.Name, strings.Join(serve.Names(c.Family), ", "))
	}
	if c.Loops < 1 {
		return fmt.Errorf("--loops %d: want at least 1", c.Loops)
	}
	return s(c.Addr, c.Loops)
}

// A target is a server that is ready.
type target struct {
	*process
	port int
	mode mode
}

// start starts a server and waits until it accepts connections. The port was
// free a moment before; should it be taken meanwhile, another is tried.
func (p *programs) start(ctx context.Context, m mode, s server, family string) (*target, error) {
	const attempts = 3
	for attempt := 1; ; attempt++ {
		port, err := freePort()
		if err != nil {
			return nil, err
		}
		path, args := p.command(s, family, port, m.loops)
		child, err := spawnServer(ctx, m.serverCPU, path, args...)
		if err != nil {
			return nil, err
		}
		t := &target{child, port, m}
		if err = t.ready(ctx); err == nil {
			return t, nil
		}
		child.stop()
		if attempt == attempts || ctx.Err() != nil {
			return nil, err
		}
	}
}

func freePort() (int, error) {
	ln, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		return 0, err
	}
	defer ln.Close()
	return ln.Addr().(*net.TCPAddr).Port, nil
}

// ready waits until the server takes connections.
func (t *target) ready(ctx context.Context) error {
	const patience = 5 * time.Second
	address := net.JoinHostPort("127.0.0.1", strconv.Itoa(t.port))
	for start := time.Now(); time.Since(start) < patience; {
		if c, err := net.Dial("tcp", address); err == nil {
			return c.Close()
		}
		if how, dead := t.died(2 * time.Millisecond); dead {
			return fmt.Errorf("server ended at its start: %s", how)
		}
		if ctx.Err() != nil {
			return ctx.Err()
		}
	}
	return fmt.Errorf("server did not accept connections within %v", patience)
}
