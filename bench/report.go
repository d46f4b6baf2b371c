package main

import (
	"bytes"
	"errors"
	"fmt"
	"io/fs"
	"iter"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"text/template"
)

type reportCommand struct {
	Docs string `help:"Root of the documents: README.md, docs, and docs/benchmarks with the results files." default:".." type:"path" placeholder:"DIR"`
}

// Help is the end of "bench report --help".
func (*reportCommand) Help() string {
	return `A figure in the documents stands in a block: a comment with a template, and the template's output.

  <!-- bench
  50 connections: {{ratio "peers" "echo-64-50" "rondo-epoll" "rate"}}
  -->
  50 connections: 0.98 (0.97–0.99)
  <!-- /bench -->

Functions: ratio and value (SUITE WORKLOAD SERVER METRIC), best and least of the peers (SUITE WORKLOAD METRIC), ratios and values (SUITE METRIC) as tables, about (SUITE), workloads (NAMES...) with their titles. A test of this module fails if a block differs from its template's output.`
}

// Run writes blocks and charts.
func (c *reportCommand) Run() error {
	files, err := documents(c.Docs)
	if err != nil {
		return err
	}
	dir := filepath.Join(c.Docs, "docs/benchmarks")
	all, err := allResults(dir)
	if err != nil {
		return err
	}
	for _, file := range files {
		old, err := os.ReadFile(file)
		if err != nil {
			return err
		}
		text, err := all.render(string(old))
		if err != nil {
			return fmt.Errorf("%s: %w", file, err)
		}
		if text != string(old) {
			if err := os.WriteFile(file, []byte(text), 0o666); err != nil {
				return err
			}
		}
	}
	return all.drawAll(dir)
}

// documents returns the files that may have blocks.
func documents(root string) (files []string, err error) {
	err = filepath.WalkDir(root, func(path string, d fs.DirEntry, err error) error {
		if err == nil && strings.HasSuffix(path, ".md") && !d.IsDir() {
			files = append(files, path)
		}
		return err
	})
	return files, err
}

// A library holds results by suite. Its methods for templates panic if a
// suite's results lack a figure; the template's error reports that. For a suite
// without results they return a dash.
type library map[string]*results

func allResults(dir string) (library, error) {
	files, err := filepath.Glob(filepath.Join(dir, "*.json"))
	l := library{}
	for _, file := range files {
		res, err := loadResults(file)
		if err != nil {
			return nil, err
		}
		l[res.Suite] = res
	}
	return l, err
}

// none stands for a figure that was not measured.
const none = "-"

var block = regexp.MustCompile(`(?s)(<!-- bench\n(.*?)-->\n)(.*?)(<!-- /bench -->)`)

// render renews the blocks of a text.
func (l library) render(text string) (string, error) {
	var failed error
	functions := template.FuncMap{"ratio": l.ratio, "value": l.value, "best": l.best, "least": l.least,
		"ratios": l.ratios, "values": l.values, "about": l.about, "workloads": titles}
	text = block.ReplaceAllStringFunc(text, func(b string) string {
		parts := block.FindStringSubmatch(b)
		var out bytes.Buffer
		t, err := template.New("block").Funcs(functions).Parse(parts[2])
		if err == nil {
			err = t.Execute(&out, nil)
		}
		failed = errors.Join(failed, err)
		return parts[1] + out.String() + parts[4]
	})
	return text, failed
}

func (l library) ratio(suite, workload, server, metric string) ratio {
	if l[suite] == nil {
		return ratio{}
	}
	x := l[suite].row(workload, server)
	if x == nil || len(x.Session) > 0 && len(x.Ratio[metric]) == 0 {
		panic(fmt.Errorf("suite %s has no %s of %s under %s", suite, metric, server, workload))
	}
	return x.ratio(metric, -1)
}

// value returns a median of a server, or of the base.
func (l library) value(suite, workload, server, metric string) string {
	if l[suite] == nil {
		return none
	}
	for _, x := range l[suite].Rows {
		if x.Workload == workload && (x.Server == server || x.Base == server) {
			if text := shown(x.value(metric, x.Base == server)); text != "" {
				return text
			}
		}
	}
	panic(fmt.Errorf("suite %s has no %s of %s under %s", suite, metric, server, workload))
}

// shown writes three digits, or more if there are more before the point.
func shown(v float64, ok bool) string {
	switch {
	case !ok:
		return ""
	case v >= 100:
		return thousands(v)
	case v >= 10:
		return fmt.Sprintf("%.1f", v)
	}
	return fmt.Sprintf("%.2f", v)
}

// peers returns the rows of a workload, without those of rondo and of the
// limit.
func (l library) peers(suite, workload string) (rows []*row) {
	if l[suite] == nil {
		return nil
	}
	for _, x := range l[suite].Rows {
		if x.Workload == workload && !strings.HasPrefix(x.Server, "rondo") && !strings.HasPrefix(x.Server, "c-") {
			rows = append(rows, x)
		}
	}
	return rows
}

// best returns the best peer by a metric. Less is better, except for the rate.
func (l library) best(suite, workload, metric string) string {
	name, found := "", ratio{}
	for _, x := range l.peers(suite, workload) {
		if r := x.ratio(metric, -1); r.N > 0 && (name == "" || (r.Median > found.Median) == (metric == "rate")) {
			name, found = x.Server, r
		}
	}
	return strings.TrimSpace(fmt.Sprintf("%s %v", name, found))
}

