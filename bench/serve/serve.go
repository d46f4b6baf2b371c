// Package serve holds the Go servers that the benchmark compares: for each
// library an echo server and, for most, a toy that knows Redis's GET and SET,
// written as the library's documentation suggests. They are for measuring, not
// for use: they serve until they are killed. The benchmark's registry names them.
package serve

// A Server serves TCP on address, with so many event loops where the library
// has such, and returns only if it cannot.
type Server func(address string, loops int) error
