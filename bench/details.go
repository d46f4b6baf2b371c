package main

import (
	"fmt"
	"slices"
	"strings"
)

func detailsFile(s *suite) string { return s.Name + ".md" }

// renderDetails writes all figures of a suite as Markdown, a table for each
// workload and mode.
func renderDetails(r *results, s *suite) string {
	var b strings.Builder
	fmt.Fprintf(&b, "# %s: all figures\n\n%s", s.Title, when(r))
	b.WriteString("\nValues are medians, ± half the distance between the quartiles. Ratios are medians too, with the quartiles in brackets.\n")
	for _, mode := range s.Modes {
		fmt.Fprintf(&b, "\n## %s: %s\n", strings.ToUpper(mode[:1])+mode[1:], modeTitles[mode])
		for _, w := range s.Workloads {
			details(&b, w, s.bases(w), r.of(s.Name, mode, w.Name))
		}
	}
	return b.String()
}

// A column of a workload's table. show gives "" where a summary has no value;
// a column without any is left out.
type column struct {
	title string
	show  func(summary) string
}

// columns of a workload's table.
func columns(w workload, bases []string) []column {
	var list []column
	for _, m := range metrics {
		list = append(list, column{m.name(w), func(s summary) string { return valueText(s, m) }})
		for i, base := range bases {
			if m.compared && i <= 1 {
				list = append(list, column{"÷ " + base, func(s summary) string { return rangeText(s.Ratios[base], m) }})
			}
		}
	}
	return list
}

// valueText shows a median, and how far the quartiles are apart where there are
// enough repetitions to say.
func valueText(s summary, m metric) string {
	v := s.Values.median(m)
	if v == 0 || s.Runs-s.Failed < 3 || !m.compared {
		return orNone(v, m.show)
	}
	return m.show(v) + " ±" + percent(s.Values.half(m))
}

func rangeText(m middle, metric metric) string {
	if m.median(metric) == 0 || *metric.of(&m.Low) == *metric.of(&m.High) {
		return orNone(m.median(metric), two)
	}
	return fmt.Sprintf("%.2f (%.2f–%.2f)", m.median(metric), *metric.of(&m.Low), *metric.of(&m.High))
}

// details is a workload's table.
func details(b *strings.Builder, w workload, bases []string, list []summary) {
	if len(list) == 0 {
		return
	}
	fmt.Fprintf(b, "\n### %s: %s\n\n", w.Name, detailTitle(w, list))
	shown := slices.DeleteFunc(columns(w, bases), func(c column) bool {
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
		if s.Disturbed > 0 {
			fmt.Fprintf(b, "\n%s: %d of %d runs were disturbed, and are left out.\n", s.Server, s.Disturbed, s.Runs)
		}
		if s.Failed > 0 {
			fmt.Fprintf(b, "\n%s failed %d of %d times: %s\n", s.Server, s.Failed, s.Runs, s.Error)
		}
	}
}

// detailTitle tells the connections too where there were fewer than planned.
func detailTitle(w workload, list []summary) string {
	for _, s := range list {
		if n := s.Values.Median.Connections; n > 1 && (w.Name == "idle" || w.Family == "completions") {
			return fmt.Sprintf("%s, %s", w.Title, connsText(n))
		}
	}
	return w.Title
}
