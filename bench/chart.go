package main

import (
	"fmt"
	"image/color"
	"os"
	"path/filepath"
	"slices"

	"gonum.org/v1/plot"
	"gonum.org/v1/plot/plotter"
	"gonum.org/v1/plot/vg"
	"gonum.org/v1/plot/vg/draw"
)

// A chart shows the ratios of a metric with their intervals.
type chart struct {
	suite, metric, title string
	workloads            []string
}

// charts are all charts. Each is a file SUITE-METRIC.svg.
var charts = []chart{
	{"peers", "rate", "Messages a second, pinned, to a bare C epoll server", []string{"echo-64-50", "echo-64-1000", "echo-64-10000"}},
	{"redis", "cpu", "CPU time of the server for each command, pinned, to redis-server (less is better)", []string{"set-p1", "set-p32", "get-p32"}},
}

var colours = []color.Color{color.NRGBA{0, 90, 181, 255}, color.NRGBA{220, 90, 0, 255}, color.NRGBA{0, 140, 90, 255}}

func (l library) drawAll(dir string) error {
	for _, c := range charts {
		if l[c.suite] == nil {
			continue
		}
		if err := l.draw(c, filepath.Join(dir, c.suite+"-"+c.metric+".svg")); err != nil {
			return fmt.Errorf("chart of suite %s: %w", c.suite, err)
		}
	}
	return nil
}

// points are ratios with intervals, each at a height.
type points struct {
	plotter.XYs
	plotter.XErrors
}

func (l library) draw(c chart, file string) error {
	p := plot.New()
	p.Title.Text, p.X.Label.Text = c.title, "ratio; lines are 95% intervals, of five repetitions and more"
	p.X.Min, p.Legend.Top = 0, false
	var servers []string
	for _, x := range slices.Backward(l[c.suite].Rows) {
		if !slices.Contains(servers, x.Server) {
			servers = append(servers, x.Server)
		}
	}
	p.NominalY(servers...)
	for i, w := range c.workloads {
		var at points
		for y, s := range servers {
			x := l[c.suite].row(w, s)
			if x == nil {
				continue
			}
			if r := x.ratio(c.metric, -1); r.N > 0 {
				at.XYs = append(at.XYs, plotter.XY{X: r.Median, Y: float64(y) + 0.2*float64(len(c.workloads)/2-i)})
				at.XErrors = append(at.XErrors, struct{ Low, High float64 }{r.Low - r.Median, r.High - r.Median})
			}
		}
		if len(at.XYs) == 0 {
			continue
		}
		dots, err := plotter.NewScatter(at.XYs)
		if err != nil {
			return err
		}
		dots.GlyphStyle = draw.GlyphStyle{Color: colours[i%len(colours)], Radius: vg.Points(2.5), Shape: draw.CircleGlyph{}}
		lines, err := plotter.NewXErrorBars(at)
		if err != nil {
			return err
		}
		lines.LineStyle.Color = colours[i%len(colours)]
		p.Add(dots, lines)
		p.Legend.Add(w, dots)
	}
	one, err := plotter.NewLine(plotter.XYs{{X: 1, Y: -0.5}, {X: 1, Y: float64(len(servers)) - 0.5}})
	if err != nil {
		return err
	}
	one.LineStyle.Color = color.Gray{170}
	p.Add(one)
	svg, err := p.WriterTo(17*vg.Centimeter, vg.Length(2+len(servers))*0.9*vg.Centimeter, "svg")
	if err != nil {
		return err
	}
	f, err := os.Create(file)
	if err != nil {
		return err
	}
	defer f.Close()
	_, err = svg.WriteTo(f)
	return err
}
