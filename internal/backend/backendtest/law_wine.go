package backendtest

import (
	"io"
	"net"
	"runtime"
	"sync"
	"time"
)

// resetIsEnd reports whether a read after a reset gives the end of the stream. Wine
// does so, on which CI runs the tests for Windows; Windows does not. The check uses
// package net alone, on Windows only.
var resetIsEnd = sync.OnceValue(func() bool {
	if runtime.GOOS != "windows" {
		return false
	}
	ln, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		return false
	}
	defer ln.Close()
	c, err := net.Dial("tcp", ln.Addr().String())
	if err != nil {
		return false
	}
	defer c.Close()
	s, err := ln.Accept()
	if err != nil {
		return false
	}
	s.(*net.TCPConn).SetLinger(0)
	s.Close()
	time.Sleep(100 * time.Millisecond)
	_, err = c.Read(make([]byte, 1))
	return err == io.EOF
})
