package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"
)

// tools builds the programs that workloads need.
func tools(t *testing.T, programs ...string) build {
	t.Helper()
	b, err := newBuild(t.TempDir(), "..")
	if err != nil {
		t.Fatal(err)
	}
	if err := b.make(context.Background(), programs); err != nil {
		t.Fatal(err)
	}
	return b
}

// few makes a pair that measures a few messages on a few connections.
func few(t *testing.T, b build, cal *calibrator, workload, base, server string) *pair {
	t.Helper()
	m, err := modeNamed("free")
	if err != nil {
		t.Fatal(err)
	}
	p, err := newPair(&row{Workload: workload, Server: server, Base: base}, m, b, cal)
	if err != nil {
		t.Fatal(err)
	}
	p.turns = 1
	for _, s := range []*side{&p.a, &p.b} {
		s.workload.conns = min(s.workload.conns, 20)
		s.workload.slice = 5 * time.Millisecond
	}
	return p
}

// TestWorkloads measures each workload briefly with a pair of a suite that has it.
// It checks that there are figures, not their values.
func TestWorkloads(t *testing.T) {
	ctx := context.Background()
	b := tools(t, "epoll", "load", "sink", "tlsload", "udp", "server", "rondo")
	m, err := modeNamed("free")
	if err != nil {
		t.Fatal(err)
	}
	cal, err := newCalibrator(ctx, m, b)
	if err != nil {
		t.Fatal(err)
	}
	defer cal.close()
	bases := map[string]string{"echo": limitServer, "redis": "net", "udp": "net", "tls": "net", "completions": "gaio", "http": "net-http", "https": "net-http",
		"ws": "gws", "wsz": "gws", proxyFamily: "net"}
	for _, w := range workloads {
		server := rondoServer
		switch w.Family {
		case "completions":
			server = "rondo-proactor"
		case "http", "https":
			server = "rondo-httpd"
		case "ws", "wsz":
			server = "rondo-websocket"
		}
		var r repetition
		for range 20 { // on a busy machine a slice may have no message
			if p := few(t, b, cal, w.Name, bases[w.Family], server); w.memory {
				r, err = p.repeat(ctx)
			} else {
				r, err = p.once(ctx)
			}
			if err == nil {
				break
			}
		}
		if err != nil {
			t.Errorf("%s: %v", w.Name, err)
			continue
		}
		if w.memory != (r.B["rate"] == 0) || w.memory != (r.Ratio["rate"] == 0) {
			t.Errorf("%s: %+v", w.Name, r)
		}
		if w.client == "load" && !w.memory && w.backendProgram() != "sink" && !(r.B["p50"] > 0 && r.B["p50"] <= r.B["p99"]) {
			t.Errorf("%s: percentiles %+v", w.Name, r.B)
		}
	}
}

// TestSuites finds what suites name.
func TestSuites(t *testing.T) {
	for _, s := range suites {
		s, err := chosenSuite(s.Name, nil, nil)
		if err != nil {
			t.Fatal(err)
		}
		if modeTitles[s.Mode] == "" || len(s.Workloads) == 0 {
			t.Errorf("suite %s: mode %q, workloads %q", s.Name, s.Mode, s.Workloads)
		}
		for _, name := range s.Workloads {
			w, err := workloadOf(name)
			if err != nil {
				t.Errorf("suite %s: %v", s.Name, err)
			}
			for _, server := range append(s.Servers, s.Base) {
				if _, err := findServer(server, w.Family); err != nil {
					t.Errorf("suite %s: %v", s.Name, err)
				}
			}
		}
	}
	if s, err := chosenSuite("peers", []string{"rondo-*"}, []string{"echo-64-5*"}); err != nil || len(s.Servers) != 2 || len(s.Workloads) != 1 {
		t.Errorf("chosen: %+v, %v", s, err)
	}
	if _, err := chosenSuite("peers", []string{"redcon"}, nil); err == nil {
		t.Error("a server that the suite does not have is chosen")
	}
}

