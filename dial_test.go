package rondo_test

import (
	"context"
	"errors"
	"net"
	"net/netip"
	"os"
	"path/filepath"
	"runtime"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/rondo-go/rondo"
	"github.com/rondo-go/rondo/internal/pick"
	"github.com/rondo-go/rondo/rondotest"
)

// names is a Resolver of what it holds.
type names map[string][]string

func (n names) LookupNetIP(_ context.Context, network, host string) (ips []netip.Addr, err error) {
	for _, s := range n[host] {
		ips = append(ips, netip.MustParseAddr(s))
	}
	if ips == nil {
		return nil, &net.DNSError{Err: "no such host", Name: host, IsNotFound: true}
	}
	return ips, nil
}

// dialAt dials name on a simulated network where some addresses do not answer,
// others have a server, and the rest refuse. It returns what that took.
func dialAt(t *testing.T, o rondotest.Options, addresses, silent, serving []string, s rondo.SocketOptions) (time.Duration, error) {
	t.Helper()
	n := rondotest.New(t, o)
	for _, a := range silent {
		n.Blackhole(a)
	}
	server := n.Engine(&rondo.Engine{})
	for _, a := range serving {
		n.Listen(server, "tcp", net.JoinHostPort(a, "7"), echo)
	}
	e := n.Engine(&rondo.Engine{Resolver: names{"name": addresses}})
	began, opened := n.Now(), 0
	var err error
	n.Await(func() {
		_, err = e.Dial(context.Background(), "tcp", "name:7", s, func(c *rondo.Conn) rondo.Handler {
			opened++
			return echo(c)
		})
	})
	took := n.Now().Sub(began)
	if (err == nil) != (opened == 1) {
		t.Errorf("open was called %d times; %v", opened, err)
	}
	n.Run()
	if open := server.Stats().Open; open != opened {
		t.Errorf("the servers have %d connections, and the client %d", open, opened)
	}
	return took, err
}

// TestDialRace: addresses are tried in turns of their families, 250 ms apart, or
// when the one before has failed.
func TestDialRace(t *testing.T) {
	const a6, b6, a4, b4 = "2001:db8::a", "2001:db8::b", "192.0.2.1", "192.0.2.2"
	all := []string{a6, b6, a4, b4}
	for what, test := range map[string]struct {
		addresses, silent, serving []string
		after                      time.Duration
	}{
		"the first":                       {all, nil, all, 0},
		"the other family comes second":   {all, all, []string{a4}, 250 * time.Millisecond},
		"then the first one again":        {all, all, []string{b6}, 500 * time.Millisecond},
		"the last":                        {all, all, []string{b4}, 750 * time.Millisecond},
		"IPv4 first":                      {[]string{a4, b4, a6, b6}, all, []string{a6}, 250 * time.Millisecond},
		"a refusal costs no time":         {all, nil, []string{b4}, 0},
		"one refuses, one is silent":      {all, []string{a4}, []string{b6}, 250 * time.Millisecond},
		"one is silent, then one refuses": {all, []string{a6}, []string{b6}, 250 * time.Millisecond},
	} {
		took, err := dialAt(t, rondotest.Options{}, test.addresses, test.silent, test.serving, rondo.SocketOptions{})
		if err != nil || took < test.after || took > test.after+20*time.Millisecond {
			t.Errorf("%s: after %v, %v; want %v", what, took, err, test.after)
		}
	}
}

// TestDialOneWins: of several connections that come to be one is served, and the
// others closed.
func TestDialOneWins(t *testing.T) {
	all := []string{"192.0.2.1", "2001:db8::1", "192.0.2.2"}
	for seed := range uint64(50) {
		o := rondotest.Options{Seed: seed + 1, MinLatency: 200 * time.Millisecond, MaxLatency: 900 * time.Millisecond}
		if seed%2 == 1 {
			o.Faults = rondotest.Harmless(0.2)
		}
		if _, err := dialAt(t, o, all, nil, all, rondo.SocketOptions{}); err != nil {
			t.Errorf("seed %d: %v", seed+1, err)
		}
	}
}

// TestDialGivesUp: when nobody answers, at the time limit; without one when the
// system does. The error is the first address's.
func TestDialGivesUp(t *testing.T) {
	all := []string{"192.0.2.1", "2001:db8::1"}
	took, err := dialAt(t, rondotest.Options{}, all, all, nil, rondo.SocketOptions{DialTimeout: 10 * time.Second})
	if !errors.Is(err, os.ErrDeadlineExceeded) || took.Round(time.Millisecond) != 10*time.Second {
		t.Errorf("after %v: %v", took, err)
	}
	took, err = dialAt(t, rondotest.Options{}, all, all, nil, rondo.SocketOptions{})
	if !errors.Is(err, syscall.ETIMEDOUT) || took < 20*time.Second {
		t.Errorf("after %v: %v", took, err)
	}
	var op *net.OpError
	if !errors.As(err, &op) || op.Op != "dial" || op.Net != "tcp" || op.Addr.String() != "192.0.2.1:7" {
		t.Errorf("the error is %v", err)
	}
	_, err = dialAt(t, rondotest.Options{}, all, all[1:], nil, rondo.SocketOptions{})
	if !errors.Is(err, syscall.ECONNREFUSED) || !strings.Contains(err.Error(), "dial tcp 192.0.2.1:7: connect: ") {
		t.Errorf("one that refuses, then a silent one: %v", err)
	}
}

// TestDialUnix: files and, on Linux, abstract names.
func TestDialUnix(t *testing.T) {
	for _, backend := range pick.Available() {
		t.Run(backend, func(t *testing.T) {
			e := &rondo.Engine{Backend: backend, NumLoops: 1}
			defer e.Close()
			path := filepath.Join(t.TempDir(), "s")
			addresses := []string{path}
			if runtime.GOOS == "linux" {
				addresses = append(addresses, "@rondo-dial-"+path)
			}
			for _, address := range addresses {
				if _, err := e.Dial(context.Background(), "unix", address, rondo.SocketOptions{}, echo); err == nil {
					t.Errorf("%s, where nobody listens, was dialed", address)
				}
				if _, err := e.Listen("unix", address, rondo.SocketOptions{}, echo); err != nil {
					t.Fatal(err)
				}
				got := make(chan string, 1)
				ref, err := e.Dial(context.Background(), "unix", address, rondo.SocketOptions{}, func(c *rondo.Conn) rondo.Handler {
					if c.RemoteAddr().String() != address {
						t.Errorf("the peer of a connection to %s is %v", address, c.RemoteAddr())
					}
					c.Write([]byte("hello"))
					return rondo.HandlerFunc(func(c *rondo.Conn, in []byte) (int, error) {
						if len(in) < 5 {
							return 0, nil
						}
						got <- string(in)
						return len(in), nil
					})
				})
				if err != nil {
					t.Fatal(err)
				}
				if s := <-got; s != "hello" {
					t.Errorf("the echo is %q", s)
				}
				ref.Close()
			}
		})
	}
}
