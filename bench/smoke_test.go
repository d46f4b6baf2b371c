package main

import (
	"context"
	"encoding/json"
	"io"
	"net"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"
)

// newRig builds the C programs and measures briefly.
func newRig(t *testing.T) *rig {
	t.Helper()
	p, err := build(context.Background(), t.TempDir(), []string{"epoll", serverProgram, tlsProgram})
	if err != nil {
		t.Fatal(err)
	}
	return &rig{programs: p, warmup: 10 * time.Millisecond, measured: 50 * time.Millisecond, counted: 20 * time.Millisecond, maxConns: 20}
}

// TestSmoke runs each kind of echo workload on the limit, net, nbio and rondo, and
// writes the results.
func TestSmoke(t *testing.T) {
	s, err := chosenSuite([]string{limitServer, "rondo-epoll", "nbio", "net"}, []string{"echo-64-50", "echo-64k-1", "rate", "idle", "tls-1k-50", "tls-rate", "tls-idle"}, []string{"free"})
	if err != nil {
		t.Fatal(err)
	}
	dir := t.TempDir()
	modes, err := parseModes(s.Modes)
	if err != nil {
		t.Fatal(err)
	}
	p := plan{rig: *newRig(t), file: filepath.Join(dir, "results.json"), modes: map[string]mode{"free": modes[0]},
		results: &results{Repetitions: 1, Suites: []suite{s}}}
	counts := callsCountable() == nil
	if !counts {
		p.rig.counted = 0
	}
	if err := p.run(context.Background()); err != nil {
		t.Fatal(err)
	}
	res := p.results
	if len(res.Runs) != p.total() {
		t.Fatalf("%d runs, want %d", len(res.Runs), p.total())
	}
	for _, x := range res.Runs {
		idle := strings.HasSuffix(x.Workload, "idle")
		switch {
		case x.Error != "":
			t.Errorf("%s %s: %s", x.Workload, x.Server, x.Error)
		case idle && x.Connections != 20:
			t.Errorf("%s: %d idle connections, want 20", x.Server, x.Connections)
		case !idle && (x.PerSecond <= 0 || x.CPU <= 0 || x.ClientCPU <= 0 || x.P50 <= 0 || x.P50 > x.P99 || x.P99 > x.Max):
			t.Errorf("%s %s: %+v: want a rate, CPU time and percentiles in order", x.Workload, x.Server, x.figures)
		case !idle && counts != (x.Calls > 0):
			t.Errorf("%s %s: %v system calls, which can be counted: %v", x.Workload, x.Server, x.Calls, counts)
		}
	}
	if err := write(res, dir, ""); err != nil {
		t.Fatal(err)
	}
	b, err := os.ReadFile(p.file)
	if err != nil {
		t.Fatal(err)
	}
	if !json.Valid(b) {
		t.Error("results.json is no JSON")
	}
}

// TestToyRedis asks the toy on package net, as a child, for what the Redis
// workloads ask.
func TestToyRedis(t *testing.T) {
	r := newRig(t)
	target, err := r.programs.start(context.Background(), mode{serverCPU: anyCPU, loops: 1}, serverOf(t, "net"), "redis")
	if err != nil {
		t.Fatal(err)
	}
	defer target.stop()
	if err := checkRedis(context.Background(), target.port); err != nil {
		t.Error(err)
	}
}

func serverOf(t *testing.T, name string) server {
	t.Helper()
	servers, err := parseServers([]string{name})
	if err != nil {
		t.Fatal(err)
	}
	return servers[0]
}

