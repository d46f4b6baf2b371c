// Package serve holds the Go servers that the benchmark compares: for each
// library an echo server and, for most, a toy that knows Redis's GET and SET,
// written as the library's documentation suggests. They are for measuring, not
// for use: they serve until they are killed.
package serve

import (
	"maps"
	"slices"
)

// A Server serves TCP on address, with so many event loops where the library
// has such, and returns only if it cannot.
type Server func(address string, loops int) error

// Families holds the servers by what they do, then by name.
var Families = map[string]map[string]Server{
	"echo": {
		"rondo-epoll":      rondoEcho("epoll", 0),
		"rondo-epoll-spin": rondoEcho("epoll", Spin),
		"rondo-poll":       rondoEcho("poll", 0),
		"rondo-poll-spin":  rondoEcho("poll", Spin),
		"rondo-std":        rondoEcho("std", 0),
		"rondo-std-spin":   rondoEcho("std", Spin),
		"rondo-co":         rondoCoEcho,
		"gnet":             gnetEcho,
		"nbio":             nbioEcho,
		"gaio":             gaioEcho,
		"evio":             evioEcho,
		"netpoll":          netpollEcho,
		"net":              netEcho,
	},
	"redis": {
		"redcon": redconRedis,
		"gnet":   gnetRedis,
		"nbio":   nbioRedis,
		"gaio":   gaioRedis,
		"evio":   evioRedis,
		"net":    netRedis,
	},
}

// Names lists a family's servers.
func Names(family string) []string { return slices.Sorted(maps.Keys(Families[family])) }