// least returns the peer with the smallest value of a metric.
func (l library) least(suite, workload, metric string) string {
	name, found := "", 0.0
	for _, x := range l.peers(suite, workload) {
		if v, ok := x.value(metric, false); ok && (name == "" || v < found) {
			name, found = x.Server, v
		}
	}
	if name == "" {
		return none
	}
	return name + "'s " + shown(found, true)
}

// titles yields workloads with their titles.
func titles(names ...string) iter.Seq2[string, string] {
	return func(yield func(name, title string) bool) {
		for _, name := range names {
			if w, err := workloadOf(name); err != nil || !yield(name, w.Title) {
				return
			}
		}
	}
}

// ratios returns a table of a metric's ratios to the base.
func (l library) ratios(suite, metric string) string {
	return l.table(suite, nil, func(x *row) string {
		if r := x.ratio(metric, -1); r.N > 0 {
			return r.String()
		}
		return ""
	})
}

// values returns a table of a metric's medians, the base first.
func (l library) values(suite, metric string) string {
	return l.table(suite, func(x *row) string { return shown(x.value(metric, true)) },
		func(x *row) string { return shown(x.value(metric, false)) })
}

// mostColumns is the largest number of workloads that a table has side by side.
const mostColumns = 8

// table returns a table with a row for each server, and one for the base if base is not nil,
// and a column for each workload with at least one figure. If these are many, it is turned.
func (l library) table(suite string, base, cell func(*row) string) string {
	res := l[suite]
	if res == nil {
		return none
	}
	head, servers := []string{""}, []string{}
	if base == nil {
		head[0] = "to " + res.Rows[0].Base
	}
	for _, x := range res.Rows {
		if !slices.Contains(head, x.Workload) && slices.ContainsFunc(res.Rows, func(y *row) bool { return y.Workload == x.Workload && cell(y) != "" }) {
			head = append(head, x.Workload)
		}
		if !slices.Contains(servers, x.Server) {
			servers = append(servers, x.Server)
		}
	}
	cells := [][]string{head}
	line := func(name, server string, cell func(*row) string) {
		texts := []string{name}
		for _, w := range head[1:] {
			x, said := res.row(w, server), "-"
			switch {
			case x != nil && cell(x) != "":
				said = cell(x)
			case x != nil && x.Error != "":
				said = "failed"
			}
			texts = append(texts, said)
		}
		cells = append(cells, texts)
	}
	if base != nil {
		line(res.Rows[0].Base, servers[0], base)
	}
	for _, s := range servers {
		line(s, s, cell)
	}
	if len(head) > mostColumns+1 {
		cells = turned(cells)
	}
	return markdown(cells)
}

// turned exchanges rows and columns.
func turned(cells [][]string) [][]string {
	out := make([][]string, len(cells[0]))
	for _, texts := range cells {
		for i, text := range texts {
			out[i] = append(out[i], text)
		}
	}
	return out
}

// markdown writes a table, whose first line is its head.
func markdown(cells [][]string) string {
	rule := "|---|" + strings.Repeat("---:|", len(cells[0])-1)
	var lines []string
	for i, texts := range cells {
		lines = append(lines, "| "+strings.Join(texts, " | ")+" |")
		if i == 0 {
			lines = append(lines, rule)
		}
	}
	return strings.Join(lines, "\n")
}

// about says how a suite was measured, and whether its sessions agree.
func (l library) about(suite string) string {
	res := l[suite]
	if res == nil {
		return "Not measured yet: go run . " + suite
	}
	least, most := 1<<30, 0
	for _, x := range res.Rows {
		least, most = min(least, len(x.Session)), max(most, len(x.Session))
	}
	repetitions := fmt.Sprint(least)
	if least < most {
		repetitions = fmt.Sprintf("%d to %d", least, most)
	}
	var versions, when []string
	for name, v := range res.Versions {
		versions = append(versions, name+" "+v)
	}
	slices.Sort(versions)
	for _, s := range res.Sessions {
		when = append(when, s.Began.Format("2 January 2006, 15:04 MST"))
	}
	text := fmt.Sprintf("%s. %s repetitions of each pair, begun on %s; rondo %s; %s; %s.", modeTitles[res.Mode], repetitions,
		strings.Join(when, "; "), res.Sessions[len(res.Sessions)-1].Rondo, res.Machine, strings.Join(versions, ", "))
	if agree, all, apart := res.agreement(); all > 0 {
		text += fmt.Sprintf(" Of %d ratios, %d have intervals that overlap in all sessions; if nothing but chance differed, it would be %.0f.",
			all, agree, float64(all)-apart)
	}
	return text
}

// agreement counts the ratios that more than one session has, and those among
// them whose intervals overlap in all sessions. apart is how many would not
// overlap by chance alone.
func (res *results) agreement() (agree, all int, apart float64) {
	chances := make(map[string]float64)
	for _, x := range res.Rows {
		for _, metric := range []string{"rate", "cpu"} {
			low, high, sizes := 0.0, 1e9, []int(nil)
			for s := range res.Sessions {
				if r := x.ratio(metric, s); r.N >= enough {
					low, high, sizes = max(low, r.Low), min(high, r.High), append(sizes, r.N)
				}
			}
			if len(sizes) < 2 {
				continue
			}
			all++
			if low <= high {
				agree++
			}
			kind := fmt.Sprint(sizes)
			if _, ok := chances[kind]; !ok {
				chances[kind] = apartByChance(sizes)
			}
			apart += chances[kind]
		}
	}
	return agree, all, apart
}
