package main

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
)

// What stands between the markers in docs/benchmarks.md is this program's.
const (
	beginMarker = "<!-- results: written by bench, do not edit -->"
	endMarker   = "<!-- end of results -->"
)

// updateDocs puts the results into dir/benchmarks.md, and the charts beside it
// in dir/benchmarks.
func updateDocs(res *results, dir string) error {
	name := filepath.Join(dir, "benchmarks.md")
	page, err := os.ReadFile(name)
	if err != nil {
		return fmt.Errorf("--update docs: %w: run this in the directory bench", err)
	}
	const charts = "benchmarks"
	if err := os.MkdirAll(filepath.Join(dir, charts), 0o777); err != nil {
		return err
	}
	drawn, err := drawCharts(res, filepath.Join(dir, charts))
	if err != nil {
		return err
	}
	updated, err := between(string(page), render(res, drawn, charts+"/"))
	if err != nil {
		return fmt.Errorf("%s: %w", name, err)
	}
	if err := os.WriteFile(name, []byte(updated), 0o666); err != nil {
		return err
	}
	fmt.Println(name)
	return nil
}

// between replaces what stands between the markers.
func between(page, text string) (string, error) {
	before, rest, begun := strings.Cut(page, beginMarker)
	_, after, ended := strings.Cut(rest, endMarker)
	if !begun || !ended {
		return "", fmt.Errorf("no markers: want a line %q and later a line %q", beginMarker, endMarker)
	}
	return before + beginMarker + "\n\n" + text + "\n" + endMarker + after, nil
}
