//go:build !linux

package backendtest

import "syscall"

func beforeConnect(_, _ string, _ syscall.RawConn) error { return nil }
