package main

import (
	"image/png"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
	"time"
)

func TestNumbers(t *testing.T) {
	for _, c := range []struct{ got, want string }{
		{thousands(0), "0"}, {thousands(999.6), "1,000"}, {thousands(1234567), "1,234,567"}, {thousands(-123456), "-123,456"},
		{micros(99.94), "99.9"}, {micros(1234.5), "1,234"},
	} {
		if c.got != c.want {
			t.Errorf("got %q, want %q", c.got, c.want)
		}
	}
}

// sample are results of two repetitions in which the machine's speed changed,
// with a server that failed once and one that failed always.
func sample() *results {
	one := func(workload, server string, repetition int, rate, cpu float64, err string) run {
		return run{Suite: "peers", Mode: "pinned", Workload: workload, Server: server, Repetition: repetition, Error: err,
			figures: figures{PerSecond: rate, CPU: cpu, Calls: 2}}
	}
	const few, many = "echo-64-50", "echo-64-10000"
	r := &results{
		Began:   time.Date(2030, 2, 3, 0, 0, 0, 0, time.UTC),
		Ended:   time.Date(2030, 2, 4, 0, 0, 0, 0, time.UTC),
		Machine: machine{CPU: "Fast 9000", Cores: 8, Kernel: "Linux 7", Go: "1.30", Versions: map[string]string{"gnet": "v2", "gcc": "12"}},
		Seconds: 3, Warmup: 0.5, Repetitions: 2, Notes: []string{"A note."},
		Suites: []suite{{Name: "peers", Title: "Peers", Servers: []string{"c-epoll", "rondo-epoll", "gnet", "net"}, Workloads: named(few, many), Modes: []string{"pinned"}}},
		Runs: []run{
			one(few, "c-epoll", 0, 200000, 4, ""), one(few, "rondo-epoll", 0, 196000, 4.2, ""), one(few, "gnet", 0, 100000, 6, ""), one(few, "net", 0, 0, 0, "server died (signal)"),
			one(few, "c-epoll", 1, 100000, 4, ""), one(few, "rondo-epoll", 1, 101000, 4.2, ""), one(few, "gnet", 1, 0, 0, "it stalls"), one(few, "net", 1, 0, 0, "server died (signal)"),
			one(many, "rondo-epoll", 0, 100000, 4.62, ""), one(many, "rondo-epoll", 1, 100000, 4.62, ""),
			one(many, "rondo-epoll", 2, 1, 1, ""),
		},
	}
	r.Runs[len(r.Runs)-1].Others = 0.5
	r.Suites[0].link()
	r.summarize()
	return r
}

func TestRender(t *testing.T) {
	r := sample()
	got := render(r, []string{"peers-rate-pinned", "peers-rate-free"}, "charts/")
	for _, want := range []string{
		"3 February 2030 to 4 February 2030; Fast 9000, 8 cores, Linux 7, Go 1.30.\n",
		"2 repetitions of 3 s after 0.5 s of warm-up. Versions: gcc 12, gnet v2.\n",
		"**A note.**",
		"During 1 of 11 runs other processes used more than 20% of a CPU.\n",
		"messages/s, and in brackets CPU µs/message, as ratios to c-epoll:\n",
		"| rondo-epoll | ≈0.99 (1.05) |\n| gnet | 0.50 (1.50) |\n| net | failed |\n",
		"![peers-rate-pinned](charts/peers-rate-pinned.svg)",
		"System calls of the server for each message:\n",
		"| gnet | 2.00 |",
		"under echo-64-10000 as a ratio to that under echo-64-50, and quartiles:\n\n| server | pinned |\n|---|---:|\n| rondo-epoll | 1.10 (1.10–1.10) |\n",
		"[All figures](charts/peers.md)",
	} {
		if !strings.Contains(got, want) {
			t.Errorf("no %q in\n%s", want, got)
		}
	}
	if strings.Contains(got, "peers-rate-free") {
		t.Error("the chart of a mode that was not run is shown")
	}
}

func TestRenderDetails(t *testing.T) {
	r := sample()
	got := renderDetails(r, &r.Suites[0])
	for _, want := range []string{
		"# Peers: all figures\n",
		"### echo-64-50: echo, 64 B, 50 connections\n",
		"| server | messages/s | ÷ c-epoll | CPU µs/message | ÷ c-epoll | system calls/message |\n",
		"| rondo-epoll | 148,500 | 0.99 (0.99–1.00) | 4.20 | 1.05 | 2.00 |\n",
		"| gnet | 100,000 | 0.50 | 6.00 | 1.50 | 2.00 |\n",
		"| net | failed |  |  |  |  |\n",
		"rondo-epoll: 1 of 3 runs were disturbed, and are left out.\n",
		"gnet failed 1 of 2 times: it stalls\n",
		"net failed 2 of 2 times: server died (signal)\n",
	} {
		if !strings.Contains(got, want) {
			t.Errorf("no %q in\n%s", want, got)
		}
	}
}

