package main

import (
	"bytes"
	"fmt"
	"image/color"
	"os"
	"path/filepath"
	"strings"

	"gonum.org/v1/plot"
	"gonum.org/v1/plot/font"
	"gonum.org/v1/plot/text"
	"gonum.org/v1/plot/vg"
	"gonum.org/v1/plot/vg/draw"
	"gonum.org/v1/plot/vg/vgimg"
	"gonum.org/v1/plot/vg/vgsvg"
)

// A chart is a figure of some workloads in one mode, a panel for each.
type chart struct {
	name   string // of its files, without extension
	title  string
	foot   string // machine and date
	panels []panel
}

// A panel has a bar for each server.
type panel struct {
	title string
	bars  []bar
}

type bar struct {
	label, text      string
	value, low, high float64
	color            color.Color
}

// drawCharts writes each chart as SVG and PNG to dir, and returns their names.
func drawCharts(r *results, dir string) ([]string, error) {
	var names []string
	for i := range r.Suites {
		s := &r.Suites[i]
		for _, mode := range s.Modes {
			for _, v := range s.views {
				c := v.chart(r, s, mode)
				if v.name == "" || len(c.panels) == 0 {
					continue
				}
				if err := c.save(dir); err != nil {
					return nil, err
				}
				names = append(names, c.name)
			}
		}
	}
	return names, nil
}

// file is the name of a view's chart, without extension.
func (v view) file(s *suite, mode string) string { return s.Name + "-" + v.name + "-" + mode }

func (v view) chart(r *results, s *suite, mode string) chart {
	unit := s.Workloads[0].Unit
	for _, w := range s.Workloads {
		if w.Unit != unit {
			unit = "request" // of whatever kind
		}
	}
	c := chart{
		name:  v.file(s, mode),
		title: inUnit(v.title, unit) + "; " + modeTitles[mode],
		foot:  r.Began.Format("2 January 2006") + "; " + r.Machine.String() + ". Bars: medians; lines: the middle half of the repetitions.",
	}
	for _, w := range s.Workloads {
		p := panel{title: w.Title}
		for _, x := range r.of(s.Name, mode, w.Name) {
			if value := x.Values.median(v.metric); value > 0 {
				low, high := *v.metric.of(&x.Values.Low), *v.metric.of(&x.Values.High)
				p.bars = append(p.bars, bar{x.Server, v.metric.show(value), value, low, high, barColor(x.Server)})
			}
		}
		if len(p.bars) > 0 {
			c.panels = append(c.panels, p)
		}
	}
	return c
}

// barColor sets rondo apart, and what servers are measured against.
func barColor(server string) color.Color {
	switch {
	case strings.HasPrefix(server, "rondo-"):
		return color.RGBA{0xd9, 0x5f, 0x0e, 0xff}
	case strings.HasPrefix(server, "c-"), server == redisServer:
		return color.RGBA{0x9a, 0x9a, 0x9a, 0xff}
	}
	return color.RGBA{0x8d, 0xa9, 0xc4, 0xff}
}

// Sizes of a chart.
const (
	columnsOfPanels = 3
	margin          = 14 * vg.Length(1)
	panelWidth      = 272 * vg.Length(1)
	labelWidth      = 100 * vg.Length(1)
	valueWidth      = 50 * vg.Length(1) // for the figure behind the longest bar
	lineHeight      = 14 * vg.Length(1)
	titleSize       = 11
	textSize        = 9
)

func (c *chart) size() (w, h vg.Length) {
	across := min(columnsOfPanels, len(c.panels))
	w = max(margin+vg.Length(across)*(panelWidth+margin), textWidth(c.title, titleSize)+2*margin, textWidth(c.foot, textSize)+2*margin)
	h = 2*margin + 3*lineHeight
	for first := 0; first < len(c.panels); first += columnsOfPanels {
		h += c.rowHeight(first) + lineHeight
	}
	return w, h
}

