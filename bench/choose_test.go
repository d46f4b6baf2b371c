package main

import (
	"context"
	"errors"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"
)

func TestParseServers(t *testing.T) {
	all, err := parseServers([]string{"all", "gnet"})
	if err != nil || len(all) != len(registry) {
		t.Fatalf("all and gnet again: %d servers, %v, want %d", len(all), err, len(registry))
	}
	got, err := parseServers([]string{"rondo-epoll@2", "net", "redis-s*"})
	if err != nil || len(got) != 3 {
		t.Fatalf("parseServers = %v, %v, want three", got, err)
	}
	for i, want := range []server{
		{entry{name: "rondo-epoll"}, "rondo-epoll@2", 2}, {entry{name: "net"}, "net", 0}, {entry{name: "redis-server"}, "redis-server", 0},
	} {
		if g := got[i]; g.entry.name != want.entry.name || g.name != want.name || g.loops != want.loops {
			t.Errorf("server %d is %q of %q with %d loops, want %q of %q with %d", i, g.name, g.entry.name, g.loops, want.name, want.entry.name, want.loops)
		}
	}
	for name, part := range map[string]string{
		"gnot": "no server", "gnet@": "number of event loops", "gnet@0": "number of event loops", "net@2": "no event loops", "gnot*": "no server",
	} {
		if got, err := parseServers([]string{name}); err == nil || !strings.Contains(err.Error(), part) {
			t.Errorf("parseServers(%q) = %v, %v, want an error with %q", name, got, err, part)
		}
	}
}

// TestRegistry finds a server that cannot be started, or has no family.
func TestRegistry(t *testing.T) {
	for _, e := range registry {
		if len(e.does) == 0 {
			t.Errorf("%q serves nothing", e.name)
		}
		for family, s := range e.does {
			if families[family] == nil {
				t.Errorf("%q serves %q, which is no family", e.name, family)
			}
			if s.command == nil && family != "load" {
				t.Errorf("%q cannot be started to serve %q", e.name, family)
			}
			if _, known := packages[s.with]; s.with != "" && !known && !slices.Contains(cPrograms(), s.with) {
				t.Errorf("%q needs the program %q, of which nothing is known", e.name, s.with)
			}
		}
	}
	for family, bases := range families {
		for _, base := range bases {
			if e, _ := entryOf(base); !(server{entry: e}).serves(family) {
				t.Errorf("family %q has the base %q, which does not serve it", family, base)
			}
		}
	}
}

// TestSuites finds a suite with a server that does nothing in it, a base that
// takes no part, or a workload that nobody can serve.
func TestSuites(t *testing.T) {
	for _, s := range append(slices.Clone(suites), quickSuite) {
		servers, err := parseServers(s.Servers)
		if err != nil {
			t.Errorf("%s: %v", s.Name, err)
		}
		for _, server := range servers {
			if !slices.ContainsFunc(s.Workloads, func(w workload) bool { return server.serves(w.Family) }) {
				t.Errorf("%s: %s has nothing to do", s.Name, server.name)
			}
		}
		for _, w := range s.Workloads {
			if w.measure == nil || families[w.Family] == nil {
				t.Errorf("%s: workload %q has no measure, or no family", s.Name, w.Name)
			}
			if len(s.bases(w)) == 0 {
				t.Errorf("%s: nothing to compare with under %s", s.Name, w.Name)
			}
			for _, base := range s.bases(w) {
				if !slices.Contains(s.Servers, base) {
					t.Errorf("%s: the base %s takes no part", s.Name, base)
				}
			}
		}
	}
}

func TestParseWorkloads(t *testing.T) {
	got, err := parseWorkloads([]string{"redis-get-*", "idle", "redis-get-p1"})
	names := strings.Join(workloadNames(got), " ")
	if want := "redis-get-p1 redis-get-p1-by-rondo redis-get-p32 redis-get-p32-by-rondo idle"; err != nil || names != want {
		t.Errorf("parseWorkloads = %q, %v, want %q", names, err, want)
	}
	for _, bad := range []string{"echo", "echo-9*", ""} {
		if got, err := parseWorkloads([]string{bad}); err == nil {
			t.Errorf("parseWorkloads(%q) = %q, want an error", bad, workloadNames(got))
		}
	}
}