// TestServers has each server of HTTP and WebSocket serve what the suites ask it for, on a few
// connections.
func TestServers(t *testing.T) {
	ctx := context.Background()
	b := tools(t, "load", "tlsload", "server")
	for _, name := range []string{"http", "https", "websocket", "websocket-deflate"} {
		s, err := chosenSuite(name, nil, nil)
		if err != nil {
			t.Fatal(err)
		}
		for _, server := range append(s.Servers, s.Base) {
			for _, w := range s.Workloads {
				if !strings.HasSuffix(w, "-2") && !strings.HasSuffix(w, "-broadcast") {
					continue
				}
				p := few(t, b, nil, w, s.Base, server)
				err := p.b.open(ctx)
				if err == nil {
					_, err = p.b.slice(ctx, 5*time.Millisecond, 0)
				}
				if p.b.close(); err != nil {
					t.Errorf("%s under %s: %v", server, w, err)
				}
			}
		}
	}
}

// TestLoadVerifies lets the load generator meet servers that do not echo.
func TestLoadVerifies(t *testing.T) {
	b := tools(t, "load")
	var last []byte
	for _, c := range []struct {
		name, want string
		serve      func(c net.Conn, message []byte)
	}{
		{"wrong byte", "came back with other bytes", func(c net.Conn, m []byte) {
			m[len(m)-1] ^= 1
			c.Write(m)
		}},
		{"extra byte", "more bytes came back", func(c net.Conn, m []byte) { c.Write(append(m, 0)) }},
		{"first message again", "came back with other bytes", func(c net.Conn, m []byte) {
			if last == nil {
				last = append(last, m...)
			}
			c.Write(last)
		}},
		{"closes", "the server closed it", func(c net.Conn, _ []byte) { c.Close() }},
		{"silent", "got no reply", func(net.Conn, []byte) {}},
	} {
		t.Run(c.name, func(t *testing.T) {
			p, err := spawnClient(context.Background(), anyCPU, b.path("load"), "-p", strconv.Itoa(serveMessages(t, c.serve)), "echo")
			if err != nil {
				t.Fatal(err)
			}
			defer p.stop()
			var x sample
			if err := p.ask("", &x); err != nil {
				t.Fatal(err)
			}
			if err := p.ask("slice 0.05 0", &x); err != nil || !strings.Contains(x.Error, c.want) {
				t.Errorf("answer %+v, %v, want %q", x, err, c.want)
			}
		})
	}
}