// rowHeight is the height of the row of panels that begins with one.
func (c *chart) rowHeight(first int) vg.Length {
	most := 0
	for _, p := range c.panels[first:min(first+columnsOfPanels, len(c.panels))] {
		most = max(most, len(p.bars))
	}
	return vg.Length(most+1) * lineHeight
}

func (c *chart) draw(canvas draw.Canvas) {
	w, h := canvas.Max.X, canvas.Max.Y
	fill(canvas, 0, 0, w, h, color.White)
	putText(canvas, margin, h-margin-titleSize, c.title, titleSize, draw.XLeft)
	putText(canvas, margin, margin, c.foot, textSize, draw.XLeft)
	top := h - margin - 2*lineHeight
	for i, p := range c.panels {
		p.draw(canvas, margin+vg.Length(i%columnsOfPanels)*(panelWidth+margin), top)
		if i%columnsOfPanels == columnsOfPanels-1 {
			top -= c.rowHeight(i-i%columnsOfPanels) + lineHeight
		}
	}
}

// draw draws the panel below and right of a point.
func (p *panel) draw(canvas draw.Canvas, left, top vg.Length) {
	const thick = 0.7 * lineHeight
	longest := 0.0
	for _, b := range p.bars {
		longest = max(longest, b.value, b.high)
	}
	const room = panelWidth - labelWidth - valueWidth
	length := func(value float64) vg.Length { return room * vg.Length(value/longest) }
	putText(canvas, left+labelWidth, top-textSize, p.title, textSize, draw.XLeft)
	for i, b := range p.bars {
		y := top - vg.Length(i+1)*lineHeight - thick
		zero := left + labelWidth
		fill(canvas, zero, y, zero+length(b.value), y+thick, b.color)
		fill(canvas, zero+length(b.low), y+thick/2-0.5, zero+length(b.high), y+thick/2+0.5, color.Black)
		putText(canvas, zero-4, y+2, b.label, textSize, draw.XRight)
		putText(canvas, zero+length(max(b.value, b.high))+3, y+2, b.text, textSize, draw.XLeft)
	}
}

func fill(canvas draw.Canvas, x0, y0, x1, y1 vg.Length, c color.Color) {
	canvas.FillPolygon(c, []vg.Point{{X: x0, Y: y0}, {X: x1, Y: y0}, {X: x1, Y: y1}, {X: x0, Y: y1}})
}

func style(size vg.Length) text.Style {
	return text.Style{
		Color:   color.Black,
		Font:    font.From(font.Font{Typeface: "Liberation", Variant: "Sans"}, size),
		Handler: plot.DefaultTextHandler,
	}
}

// putText writes one line, at its base line.
func putText(canvas draw.Canvas, x, y vg.Length, s string, size vg.Length, align text.XAlignment) {
	st := style(size)
	st.XAlign = align
	canvas.FillText(st, vg.Point{X: x, Y: y}, s)
}

func textWidth(s string, size vg.Length) vg.Length { return style(size).Width(s) }

// save writes NAME.svg and NAME.png.
func (c *chart) save(dir string) error {
	w, h := c.size()
	for extension, canvas := range map[string]interface {
		vg.CanvasSizer
		vg.CanvasWriterTo
	}{
		".svg": vgsvg.New(w, h),
		".png": vgimg.PngCanvas{Canvas: vgimg.NewWith(vgimg.UseWH(w, h), vgimg.UseDPI(144))},
	} {
		c.draw(draw.New(canvas))
		var b bytes.Buffer
		if _, err := canvas.WriteTo(&b); err != nil {
			return fmt.Errorf("chart %s%s: %w", c.name, extension, err)
		}
		file := b.Bytes()
		if extension == ".svg" {
			// Where Liberation Sans is missing, Arial and Helvetica are as wide.
			file = bytes.ReplaceAll(file, []byte("Liberation Sans;"), []byte("Liberation Sans,Arial,Helvetica,sans-serif;"))
		}
		if err := os.WriteFile(filepath.Join(dir, c.name+extension), file, 0o666); err != nil {
			return err
		}
	}
	return nil
}
