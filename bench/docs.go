package main

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
)

// What stands between the markers in docs/benchmarks.md is this program's, and
// so is the directory docs/benchmarks.
const (
	beginMarker = "<!-- results: written by bench, do not edit -->"
	endMarker   = "<!-- end of results -->"
)

// updateDocs puts the results into dir/benchmarks.md, and charts and details
// into dir/benchmarks.
func updateDocs(res *results, dir string) error {
	name := filepath.Join(dir, "benchmarks.md")
	page, err := os.ReadFile(name)
	if err != nil {
		return fmt.Errorf("--update docs: %w: run this in the directory bench", err)
	}
	const beside = "benchmarks"
	if err := removeOld(filepath.Join(dir, beside)); err != nil {
		return err
	}
	text, err := writeAll(res, filepath.Join(dir, beside), beside+"/")
	if err != nil {
		return err
	}
	updated, err := between(string(page), text)
	if err != nil {
		return fmt.Errorf("%s: %w", name, err)
	}
	if err := os.WriteFile(name, []byte(updated), 0o666); err != nil {
		return err
	}
	fmt.Println(name)
	return nil
}

// removeOld removes what an earlier run has left.
func removeOld(dir string) error {
	for _, pattern := range []string{"*.md", "*.svg", "*.png"} {
		names, err := filepath.Glob(filepath.Join(dir, pattern))
		if err != nil {
			return err
		}
		for _, name := range names {
			if err := os.Remove(name); err != nil {
				return err
			}
		}
	}
	return nil
}

// writeAll writes charts and details to dir, and returns the page about them,
// which calls them by the prefix.
func writeAll(res *results, dir, prefix string) (string, error) {
	if err := os.MkdirAll(dir, 0o777); err != nil {
		return "", err
	}
	charts, err := drawCharts(res, dir)
	if err != nil {
		return "", err
	}
	for i := range res.Suites {
		s := &res.Suites[i]
		if err := os.WriteFile(filepath.Join(dir, detailsFile(s)), []byte(renderDetails(res, s)), 0o666); err != nil {
			return "", err
		}
	}
	return render(res, charts, prefix), nil
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
