package netconn_test

import (
	"fmt"
	"io"
	"net"
	"testing"

	"github.com/rondo-go/rondo"
	"github.com/rondo-go/rondo/internal/pick"
	"github.com/rondo-go/rondo/netconn"
)

// contenders makes connected pairs: package net's, and both ends on an engine's loops.
func contenders(b *testing.B, f func(b *testing.B, server, client net.Conn)) {
	b.Run("net", func(b *testing.B) {
		ln, err := net.Listen("tcp", "127.0.0.1:0")
		must(b, err)
		defer ln.Close()
		c, err := net.Dial("tcp", ln.Addr().String())
		must(b, err)
		defer c.Close()
		s, err := ln.Accept()
		must(b, err)
		defer s.Close()
		f(b, s, c)
	})
	for _, backend := range pick.Available() {
		b.Run(backend, func(b *testing.B) {
			s, c := pair(b, engine(b, &rondo.Engine{Backend: backend, NumLoops: 1}), kind{})
			f(b, s, c)
		})
		// The server alone: package net is at the other end.
		b.Run(backend+"-server", func(b *testing.B) {
			s, c := withPeer(b, engine(b, &rondo.Engine{Backend: backend, NumLoops: 1}))
			f(b, s, c)
		})
	}
}

// BenchmarkEcho is one message there and back, and then the next.
func BenchmarkEcho(b *testing.B) {
	for _, size := range []int{64, 16 << 10} {
		b.Run(fmt.Sprint(size), func(b *testing.B) {
			contenders(b, func(b *testing.B, s, c net.Conn) {
				go func() {
					buf := make([]byte, size)
					for {
						n, err := s.Read(buf)
						if err != nil {
							return
						}
						if _, err := s.Write(buf[:n]); err != nil {
							return
						}
					}
				}()
				buf := make([]byte, size)
				b.SetBytes(int64(size))
				b.ReportAllocs()
				for b.Loop() {
					if _, err := c.Write(buf); err != nil {
						b.Fatal(err)
					}
					if _, err := io.ReadFull(c, buf); err != nil {
						b.Fatal(err)
					}
				}
			})
		})
	}
}

// BenchmarkStream is one direction, as fast as it goes.
func BenchmarkStream(b *testing.B) {
	for _, size := range []int{1 << 10, 64 << 10} {
		b.Run(fmt.Sprint(size), func(b *testing.B) {
			contenders(b, func(b *testing.B, s, c net.Conn) {
				done := make(chan struct{})
				go func() {
					defer close(done)
					buf := make([]byte, size)
					for {
						if _, err := s.Read(buf); err != nil {
							return
						}
					}
				}()
				buf := make([]byte, size)
				b.SetBytes(int64(size))
				b.ReportAllocs()
				for b.Loop() {
					if _, err := c.Write(buf); err != nil {
						b.Fatal(err)
					}
				}
				c.Close()
				<-done
			})
		})
	}
}

// BenchmarkConnect dials, accepts and closes: what it allocates is for both ends.
func BenchmarkConnect(b *testing.B) {
	e := engine(b, &rondo.Engine{NumLoops: 1})
	ln, err := netconn.Listen(e, "tcp", "127.0.0.1:0", netconn.Options{})
	must(b, err)
	d := netconn.Dialer{Engine: e}
	b.ReportAllocs()
	for b.Loop() {
		c, err := d.Dial("tcp", ln.Addr().String())
		must(b, err)
		s, err := ln.Accept()
		must(b, err)
		c.Close()
		s.Close()
	}
}