func TestParseSuites(t *testing.T) {
	if all, err := parseSuites(nil); err != nil || len(all) != len(suites) {
		t.Errorf("without names: %d suites, %v, want %d", len(all), err, len(suites))
	}
	if got, err := parseSuites([]string{"redis", "peers", "redis"}); err != nil || len(got) != 2 || got[0].Name != "redis" {
		t.Errorf("redis, peers and redis: %d suites, %v", len(got), err)
	}
	if _, err := parseSuites([]string{"pears"}); err == nil {
		t.Error("no error for a suite that there is not")
	}
}

// planOf is a plan of one suite.
func planOf(t *testing.T, workloads []workload, modes ...string) *plan {
	t.Helper()
	p := &plan{
		results: &results{Repetitions: 2, Suites: []suite{{Name: "s", Servers: []string{"net", "gnet", "redcon", "evio"}, Workloads: workloads, Modes: modes}}},
		file:    filepath.Join(t.TempDir(), "results.json"),
		modes:   map[string]mode{},
		rig:     rig{programs: serversOnly(t)},
	}
	for _, m := range modes {
		p.modes[m] = mode{name: m, serverCPU: anyCPU, clientCPU: anyCPU, loops: 1, threads: 1}
	}
	return p
}

// TestGroups looks at the order: neighbours under the same workload, another one
// first in each repetition, and what is the same in every mode but once.
func TestGroups(t *testing.T) {
	groups, err := planOf(t, named("echo-64-1", "idle"), "a", "b").groups()
	if err != nil {
		t.Fatal(err)
	}
	var got []string
	for _, g := range groups {
		for _, s := range g.servers {
			got = append(got, g.mode.name+" "+g.workload.Name+" "+s.name)
		}
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
		t.Errorf("runs:\n%s\nwant\n%s", strings.Join(got, "\n"), strings.Join(want, "\n"))
	}
}

// TestAppend interrupts a run in the middle of a group, and goes on: that group
// is measured again, others are not.
func TestAppend(t *testing.T) {
	calls := 0
	ctx, cancel := context.WithCancel(context.Background())
	defer cancel()
	w := named("echo-64-1")[0]
	w.measure = func(context.Context, *rig, *target) (figures, error) {
		if calls++; calls == 5 {
			cancel()
		}
		return figures{PerSecond: float64(calls), Connections: calls}, nil
	}
	p := planOf(t, []workload{w}, "free")
	if err := p.run(ctx); err != nil {
		t.Fatal(err)
	}
	if n := len(p.results.Runs); n != 4 {
		t.Fatalf("%d runs before the interruption, want 4", n)
	}
	again, err := loadResults(p.file)
	if err != nil {
		t.Fatal(err)
	}
	again.Suites[0].Workloads[0].measure = w.measure
	p.results = again
	if err := p.run(context.Background()); err != nil {
		t.Fatal(err)
	}
	var got []int
	for _, x := range p.results.Runs {
		got = append(got, x.Connections)
	}
	if want := []int{1, 2, 3, 6, 7, 8}; !slices.Equal(got, want) {
		t.Errorf("kept are the measurements %v, want %v", got, want)
	}
	if rest, err := p.rest(); err != nil || len(rest) > 0 {
		t.Errorf("%d groups are left, %v", len(rest), err)
	}
}

// TestRetries makes disturbed runs again, as often as it may, and keeps the last.
func TestRetries(t *testing.T) {
	calls := 0
	w := named("echo-64-1")[0]
	w.measure = func(context.Context, *rig, *target) (figures, error) {
		calls++
		return figures{PerSecond: 1, Connections: calls}, nil
	}
	p := planOf(t, []workload{w}, "free")
	p.results.Repetitions, p.results.Suites[0].Servers = 1, []string{"net"}
	p.quiet, p.retries = -1, 2
	if err := p.run(context.Background()); err != nil {
		t.Fatal(err)
	}
	if n := len(p.results.Runs); n != 1 || calls != 3 || p.results.Runs[0].Connections != 3 {
		t.Errorf("%d measurements, of which %+v is kept; want the third of three", calls, p.results.Runs)
	}
}

