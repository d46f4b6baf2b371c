package main

import (
	"fmt"
	"os"
	"path/filepath"
)

// write puts a run's results into a directory, and where update says.
func write(res *results, dir, update string) error {
	if err := os.MkdirAll(dir, 0o777); err != nil {
		return err
	}
	if err := res.save(filepath.Join(dir, "results.json")); err != nil {
		return err
	}
	text, err := writeAll(res, dir, "")
	if err != nil {
		return err
	}
	name := filepath.Join(dir, "results.md")
	if err := os.WriteFile(name, []byte(text), 0o666); err != nil {
		return err
	}
	fmt.Println(name)
	if update == "docs" {
		return updateDocs(res, filepath.Join("..", "docs"))
	}
	return nil
}

// reportCommand renders again.
type reportCommand struct {
	Results string `arg:"" help:"A results.json." default:"out/results.json" placeholder:"FILE"`
	Out     string `help:"Directory to write to." default:"out" placeholder:"DIR"`
	Update  string `help:"docs: also put the results into ../docs/benchmarks.md." enum:",docs" default:"" placeholder:"docs"`
}

// Run writes.
func (c *reportCommand) Run() error {
	res, err := loadResults(c.Results)
	if err != nil {
		return err
	}
	return write(res, c.Out, c.Update)
}
