package main

import (
	"context"
	"fmt"
	"net"
	"time"
)

// A target is a server that is ready.
type target struct {
	*process
	port   int
	mode   mode
	server string // whose figures these will be, by its entry's name
}

// start starts a server and waits until it accepts connections. The port was
// free a moment before; should it be taken meanwhile, another is tried.
func (p *programs) start(ctx context.Context, m mode, s server, family string) (*target, error) {
	const attempts = 3
	for attempt := 1; ; attempt++ {
		port, err := freePort()
		if err != nil {
			return nil, err
		}
		path, args := s.command(p, family, options{port: port, loops: m.loops, dir: p.dir})
		child, err := spawnServer(ctx, m.serverCPU, path, args...)
		if err != nil {
			return nil, err
		}
		t := &target{child, port, m, s.entry.name}
		if err = t.ready(ctx, family); err == nil {
			return t, nil
		}
		child.stop()
		if attempt == attempts || ctx.Err() != nil {
			return nil, err
		}
	}
}

func freePort() (int, error) {
	ln, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		return 0, err
	}
	defer ln.Close()
	return ln.Addr().(*net.TCPAddr).Port, nil
}

// ready waits until the server takes connections, or answers datagrams.
func (t *target) ready(ctx context.Context, family string) error {
	const patience = 5 * time.Second
	address := options{port: t.port}.address()
	for start := time.Now(); time.Since(start) < patience; {
		if family == "udp" {
			if answers(address) {
				return nil
			}
		} else if c, err := net.Dial("tcp", address); err == nil {
			return c.Close()
		}
		if how, dead := t.died(2 * time.Millisecond); dead {
			return fmt.Errorf("server ended at its start: %s", how)
		}
		if ctx.Err() != nil {
			return ctx.Err()
		}
	}
	return fmt.Errorf("server did not accept connections within %v", patience)
}

// answers tells whether a datagram sent to address comes back.
func answers(address string) bool {
	c, err := net.Dial("udp", address)
	if err != nil {
		return false
	}
	defer c.Close()
	c.SetDeadline(time.Now().Add(20 * time.Millisecond))
	b := []byte("are you there?")
	if _, err := c.Write(b); err != nil {
		return false
	}
	n, err := c.Read(b)
	return err == nil && n == len(b)
}
