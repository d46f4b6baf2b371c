// Command server runs one of the servers that the benchmark compares. It is a
// separate program for a reason: the size of a program decides when its first
// garbage collection runs, which would show in the memory of idle connections.
//
//	server FAMILY NAME ADDRESS LOOPS
package main

import (
	"errors"
	"fmt"
	"os"
	"slices"
	"strconv"

	"github.com/rondo-go/rondo/bench/serve"
)

func main() {
	if err := run(os.Args[1:]); err != nil {
		fmt.Fprintf(os.Stderr, "server: %v\n", err)
		os.Exit(1)
	}
}

// run serves until the process is killed.
func run(args []string) error {
	if len(args) != 4 {
		return errors.New("usage: server FAMILY NAME ADDRESS LOOPS")
	}
	family, name, address := args[0], args[1], args[2]
	loops, err := strconv.Atoi(args[3])
	if err != nil || loops < 1 {
		return fmt.Errorf("LOOPS is %q: want a number of at least 1", args[3])
	}
	i := slices.IndexFunc(serve.Libraries, func(l serve.Library) bool { return l.Name == name })
	if i < 0 || serve.Libraries[i].Do[family] == nil {
		return fmt.Errorf("no server %q of family %q", name, family)
	}
	return serve.Libraries[i].Do[family](address, loops)
}
