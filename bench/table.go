package main

import (
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"
)

// A column of a workload's table. show gives "" where a summary has no value;
// a column without any is left out.
type column struct {
	title string
	show  func(summary) string
}

// columns of the tables of a family's workloads.
func columns(w workload) []column {
	of := func(show func(float64) string, metric func(*figures) *float64) func(summary) string {
		return func(s summary) string { return orNone(*metric(&s.Median), show) }
	}
	ratio := func(base string, metric func(*figures) *float64) column {
		return column{"÷ " + base, func(s summary) string {
			f := s.Ratios[base]
			return orNone(*metric(&f), two)
		}}
	}
	base := bases[w.Family]
	rate, cpu := metrics[0], metrics[1]
	p50 := metrics[2]
	return []column{
		{w.Unit + "s/s", of(thousands, rate)},
		ratio(base[0], rate), ratio(base[1], rate),
		{"spread", func(s summary) string {
			if s.Runs-s.Failed < 2 {
				return ""
			}
			return fmt.Sprintf("%.0f%%", 100*s.Spread)
		}},
		{"CPU µs/" + w.Unit, of(two, cpu)},
		ratio(base[0], cpu), ratio(base[1], cpu),
		{"p50 µs", of(micros, p50)},
		ratio(base[0], p50),
		{"p90", of(micros, func(f *figures) *float64 { return &f.P90 })},
		{"p95", of(micros, func(f *figures) *float64 { return &f.P95 })},
		{"p99", of(micros, func(f *figures) *float64 { return &f.P99 })},
		{"p99.9", of(micros, func(f *figures) *float64 { return &f.P999 })},
		{"max", of(micros, func(f *figures) *float64 { return &f.Max })},
		{"B per idle connection", of(thousands, func(f *figures) *float64 { return &f.IdleBytes })},
		{"after an echo", of(thousands, func(f *figures) *float64 { return &f.EchoedBytes })},
		{"client busy", of(percent, func(f *figures) *float64 { return &f.ClientCPU })},
	}
}

// render writes the results as Markdown. Names of charts get a prefix, the
// directory they are in.
func render(r *results, charts []string, prefix string) string {
	var b strings.Builder
	fmt.Fprintf(&b, "%s; %s.\n", r.Date.Format("2 January 2006"), r.Machine)
	fmt.Fprintf(&b, "%d repetitions of %g s after %g s of warm-up.", r.Repetitions, r.Seconds, r.Warmup)
	for i, name := range slices.Sorted(maps.Keys(r.Machine.Versions)) {
		fmt.Fprintf(&b, "%s %s %s", map[bool]string{true: " Versions:", false: ","}[i == 0], name, r.Machine.Versions[name])
	}
	b.WriteString(".\n")
	for _, n := range r.Notes {
		fmt.Fprintf(&b, "\n**%s**\n", n)
	}
	for _, mode := range r.Modes {
		fmt.Fprintf(&b, "\n### %s: %s\n", strings.ToUpper(mode[:1])+mode[1:], modeTitles[mode])
		for _, family := range slices.Sorted(maps.Keys(bases)) {
			overview(&b, r, mode, family)
		}
		for _, c := range charts {
			if strings.HasSuffix(c, "-"+mode) {
				fmt.Fprintf(&b, "\n![%s](%s%s.svg)\n", c, prefix, c)
			}
		}
		for _, w := range r.Workloads {
			details(&b, w, r.of(mode, w.Name))
		}
	}
	return b.String()
}

// overview is a table of servers and a family's workloads: the rate as a ratio
// to the first base that took part, and in brackets the CPU time's.
func overview(b *strings.Builder, r *results, mode, family string) {
	var list []workload
	cells := map[[2]string]string{} // server, workload
	base := ""
	for _, name := range bases[family] {
		if base == "" && slices.Contains(r.Servers, name) {
			base = name
		}
	}
	for _, w := range r.Workloads {
		summaries := r.of(mode, w.Name)
		rated := func(s summary) bool { return s.Ratios[base].PerSecond > 0 }
		if w.Family != family || !slices.ContainsFunc(summaries, rated) {
			continue
		}
		list = append(list, w)
		for _, s := range summaries {
			cell := ""
			if ratio := s.Ratios[base]; s.Failed == s.Runs {
				cell = "failed"
			} else if rated(s) {
				cell = two(ratio.PerSecond) + orNone(ratio.CPU, func(v float64) string { return " (" + two(v) + ")" })
			}
			cells[[2]string{s.Server, w.Name}] = cell
		}
	}
	if len(list) == 0 {
		return
	}
	fmt.Fprintf(b, "\nRate, and in brackets CPU time, as a ratio to %s:\n\n| server |", base)
	for _, w := range list {
		fmt.Fprintf(b, " %s |", w.Name)
	}
	b.WriteString("\n|---|" + strings.Repeat("---|", len(list)) + "\n")
	for _, server := range r.Servers {
		line, any := "| "+server+" |", false
		for _, w := range list {
			cell := cells[[2]string{server, w.Name}]
			any = any || cell != ""
			line += " " + cell + " |"
		}
		if any {
			b.WriteString(line + "\n")
		}
	}
}

// details is a workload's table.
func details(b *strings.Builder, w workload, list []summary) {
	if len(list) == 0 {
		return
	}
	fmt.Fprintf(b, "\n#### %s: %s\n\n", w.Name, detailTitle(w, list))
	shown := slices.DeleteFunc(columns(w), func(c column) bool {
		return !slices.ContainsFunc(list, func(s summary) bool { return c.show(s) != "" })
	})
	head, rule := "| server |", "|---|"
	for _, c := range shown {
		head += " " + c.title + " |"
		rule += "---:|"
	}
	b.WriteString(head + "\n" + rule + "\n")
	for _, s := range list {
		line := "| " + s.Server + " |"
		for i, c := range shown {
			text := c.show(s)
			if i == 0 && s.Failed == s.Runs {
				text = "failed"
			}
			line += " " + text + " |"
		}
		b.WriteString(line + "\n")
	}
	for _, s := range list {
		if s.Failed > 0 {
			fmt.Fprintf(b, "\n%s failed %d of %d times: %s\n", s.Server, s.Failed, s.Runs, s.Error)
		}
	}
}

// detailTitle tells the connections too where there were fewer than planned.
func detailTitle(w workload, list []summary) string {
	for _, s := range list {
		if n := s.Median.Connections; n > 0 && w.Name == "idle" {
			return fmt.Sprintf("%s, %s", w.Title, connsText(n))
		}
	}
	return w.Title
}

func orNone(v float64, show func(float64) string) string {
	if v == 0 {
		return ""
	}
	return show(v)
}

func two(v float64) string     { return strconv.FormatFloat(v, 'f', 2, 64) }
func percent(v float64) string { return fmt.Sprintf("%.0f%%", 100*v) }

// micros shows three digits, and all of those before the point.
func micros(v float64) string {
	if v < 100 {
		return strconv.FormatFloat(v, 'f', 1, 64)
	}
	return thousands(v)
}

// thousands shows a rounded number with commas.
func thousands(v float64) string {
	s := strconv.FormatFloat(v, 'f', 0, 64)
	for i := len(s) - 3; i > 0 && s[i-1] != '-'; i -= 3 {
		s = s[:i] + "," + s[i:]
	}
	return s
}
