package main

import (
	"fmt"
	"strings"
)

type listCommand struct{}

// Run lists.
func (*listCommand) Run() error {
	fmt.Println("servers (@N for N event loops):")
	for _, name := range serverNames {
		var families []string
		for _, f := range []string{"echo", "redis"} {
			if (server{base: name}).serves(f) {
				families = append(families, f)
			}
		}
		fmt.Printf("  %-18s %s\n", name, strings.Join(families, ", "))
	}
	fmt.Println("workloads:")
	for _, w := range workloads {
		fmt.Printf("  %-18s %s\n", w.Name, w.Title)
	}
	fmt.Println("modes:")
	for _, name := range modeNames {
		fmt.Printf("  %-18s %s\n", name, modeTitles[name])
	}
	return nil
}