// serveMessages serves messages of 64 bytes, and returns the port.
func serveMessages(t *testing.T, serve func(c net.Conn, message []byte)) int {
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

// TestOpenLoadKeepsItsSchedule lets a server pause once. In an open load the messages due in
// the pause count as late, with latencies from the length of the pause down to none, even if
// only a few were under way.
func TestOpenLoadKeepsItsSchedule(t *testing.T) {
	b := tools(t, "load")
	const pause = 400 * time.Millisecond
	n := 0
	port := serveMessages(t, func(c net.Conn, m []byte) {
		if n++; n == 20 {
			time.Sleep(pause)
		}
		c.Write(m)
	})
	p, err := spawnClient(context.Background(), anyCPU, b.path("load"), "-p", strconv.Itoa(port), "echo")
	if err != nil {
		t.Fatal(err)
	}
	defer p.stop()
	var x sample
	if err := p.ask("", &x); err != nil {
		t.Fatal(err)
	}
	if err := p.ask("slice 1 500", &x); err != nil || x.Error != "" {
		t.Fatal(err, x.Error)
	}
	late := int64(0)
	for _, l := range x.Latency {
		if l[0] > int64(pause/4) {
			late += l[1]
		}
	}
	// 200 messages were due in the pause, one was under way. A slow machine adds more.
	if late < 100 {
		t.Errorf("%d messages were late, want at least 100 of the 200 that were due in the pause", late)
	}
}

// TestServerDies kills a server in the middle of a slice.
func TestServerDies(t *testing.T) {
	b := tools(t, "epoll", "load")
	ctx := context.Background()
	p := few(t, b, nil, "echo-64-50", limitServer, limitServer)
	defer p.a.close()
	if err := p.a.open(ctx); err != nil {
		t.Fatal(err)
	}
	p.a.process.stop()
	if _, err := p.a.slice(ctx, time.Minute, 0); err == nil || !strings.Contains(err.Error(), "signal: killed") {
		t.Errorf("error %v, want one that tells that the server was killed", err)
	}
}

// TestInterrupt stops the program in the middle of a run, and checks that it leaves nothing
// behind.
func TestInterrupt(t *testing.T) {
	dir := t.TempDir()
	program := filepath.Join(dir, "bench")
	compile, err := spawnServer(context.Background(), anyCPU, nil, "go", "build", "-o", program, ".")
	if err != nil {
		t.Fatal(err)
	}
	if compile.wait(); !compile.cmd.ProcessState.Success() {
		t.Fatal(compile.end())
	}
	p, err := spawnServer(context.Background(), anyCPU, nil, program, "run", "peers-free", "--servers", "net", "--workloads", "echo-64-50",
		"--repetitions", "100000", "--out", filepath.Join(dir, "out"))
	if err != nil {
		t.Fatal(err)
	}
	defer p.stop()
	var children []int
	for deadline := time.Now().Add(time.Minute); len(children) < 2; time.Sleep(10 * time.Millisecond) {
		if how, dead := p.died(0); dead || time.Now().After(deadline) {
			t.Fatalf("children %v, want servers and clients; %s", children, how)
		}
		children = childrenOf(t, p.pid())
	}
	if err := p.cmd.Process.Signal(syscall.SIGTERM); err != nil {
		t.Fatal(err)
	}
	if how, dead := p.died(time.Minute); !dead || !strings.HasPrefix(how, "exit status 1") {
		t.Errorf("ended = %v: %q", dead, how)
	}
	for _, pid := range children {
		if syscall.Kill(pid, 0) != syscall.ESRCH {
			t.Errorf("child %d is still there", pid)
		}
	}
}

// childrenOf lists the servers and clients that a process has started.
func childrenOf(t *testing.T, parent int) []int {
	t.Helper()
	lists, err := filepath.Glob(fmt.Sprintf("/proc/%d/task/*/children", parent))
	if err != nil {
		t.Fatal(err)
	}
	var pids []int
	for _, list := range lists {
		b, _ := os.ReadFile(list) // a thread may have ended
		for _, word := range strings.Fields(string(b)) {
			pid, err := strconv.Atoi(word)
			if err != nil {
				t.Fatal(err)
			}
			name, _ := os.ReadFile(fmt.Sprintf("/proc/%d/comm", pid))
			if n := strings.TrimSpace(string(name)); n == "load" || n == "epoll" {
				pids = append(pids, pid)
			}
		}
	}
	return pids
}

// shownSide is a server with a page and a load on few connections.
func shownSide(t *testing.T, c *pageCommand) (s *side, shown string) {
	t.Helper()
	m, err := modeNamed("free")
	if err != nil {
		t.Fatal(err)
	}
	s, shown, err = c.side(m, tools(t, "load", "rondo"))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(s.close)
	if err := s.open(context.Background()); err != nil {
		t.Fatal(err)
	}
	if err := s.touch(); err != nil {
		t.Fatal(err)
	}
	return s, shown
}

// TestPage opens and closes the page of --admin under load.
func TestPage(t *testing.T) {
	ctx := context.Background()
	c := &pageCommand{Backend: "epoll", Conns: 20, Sort: "-in", Rows: 50, Slice: 50 * time.Millisecond, For: time.Millisecond}
	s, shown := shownSide(t, c)
	v := &viewer{page: "http://" + shown, sort: c.Sort, rows: c.Rows}
	if err := v.open(ctx); err != nil {
		t.Fatal(err)
	}
	if err := v.close(); err != nil || v.events == 0 || v.lists != 1 {
		t.Errorf("%d events, %d lists, %v", v.events, v.lists, err)
	}
	if err := c.alone(ctx, s, shown); err != nil {
		t.Error(err)
	}
	if _, err := c.alternate(ctx, s, shown); err != nil && !errors.Is(err, errRestless) {
		t.Error(err)
	}
	if err := (&viewer{page: "http://" + shown, sort: "nothing"}).open(ctx); err == nil {
		t.Error("a page without a list was opened")
	}
}