func TestValueText(t *testing.T) {
	var s summary
	s.Runs = 3
	s.Values.set(perSecond, []float64{90000, 100000, 120000})
	if got, want := valueText(s, perSecond), "100,000 ±8%"; got != want {
		t.Errorf("valueText = %q, want %q", got, want)
	}
}

// TestResultsAreRead writes everything, and writes it again from the JSON.
func TestResultsAreRead(t *testing.T) {
	first, second := t.TempDir(), t.TempDir()
	if err := write(sample(), first, ""); err != nil {
		t.Fatal(err)
	}
	again, err := loadResults(filepath.Join(first, "results.json"))
	if err != nil {
		t.Fatal(err)
	}
	if err := write(again, second, ""); err != nil {
		t.Fatal(err)
	}
	for _, name := range []string{"results.json", "results.md", "peers.md", "peers-rate-pinned.svg", "peers-rate-pinned.png", "peers-cpu-pinned.svg"} {
		a, err := os.ReadFile(filepath.Join(first, name))
		if err != nil {
			t.Fatal(err)
		}
		b, err := os.ReadFile(filepath.Join(second, name))
		if err != nil {
			t.Fatal(err)
		}
		if string(a) != string(b) {
			t.Errorf("%s differs when written from results.json", name)
		}
	}
}

func TestCharts(t *testing.T) {
	dir := t.TempDir()
	names, err := drawCharts(sample(), dir)
	if err != nil {
		t.Fatal(err)
	}
	if got := strings.Join(names, " "); got != "peers-rate-pinned peers-cpu-pinned" {
		t.Fatalf("charts %q, want peers-rate-pinned and peers-cpu-pinned", got)
	}
	svg, err := os.ReadFile(filepath.Join(dir, "peers-rate-pinned.svg"))
	if err != nil {
		t.Fatal(err)
	}
	for _, want := range []string{"3 February 2030; Fast 9000, 8 cores", "rondo-epoll", "148,500", "echo, 64 B, 50 connections"} {
		if !strings.Contains(string(svg), want) {
			t.Errorf("the chart does not say %q", want)
		}
	}
	f, err := os.Open(filepath.Join(dir, "peers-rate-pinned.png"))
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	if _, err := png.Decode(f); err != nil {
		t.Error(err)
	}
}

func TestUpdateDocs(t *testing.T) {
	dir := t.TempDir()
	page := filepath.Join(dir, "benchmarks.md")
	if err := os.WriteFile(page, []byte("before\n"+beginMarker+"\nold\n"+endMarker+"\nafter\n"), 0o666); err != nil {
		t.Fatal(err)
	}
	old := filepath.Join(dir, "benchmarks", "of-another-run.svg")
	if err := os.Mkdir(filepath.Dir(old), 0o777); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(old, nil, 0o666); err != nil {
		t.Fatal(err)
	}
	for range 2 { // the second time finds what the first has written
		if err := updateDocs(sample(), dir); err != nil {
			t.Fatal(err)
		}
	}
	b, err := os.ReadFile(page)
	if err != nil {
		t.Fatal(err)
	}
	want := "before\n" + beginMarker + "\n\n" + render(sample(), []string{"peers-rate-pinned", "peers-cpu-pinned"}, "benchmarks/") + "\n" + endMarker + "\nafter\n"
	if string(b) != want {
		t.Errorf("the page is\n%s\nwant\n%s", b, want)
	}
	if _, err := os.Stat(filepath.Join(dir, "benchmarks", "peers-cpu-pinned.svg")); err != nil {
		t.Error(err)
	}
	if _, err := os.Stat(old); err == nil {
		t.Error("a chart of another run is still there")
	}
	for _, bad := range []string{"", beginMarker, endMarker + beginMarker} {
		if got, err := between(bad, "x"); err == nil {
			t.Errorf("between(%q) = %q, want an error", bad, got)
		}
	}
}

// TestLinks looks for the files that the pages point to.
func TestLinks(t *testing.T) {
	link := regexp.MustCompile(`\]\(([^)#:]+)(?:#[^)]*)?\)`)
	for _, page := range []string{"README.md", "docs/benchmarks.md"} {
		b, err := os.ReadFile(filepath.Join("..", page))
		if err != nil {
			t.Fatal(err)
		}
		found := link.FindAllSubmatch(b, -1)
		if len(found) == 0 {
			t.Errorf("%s: no links found", page)
		}
		for _, l := range found {
			if _, err := os.Stat(filepath.Join("..", filepath.Dir(page), string(l[1]))); err != nil {
				t.Errorf("%s: %v", page, err)
			}
		}
	}
}

// TestDocsHaveMarkers looks at the page that --update docs writes to.
func TestDocsHaveMarkers(t *testing.T) {
	b, err := os.ReadFile(filepath.Join("..", "docs", "benchmarks.md"))
	if err != nil {
		t.Fatal(err)
	}
	if _, err := between(string(b), ""); err != nil {
		t.Error(err)
	}
}
