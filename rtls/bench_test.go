package rtls_test

import (
	"crypto/tls"
	"net"
	"slices"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/rondo-go/rondo"
	"github.com/rondo-go/rondo/internal/testcert"
	"github.com/rondo-go/rondo/rtls"
)

// BenchmarkHandshakes makes handshakes, 8 clients at once, with a server of one
// loop, on the loop and off it; "p99-µs" and "max-µs" tell how long an echo of an
// established connection of that loop takes meanwhile. docs/tls.md has its
// figures:
//
//	go test -run '^$' -bench Handshakes -benchtime 5000x ./rtls
func BenchmarkHandshakes(b *testing.B) {
	ecdsa, rsa := hostCert(), authority().Issue(testcert.RSA, host)
	for _, kind := range []struct {
		name string
		cert tls.Certificate
		call time.Duration // that the callback blocks
	}{
		{"ECDSA", ecdsa, 0},
		{"RSA", rsa, 0},
		{"ECDSA,callback=1ms", ecdsa, time.Millisecond},
	} {
		for name, o := range map[string]*rtls.Options{"on": {}, "off": {OffLoop: 8}} {
			b.Run(kind.name+"/"+name, func(b *testing.B) {
				config := &tls.Config{GetCertificate: func(*tls.ClientHelloInfo) (*tls.Certificate, error) {
					if kind.call > 0 {
						time.Sleep(kind.call)
					}
					return &kind.cert, nil
				}}
				benchmarkHandshakes(b, o, config)
			})
		}
	}
}

func benchmarkHandshakes(b *testing.B, o *rtls.Options, config *tls.Config) {
	e := &rondo.Engine{NumLoops: 1}
	ln, err := e.Listen("tcp", "127.0.0.1:0", rondo.SocketOptions{}, rondo.Filtered(echo, o.Server(config)))
	if err != nil {
		b.Fatal(err)
	}
	defer e.Close()
	address := ln.Addr().String()
	stop, times := make(chan bool), make(chan []time.Duration, 1)
	go func() { times <- echoes(b, address, stop) }()
	var left atomic.Int64
	left.Store(int64(b.N))
	b.ResetTimer()
	var clients sync.WaitGroup
	for range 8 {
		clients.Add(1)
		go func() {
			defer clients.Done()
			for left.Add(-1) >= 0 {
				c, err := tls.Dial("tcp", address, clientConfig())
				if err != nil {
					b.Error(err)
					return
				}
				c.NetConn().(*net.TCPConn).SetLinger(0)
				c.NetConn().Close()
			}
		}()
	}
	clients.Wait()
	b.StopTimer()
	close(stop)
	all := <-times
	slices.Sort(all)
	if len(all) > 0 {
		b.ReportMetric(float64(all[len(all)*99/100].Microseconds()), "p99-µs")
		b.ReportMetric(float64(all[len(all)-1].Microseconds()), "max-µs")
	}
}

// echoes times exchanges, until stop is closed.
func echoes(b *testing.B, address string, stop <-chan bool) (times []time.Duration) {
	c, err := tls.Dial("tcp", address, clientConfig())
	if err != nil {
		b.Error(err)
		return nil
	}
	defer c.Close()
	buf := make([]byte, 64)
	for {
		select {
		case <-stop:
			return times
		case <-time.After(100 * time.Microsecond):
		}
		begin := time.Now()
		if _, err := c.Write(buf); err != nil {
			b.Error(err)
			return times
		}
		if _, err := c.Read(buf); err != nil {
			b.Error(err)
			return times
		}
		times = append(times, time.Since(begin))
	}
}