// TestLoadVerifies lets the load generator meet servers that do not echo.
func TestLoadVerifies(t *testing.T) {
	r := newRig(t)
	for _, c := range []struct {
		name, want string
		serve      func(c net.Conn, message []byte)
	}{
		{"wrong byte", "came back with other bytes", func(c net.Conn, m []byte) {
			m[len(m)-1] ^= 1
			c.Write(m)
		}},
		{"extra byte", "more bytes came back", func(c net.Conn, m []byte) { c.Write(append(m, 0)) }},
		{"last message again", "came back with other bytes", func() func(c net.Conn, m []byte) {
			var last []byte
			return func(c net.Conn, m []byte) {
				if last == nil {
					last = append(last, m...)
				}
				c.Write(last)
			}
		}()},
		{"closes", "the server closed it", func(c net.Conn, _ []byte) { c.Close() }},
	} {
		t.Run(c.name, func(t *testing.T) {
			target := &target{port: listen(t, c.serve), mode: mode{clientCPU: anyCPU}}
			_, err := r.load(context.Background(), target, loadProgram, []string{"-c", "1", "-b", "64", "-s", "0.1", "echo"}, nil)
			if err == nil || !strings.Contains(err.Error(), c.want) {
				t.Errorf("error %v, want %q", err, c.want)
			}
		})
	}
}

// TestDeadline meets a server that never answers.
func TestDeadline(t *testing.T) {
	r := newRig(t)
	ctx, cancel := context.WithTimeout(context.Background(), 300*time.Millisecond)
	defer cancel()
	target := &target{port: listen(t, func(net.Conn, []byte) {}), mode: mode{clientCPU: anyCPU}}
	start := time.Now()
	if _, err := r.load(ctx, target, loadProgram, []string{"-c", "1", "echo"}, nil); err == nil {
		t.Error("no error")
	}
	if took := time.Since(start); took > 8*time.Second {
		t.Errorf("it took %v to give up", took)
	}
}

// listen serves messages of 64 bytes, and returns the port.
func listen(t *testing.T, serve func(c net.Conn, message []byte)) int {
	ln, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { ln.Close() })
	go func() {
		for {
			c, err := ln.Accept()
			if err != nil {
				return
			}
			go func() {
				defer c.Close()
				for message := make([]byte, 64, 65); ; {
					if _, err := io.ReadFull(c, message); err != nil {
						return
					}
					serve(c, message)
				}
			}()
		}
	}()
	return ln.Addr().(*net.TCPAddr).Port
}

// TestServerDies kills a server in the middle of a run.
func TestServerDies(t *testing.T) {
	r := newRig(t)
	w := workload{Family: "echo", measure: func(ctx context.Context, r *rig, t *target) (figures, error) {
		return figures{}, r.killAt(ctx, t, "measuring")
	}}
	m := mode{serverCPU: anyCPU, clientCPU: anyCPU, loops: 1, threads: 1}
	_, err := r.take(context.Background(), m, w, serverOf(t, limitServer))
	if err == nil || !strings.Contains(err.Error(), "server died (signal: killed)") {
		t.Errorf("error %v, want one that tells that the server was killed", err)
	}
}

// killAt runs a load during which the server is killed.
func (r *rig) killAt(ctx context.Context, t *target, at string) error {
	_, err := r.load(ctx, t, loadProgram, []string{"-c", "5", "-s", "10", "echo"}, func(stage string, _ io.Writer) error {
		if stage == at {
			return t.cmd.Process.Kill()
		}
		return nil
	})
	return err
}

// TestCompletions runs each of gaio's cases on gaio and on rondo.
func TestCompletions(t *testing.T) {
	r := newRig(t)
	r.maxConns = 300 // so that 50 connections are what the limit of descriptors allows
	for _, s := range suites {
		if s.Name != "completions" {
			continue
		}
		for _, name := range s.Servers {
			for _, w := range s.Workloads {
				f, err := r.take(context.Background(), mode{serverCPU: anyCPU, loops: 1}, w, serverOf(t, name))
				if err != nil {
					t.Errorf("%s %s: %v", name, w.Name, err)
					continue
				}
				if f.PerSecond <= 0 || f.CPU <= 0 || f.Allocs <= 0 || f.Connections > 50 || (f.Elapsed > 0) != (w.Unit == "client") {
					t.Errorf("%s %s: %+v", name, w.Name, f)
				}
			}
		}
	}
}
