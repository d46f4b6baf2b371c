package main

import (
	"fmt"
	"maps"
	"slices"
	"strings"
)

// render writes the results as Markdown: what was compared, and charts and
// details by their names, which get a prefix, the directory they are in.
func render(r *results, charts []string, prefix string) string {
	var b strings.Builder
	b.WriteString(when(r))
	for i := range r.Suites {
		s := &r.Suites[i]
		fmt.Fprintf(&b, "\n### %s\n", s.Title)
		if s.Text != "" {
			fmt.Fprintf(&b, "\n%s\n", s.Text)
		}
		for _, mode := range s.Modes {
			fmt.Fprintf(&b, "\n#### %s: %s\n", strings.ToUpper(mode[:1])+mode[1:], modeTitles[mode])
			for _, v := range s.views {
				for _, family := range s.families() {
					v.write(&b, r, s, mode, family)
				}
				if name := v.file(s, mode); slices.Contains(charts, name) {
					fmt.Fprintf(&b, "\n![%s](%s%s.svg)\n", name, prefix, name)
				}
			}
		}
		writeGrowth(&b, r, s)
		fmt.Fprintf(&b, "\n[All figures](%s%s)\n", prefix, detailsFile(s))
	}
	return b.String()
}

// when tells when, where and how the run was made.
func when(r *results) string {
	var b strings.Builder
	days := r.Began.Format("2 January 2006")
	if end := r.Ended.Format("2 January 2006"); end != days && !r.Ended.IsZero() {
		days += " to " + end
	}
	fmt.Fprintf(&b, "%s; %s.\n", days, r.Machine)
	times := "repetitions"
	if r.Repetitions == 1 {
		times = "repetition"
	}
	fmt.Fprintf(&b, "%d %s of %g s after %g s of warm-up.", r.Repetitions, times, r.Seconds, r.Warmup)
	for i, name := range slices.Sorted(maps.Keys(r.Machine.Versions)) {
		fmt.Fprintf(&b, "%s %s %s", map[bool]string{true: " Versions:", false: ","}[i == 0], name, r.Machine.Versions[name])
	}
	b.WriteString(".\n")
	disturbed := 0
	for _, x := range r.Runs {
		if x.Others > tooMuch {
			disturbed++
		}
	}
	if disturbed > 0 {
		fmt.Fprintf(&b, "\nDuring %d of %d runs other processes used more than %s of a CPU.\n", disturbed, len(r.Runs), percent(tooMuch))
	}
	for _, n := range r.Notes {
		fmt.Fprintf(&b, "\n**%s**\n", n)
	}
	return b.String()
}

// families are those of the suite's workloads.
func (s *suite) families() []string {
	var list []string
	for _, w := range s.Workloads {
		if !slices.Contains(list, w.Family) {
			list = append(list, w.Family)
		}
	}
	return list
}

// write writes a table of servers and a family's workloads, if there are
// figures for one.
func (v view) write(b *strings.Builder, r *results, s *suite, mode, family string) {
	if v.table == noTable {
		return
	}
	var list []workload
	cells := map[[2]string]string{} // server, workload
	base := ""
	for _, w := range s.Workloads {
		if w.Family != family {
			continue
		}
		if bases := s.bases(w); len(bases) > 0 {
			base = bases[0]
		}
		some := false
		for _, x := range r.of(s.Name, mode, w.Name) {
			cell := v.cell(x, base)
			some = some || cell != ""
			if x.Failed == x.Runs {
				cell = "failed"
			}
			cells[[2]string{x.Server, w.Name}] = cell
		}
		if some {
			list = append(list, w)
		}
	}
	if len(list) == 0 {
		return
	}
	fmt.Fprintf(b, "\n%s:\n\n| server |", v.heading(list[0], base))
	for _, w := range list {
		fmt.Fprintf(b, " %s |", w.Name)
	}
	b.WriteString("\n|---|" + strings.Repeat("---:|", len(list)) + "\n")
	for _, server := range s.Servers {
		line, some := "| "+server+" |", false
		for _, w := range list {
			cell := cells[[2]string{server, w.Name}]
			some = some || cell != ""
			line += " " + cell + " |"
		}
		if some {
			b.WriteString(line + "\n")
		}
	}
}

// heading says what the table shows.
func (v view) heading(w workload, base string) string {
	text := inUnit(v.title, w.Unit)
	if v.table == ratios {
		text = v.metric.name(w)
	}
	if v.beside != nil {
		text += ", and in brackets " + v.beside.name(w)
	}
	if v.table == ratios {
		text += ", as ratios to " + base
	}
	return text
}

// name is the metric's title for a workload.
func (m metric) name(w workload) string { return inUnit(m.title, w.Unit) }

func inUnit(title, unit string) string { return strings.ReplaceAll(title, "%s", unit) }

func (v view) cell(x summary, base string) string {
	m := x.Values
	show := func(metric metric) string { return orNone(m.median(metric), metric.show) }
	if v.table == ratios {
		m = x.Ratios[base]
		show = func(metric metric) string { return ratioText(m, metric) }
	}
	cell := show(v.metric)
	if v.beside != nil && cell != "" {
		if second := show(*v.beside); second != "" {
			cell += " (" + second + ")"
		}
	}
	return cell
}

// ratioText marks a ratio that may as well be 1.
func ratioText(m middle, metric metric) string {
	v := m.median(metric)
	if v != 0 && v != 1 && m.even(metric) {
		return "≈" + two(v)
	}
	return orNone(v, two)
}

// writeGrowth compares the CPU time under one workload with that under another.
func writeGrowth(b *strings.Builder, r *results, s *suite) {
	for _, pair := range s.growth {
		var rows []string
		for _, server := range s.Servers {
			row, some := "| "+server+" |", false
			for _, mode := range s.Modes {
				of := func(workload string) map[int]float64 {
					var runs []run
					for _, x := range r.Runs {
						if x.Suite == s.Name && x.Mode == mode && x.Workload == workload && x.Server == server {
							runs = append(runs, x)
						}
					}
					return byRepetition(runs, cpu)
				}
				low, median, high := quartiles(pairedRatios(of(pair[1]), of(pair[0])))
				some = some || median > 0
				row += " " + orNone(median, func(v float64) string { return fmt.Sprintf("%.2f (%.2f–%.2f)", v, low, high) }) + " |"
			}
			if some {
				rows = append(rows, row+"\n")
			}
		}
		if len(rows) > 0 {
			fmt.Fprintf(b, "\nCPU time of a message under %s as a ratio to that under %s, and quartiles:\n\n| server | %s |\n|---|%s\n%s",
				pair[1], pair[0], strings.Join(s.Modes, " | "), strings.Repeat("---:|", len(s.Modes)), strings.Join(rows, ""))
		}
	}
}

func orNone(v float64, show func(float64) string) string {
	if v == 0 {
		return ""
	}
	return show(v)
}
