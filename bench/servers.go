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

// Names that several files use.
const (
	limitServer = "c-epoll"      // limit/epoll.c
	redisServer = "redis-server" // Debian's
	rondoServer = "rondo-epoll"
)

// A build says from what programs are built, and where.
type build struct {
	dir  string   // directory of the programs
	root string   // rondo's source
	env  []string // environment of its servers
}

func (b build) path(program string) string { return filepath.Join(b.dir, program) }

// A server can be measured. The Go servers are serve.Libraries; the C servers
// are programs in limit.
type server struct {
	name    string
	program string // its file in a build; "": found on the PATH
	command func(b build, family, address string, loops int) []string
	config  func(address string, loops int) string // nil; or text of a file, whose name the command gets last
	files   []string                               // without which the program is not installed
}

// findServer finds the server of a family of workloads by its name. The suffix
// @N sets the number of event loops, instead of the mode's.
func findServer(name, family string) (server, error) {
	base, count, many := strings.Cut(name, "@")
	s, err := namedServer(base, family)
	if err != nil || !many {
		return s, err
	}
	n, err := strconv.Atoi(count)
	if err != nil || n < 1 {
		return s, fmt.Errorf("server %q: want a number of event loops after @, as in %s@2", name, base)
	}
	inner := s.command
	s.name = name
	s.command = func(b build, family, address string, _ int) []string { return inner(b, family, address, n) }
	return s, nil
}

func namedServer(name, family string) (server, error) {
	if program, ok := strings.CutPrefix(name, "c-"); ok && slices.Contains(cPrograms, program) && family == "echo" {
		return server{name: name, program: program, command: func(b build, _, address string, loops int) []string {
			_, port, _ := net.SplitHostPort(address)
			return []string{b.path(program), port, strconv.Itoa(loops)}
		}}, nil
	}
	if name == redisServer && family == "redis" {
		return server{name: name, command: debianRedis}, nil
	}
	if family == proxyFamily {
		if s, ok := proxyServer(name); ok {
			return s, nil
		}
	}
	for _, r := range serve.Rondos {
		if r.Name == name && family == "redis" {
			return server{name: name, program: "rondo", command: func(b build, _, address string, _ int) []string {
				return []string{b.path("rondo"), "redis", "--backend", r.Backend, "--addr", address, "--loops", "1",
					"--spin", r.Spin.String(), "--log-level", "error"}
			}}, nil
		}
	}
	base, tagged := strings.CutSuffix(name, "+tags")
	for _, l := range serve.Libraries {
		if l.Name != base || l.Do[family] == nil {
			continue
		}
		program := "server"
		if tagged {
			program = "server-tags"
		}
		return server{name: name, program: program, command: func(b build, family, address string, loops int) []string {
			return []string{b.path(program), family, base, address, strconv.Itoa(loops)}
		}}, nil
	}
	return server{}, fmt.Errorf("no server %q for workloads of the family %s: see list", name, family)
}

func debianRedis(b build, _, address string, _ int) []string {
	_, port, _ := net.SplitHostPort(address)
	return []string{redisServer, "--bind", "127.0.0.1", "--port", port,
		"--save", "", "--appendonly", "no", "--dir", b.dir, "--loglevel", "warning"}
}

// modules returns the names of the servers' libraries by module. Their versions
// are part of the results.
func modules() map[string]string {
	m := map[string]string{}
	for _, l := range serve.Libraries {
		if l.Module != "" {
			m[l.Module] = l.Name
		}
	}
	return m
}
