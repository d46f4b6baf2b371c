//go:build go1.25

// Go 1.25 and later count the processors of a container by its CPU limit. A go.mod of Go 1.24
// turns that off, and Go 1.24 does not know the setting.
//
//go:debug containermaxprocs=1

package main