// TestUndisturbed leaves out disturbed runs, unless there is little else.
func TestUndisturbed(t *testing.T) {
	quiet, loud := run{Others: 0.01}, run{Others: 0.5}
	for _, c := range []struct {
		runs []run
		want int
	}{
		{[]run{quiet, quiet, quiet}, 3}, {[]run{quiet, loud, quiet}, 2}, {[]run{loud, loud, quiet}, 3}, {[]run{loud}, 1}, {nil, 0},
	} {
		if got := undisturbed(c.runs); len(got) != c.want {
			t.Errorf("of %v remain %v, want %d", c.runs, got, c.want)
		}
	}
}

// TestFor ends runs by time: between groups, with a shorter one where the next
// does not fit, and with an error where none does.
func TestFor(t *testing.T) {
	instant := func(context.Context, *rig, *target) (figures, error) { return figures{PerSecond: 1}, nil }
	long, short := named("echo-64-1")[0], named("echo-64-50")[0]
	long.measure, short.measure = instant, instant
	p := planOf(t, []workload{long, short}, "free")
	// As if it had been measured before, by a suite of the same name.
	for _, s := range []string{"net", "gnet", "evio"} {
		p.results.Runs = append(p.results.Runs,
			run{Suite: "s", Mode: "free", Workload: long.Name, Server: s, Repetition: -1, Took: 1000},
			run{Suite: "s", Mode: "free", Workload: short.Name, Server: s, Repetition: -1, Took: 0.001})
	}
	p.until = time.Now().Add(time.Minute)
	if err := p.run(context.Background()); !errors.Is(err, errUnfinished) {
		t.Fatalf("error %v, want that it is unfinished", err)
	}
	if rest, err := p.rest(); err != nil || len(rest) != 3 || rest[0].workload.Name != long.Name {
		t.Errorf("left are %v, %v: want all but the short group of the first repetition", rest, err)
	}
	if err := p.run(context.Background()); err == nil || errors.Is(err, errUnfinished) {
		t.Errorf("error %v, want that the time is too short", err)
	}
}

// serversOnly are programs of which there are the servers alone.
func serversOnly(t *testing.T) *programs {
	t.Helper()
	p := &programs{dir: t.TempDir()}
	if err := p.buildGo(context.Background(), serverProgram); err != nil {
		t.Fatal(err)
	}
	return p
}

// selfOnly are programs of which there is this one alone.
func selfOnly(t *testing.T) *programs {
	t.Helper()
	self, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	p := &programs{dir: t.TempDir()}
	if err := install(self, p.path(selfProgram)); err != nil {
		t.Fatal(err)
	}
	return p
}

func TestReuse(t *testing.T) {
	p := selfOnly(t)
	if _, err := reuse(p.dir); err != nil {
		t.Errorf("the same program: %v", err)
	}
	if err := os.WriteFile(p.path(selfProgram), []byte("another"), 0o700); err != nil {
		t.Fatal(err)
	}
	if _, err := reuse(p.dir); !errors.Is(err, errChanged) {
		t.Errorf("another program: %v, want %v", err, errChanged)
	}
	if _, err := reuse(t.TempDir()); err == nil {
		t.Error("no program: no error")
	}
}

// TestOtherMachine does not go on with a run of another machine.
func TestOtherMachine(t *testing.T) {
	out := t.TempDir()
	if err := sample().save(filepath.Join(out, "results.json")); err != nil {
		t.Fatal(err)
	}
	c := runCommand{Append: true, Out: out}
	if err := c.Run(); err == nil || !strings.Contains(err.Error(), "of another machine (Fast 9000, 8 cores") {
		t.Errorf("error %v, want that the machine is another", err)
	}
}

func TestChoicesExclude(t *testing.T) {
	for _, bad := range []runCommand{
		{Append: true, Quick: true}, {Append: true, Servers: []string{"net"}}, {Append: true, Duration: 1},
		{Repetitions: -1}, {Suites: []string{"peers"}, Workloads: []string{"idle"}},
	} {
		if err := bad.check(); err == nil {
			t.Errorf("%+v: no error", bad)
		}
	}
	good := runCommand{Append: true, Repetitions: 9, For: time.Second}
	if err := good.check(); err != nil {
		t.Error(err)
	}
}
