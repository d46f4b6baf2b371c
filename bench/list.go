package main

import (
	"fmt"
	"maps"
	"slices"
	"strings"
)

type listCommand struct{}

// Run lists.
func (*listCommand) Run() error {
	fmt.Println("suites:")
	for _, s := range suites {
		fmt.Printf("  %-28s %s\n", s.Name, s.Title)
	}
	fmt.Println("servers (@N for N event loops), and the families of workloads that they serve:")
	for _, e := range registry {
		fmt.Printf("  %-28s %s\n", e.name, strings.Join(slices.Sorted(maps.Keys(e.does)), ", "))
	}
	fmt.Println("workloads:")
	for _, w := range workloads {
		fmt.Printf("  %-28s %s: %s\n", w.Name, w.Family, w.Title)
	}
	fmt.Println("modes:")
	for _, name := range modeNames {
		fmt.Printf("  %-28s %s\n", name, modeTitles[name])
	}
	return nil
}
