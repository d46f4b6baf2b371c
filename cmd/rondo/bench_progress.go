package main

import (
	"fmt"
	"os"
	"strings"

	"github.com/rondo-go/rondo/internal/load"
)

// progress shows the state of a load: on a terminal in one line, otherwise in a
// new line each time.
type progress struct {
	file     *os.File
	name     string
	conns    int
	terminal bool
	silent   bool
	width    int // of the shown line
}

func newProgress(file *os.File, json bool, name string, conns int) *progress {
	info, err := file.Stat()
	terminal := err == nil && info.Mode()&os.ModeCharDevice != 0
	return &progress{file: file, name: name, conns: conns, terminal: terminal, silent: json && !terminal}
}

func (p *progress) show(s load.Progress) {
	if p.silent {
		return
	}
	line := p.name + ": " + progressText(s, p.conns)
	if !p.terminal {
		fmt.Fprintln(p.file, line)
		return
	}
	fmt.Fprintf(p.file, "\r%s%s", line, strings.Repeat(" ", max(0, p.width-len(line))))
	p.width = len(line)
}

func progressText(s load.Progress, conns int) string {
	switch s.Phase {
	case load.Connecting:
		return fmt.Sprintf("connecting, %d of %d connections are ready", s.Ready, conns)
	case load.WarmingUp:
		return fmt.Sprintf("warming up, %.0f requests/s", s.Rate)
	}
	line := fmt.Sprintf("%.0f s, %.0f requests/s", s.Elapsed.Seconds(), s.Rate)
	if s.P99 > 0 {
		line += ", p99 " + timeText(micros(s.P99))
	}
	return line
}

// end clears the line for the results.
func (p *progress) end() {
	if p.terminal && p.width > 0 {
		fmt.Fprintf(p.file, "\r%s\r", strings.Repeat(" ", p.width))
	}
}
