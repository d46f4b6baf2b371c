package main

import (
	"slices"
	"strings"
	"testing"

	"github.com/rondo-go/rondo/bench/serve"
)

func TestParseServers(t *testing.T) {
	all, err := parseServers([]string{"all", "gnet"})
	if err != nil || len(all) != len(serverNames) {
		t.Fatalf("all and gnet again: %d servers, %v, want %d", len(all), err, len(serverNames))
	}
	got, err := parseServers([]string{"rondo-epoll@2", "net"})
	want := []server{{"rondo-epoll@2", "rondo-epoll", 2}, {"net", "net", 0}}
	if err != nil || !slices.Equal(got, want) {
		t.Errorf("parseServers = %v, %v, want %v", got, err, want)
	}
	for name, part := range map[string]string{
		"gnot": "no server", "gnet@": "number of event loops", "gnet@0": "number of event loops", "net@2": "no event loops",
	} {
		if got, err := parseServers([]string{name}); err == nil || !strings.Contains(err.Error(), part) {
			t.Errorf("parseServers(%q) = %v, %v, want an error with %q", name, got, err, part)
		}
	}
}

// TestServersAreListed finds a server that cannot be chosen, or that serves
// nothing.
func TestServersAreListed(t *testing.T) {
	for family := range serve.Families {
		for _, name := range serve.Names(family) {
			if !slices.Contains(serverNames, name) {
				t.Errorf("%s server %q is not in serverNames", family, name)
			}
		}
		if len(bases[family]) != 2 {
			t.Errorf("family %q has bases %q, want two", family, bases[family])
		}
	}
	for _, name := range serverNames {
		if s := (server{base: name}); !s.serves("echo") && !s.serves("redis") {
			t.Errorf("%q serves nothing", name)
		}
	}
}

func TestParseWorkloads(t *testing.T) {
	got, err := parseWorkloads([]string{"redis-get-*", "idle", "redis-get-p1"})
	names := strings.Join(workloadNames(got), " ")
	if want := "redis-get-p1 redis-get-p32 idle"; err != nil || names != want {
		t.Errorf("parseWorkloads = %q, %v, want %q", names, err, want)
	}
	for _, bad := range []string{"echo", "echo-9*", ""} {
		if got, err := parseWorkloads([]string{bad}); err == nil {
			t.Errorf("parseWorkloads(%q) = %q, want an error", bad, workloadNames(got))
		}
	}
}

// TestSteps looks at the order: neighbours under the same workload, another one
// first in each repetition, and what is the same in every mode but once.
func TestSteps(t *testing.T) {
	servers, err := parseServers([]string{"net", "gnet", "redcon", "evio"})
	if err != nil {
		t.Fatal(err)
	}
	chosen, err := parseWorkloads([]string{"echo-64-1", "idle"})
	if err != nil {
		t.Fatal(err)
	}
	p := plan{servers: servers, workloads: chosen, modes: []mode{{name: "a"}, {name: "b"}}, repetitions: 2}
	var got []string
	for _, s := range p.steps() {
		got = append(got, s.mode.name+" "+s.workload.Name+" "+s.server.name)
	}
	var want []string
	for _, order := range [][]string{{"net", "gnet", "evio"}, {"gnet", "evio", "net"}} {
		for _, what := range []string{"a echo-64-1 ", "a idle ", "b echo-64-1 "} {
			for _, s := range order {
				want = append(want, what+s)
			}
		}
	}
	if !slices.Equal(got, want) {
		t.Errorf("steps:\n%s\nwant\n%s", strings.Join(got, "\n"), strings.Join(want, "\n"))
	}
}
