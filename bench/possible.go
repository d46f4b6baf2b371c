package main

import (
	"errors"
	"os/exec"
	"slices"
	"strings"
)

// possible leaves out what was not chosen or cannot be run here, and says so.
func (r *results) possible(modes []string) error {
	cpus, err := allowedCPUs()
	if err != nil {
		return err
	}
	if _, err := parseModes(modes); err != nil {
		return err
	}
	for i := range r.Suites {
		s := &r.Suites[i]
		if len(modes) > 0 {
			s.Modes = slices.DeleteFunc(slices.Clone(s.Modes), func(m string) bool { return !slices.Contains(modes, m) })
		}
		if len(cpus) < 2 {
			s.Modes = []string{"free"}
		}
	}
	if len(cpus) < 2 {
		r.Notes = append(r.Notes, "There is one CPU: server and client shared it in all runs.")
	}
	r.withoutRedis()
	r.Suites = slices.DeleteFunc(r.Suites, func(s suite) bool { return len(s.Modes) == 0 || len(s.Workloads) == 0 })
	if len(r.Suites) == 0 {
		return errors.New("nothing of what was chosen can be run: " + strings.Join(append(r.Notes, "the suites do not have these modes"), " "))
	}
	return nil
}

// withoutRedis leaves out what needs Redis's programs where those are missing.
func (r *results) withoutRedis() {
	missing := func(program string) bool {
		_, err := exec.LookPath(program)
		return err != nil
	}
	lost := func(w workload) bool {
		generator := (w.Family == "redis" || w.Family == "load") && missing(redisGenerator)
		return generator || w.against == redisServer && missing(redisServer)
	}
	for i := range r.Suites {
		s := &r.Suites[i]
		all := len(s.Workloads)
		s.Workloads = slices.DeleteFunc(slices.Clone(s.Workloads), lost)
		if len(s.Workloads) < all {
			r.Notes = append(r.Notes, "Redis's programs are not installed: workloads of the suite "+s.Name+" were left out.")
		}
		if slices.Contains(s.Servers, redisServer) && missing(redisServer) {
			s.Servers = slices.DeleteFunc(slices.Clone(s.Servers), func(name string) bool { return name == redisServer })
			r.Notes = append(r.Notes, "redis-server is not installed: it was left out of the suite "+s.Name+".")
		}
	}
}

// needs are the programs that suites need beyond those of every run.
func needs(suites []suite) ([]string, error) {
	var with []string
	for _, s := range suites {
		for _, w := range s.Workloads {
			with = append(with, w.with)
			e, _ := entryOf(w.against)
			with = append(with, e.does["redis"].with)
			servers, err := parseServers(s.Servers)
			if err != nil {
				return nil, err
			}
			for _, server := range servers {
				with = append(with, server.does[w.Family].with)
			}
		}
	}
	return slices.DeleteFunc(with, func(name string) bool { return name == "" }), nil
}
