package main

import (
	"math"
	"os"
	"regexp"
	"strings"
	"testing"
)

// figure is a ratio as documents tell it: 1.05x, or 1.05 (1.02–1.07).
var figure = regexp.MustCompile(`\b[0-9]+\.[0-9]+(x\b| \([0-9]+\.[0-9]+–)`)

// TestDocuments renders the documents' blocks from the results files, and looks for ratios
// outside of blocks.
func TestDocuments(t *testing.T) {
	all, err := allResults("../docs/benchmarks")
	if err != nil {
		t.Fatal(err)
	}
	files, err := documents("..")
	if err != nil {
		t.Fatal(err)
	}
	blocks := 0
	for _, file := range files {
		b, err := os.ReadFile(file)
		if err != nil {
			t.Fatal(err)
		}
		text := string(b)
		blocks += strings.Count(text, "<!-- bench\n")
		switch again, err := all.render(text); {
		case err != nil:
			t.Errorf("%s: %v", file, err)
		case again != text:
			t.Errorf("%s: figures are not those of the results files: go run . report", file)
		}
		if strings.HasSuffix(file, "CHANGELOG.md") {
			continue // what was measured then
		}
		for _, f := range figure.FindAllString(block.ReplaceAllString(text, ""), -1) {
			t.Errorf("%s: %s is from no results file: it must stand in a block", file, f)
		}
	}
	if blocks == 0 {
		t.Error("no document has a block")
	}
}

// TestRender makes a block of made-up results.
func TestRender(t *testing.T) {
	x := &row{Workload: "echo-64-50", Server: "rondo-epoll", Base: "c-epoll"}
	peer := &row{Workload: "echo-64-50", Server: "gnet", Base: "c-epoll"}
	for _, v := range []float64{0.98, 0.99, 1, 1.01, 1.02} {
		x.add(repetition{Ratio: figures{"rate": v}, A: figures{"calls": 3}, B: figures{"rate": 150_000, "calls": 2}}, 0)
		peer.add(repetition{Ratio: figures{"rate": v * 0.8}, A: figures{"calls": 3}, B: figures{"calls": 4}}, 0)
	}
	all := library{"peers": {Suite: "peers", Mode: "pinned", Sessions: make([]session, 1), Rows: []*row{x, peer}}}
	const text = `before
<!-- bench
{{ratio "peers" "echo-64-50" "rondo-epoll" "rate"}}; {{best "peers" "echo-64-50" "rate"}}; {{value "peers" "echo-64-50" "rondo-epoll" "rate"}}
{{values "peers" "calls"}}
-->
old
<!-- /bench -->
after`
	want := strings.Replace(text, "old\n", `1.00 (0.98–1.02); gnet 0.80 (0.78–0.82); 150,000
|  | echo-64-50 |
|---|---:|
| c-epoll | 3.00 |
| rondo-epoll | 2.00 |
| gnet | 4.00 |
`, 1)
	got, err := all.render(text)
	if err != nil || got != want {
		t.Errorf("rendered: %v\n%s\nwant\n%s", err, got, want)
	}
	if again, _ := all.render(got); again != got {
		t.Error("rendered again it changes")
	}
	if _, err := all.render(strings.Replace(text, "echo-64-50", "echo-7", 1)); err == nil {
		t.Error("no error for a workload that is not there")
	}
}

// TestResultsFile writes results and reads them again.
func TestResultsFile(t *testing.T) {
	res := newResults(suite{Name: "peers", Mode: "pinned", Base: "c-epoll", Servers: []string{"net", "gnet"}, Workloads: []string{"echo-64-50"}})
	res.Sessions = make([]session, 2)
	for s := range 2 {
		for range 5 {
			res.Rows[0].add(repetition{Ratio: figures{"rate": 0.123456, "cpu": 1}, Redone: 1}, s)
		}
	}
	file := t.TempDir() + "/peers.json"
	if err := res.save(file); err != nil {
		t.Fatal(err)
	}
	got, err := loadResults(file)
	if err != nil {
		t.Fatal(err)
	}
	x := got.row("echo-64-50", "net")
	if x == nil || x.ratio("rate", 1).N != 5 || x.ratio("rate", -1).Median != 0.1235 || x.Redone != 10 || got.row("echo-64-50", "gnet") == nil {
		t.Errorf("read: %+v", x)
	}
	// The interval of five values reaches from the least to the largest. Of two times five
	// values all of one lie below the other's once in 252 cases, and as often above.
	if agree, all, apart := got.agreement(); agree != 2 || all != 2 || math.Abs(apart-2*2.0/252) > 0.004 {
		t.Errorf("%d of %d ratios agree, want 2 of 2; %.4f would not by chance", agree, all, apart)
	}
}
