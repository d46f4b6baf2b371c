package main

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"

	"github.com/rondo-go/rondo/bench/serve"
)

// This file has the TCP proxies, and the backend behind them: a C server on the load
// generator's CPU.

const proxyFamily = "proxy"

// proxyWorkloads echo through a proxy, send streams through it, open connections, and leave
// them idle.
func proxyWorkloads() []workload {
	var list []workload
	add := func(w workload, name, title string, args ...string) {
		w.Name, w.Title, w.Family, w.client, w.args, w.slice = name, title, proxyFamily, "load", args, usualSlice
		list = append(list, w)
	}
	for _, n := range []int{50, 1000} {
		add(workload{Unit: "message", conns: n}, fmt.Sprintf("proxy-64-%d", n), "echo of 64 B through a proxy, "+counted(n, "connection"), "-b", "64", "echo")
	}
	for _, n := range []int{1, 8} {
		add(workload{Unit: "MB", conns: n}, fmt.Sprintf("proxy-stream-%d", n), "streams of writes of 64 KiB through a proxy, "+counted(n, "connection"),
			"-b", strconv.Itoa(64<<10), streamKind)
	}
	add(workload{Unit: "connection", conns: 50}, "proxy-rate", "connect through a proxy, one echo of 64 B, close, 50 at once", "-b", "64", "rate")
	add(workload{Unit: "connection", conns: idlePairs, memory: true}, "proxy-idle", "memory of idle connections through a proxy", "-b", "4096", "echo")
	return list
}

const (
	streamKind = "stream" // of load
	idlePairs  = 3000     // io.Copy needs six descriptors for each: two sockets, and two pipes of splice
)

// backendProgram returns the C program that is a workload's backend, or "".
func (w workload) backendProgram() string {
	switch {
	case w.Family != proxyFamily:
		return ""
	case slices.Contains(w.args, streamKind):
		return "sink"
	}
	return "epoll"
}

// startBackend starts the server behind a proxy.
func (s *side) startBackend(ctx context.Context) error {
	program := s.workload.backendProgram()
	if program == "" || s.backend != nil {
		return nil
	}
	port, err := freePort()
	if err != nil {
		return err
	}
	command := []string{s.tools.path(program), strconv.Itoa(port)}
	if program == "epoll" {
		command = append(command, strconv.Itoa(s.mode.clients))
	}
	if s.backend, err = spawnServer(ctx, s.mode.clientCPU, nil, command...); err != nil {
		return err
	}
	s.behind = net.JoinHostPort("127.0.0.1", strconv.Itoa(port))
	if err := s.backend.accepts(ctx, s.behind); err != nil {
		return fmt.Errorf("backend: %w", err)
	}
	return nil
}

// proxyServer finds a proxy by its name. The address that it is given is serve.ProxyAddress's.
func proxyServer(name string) (server, bool) {
	if i := slices.IndexFunc(serve.Rondos, func(r serve.Rondo) bool { return r.Name == name }); i >= 0 {
		return server{name: name, program: "rondo", command: func(b build, _, address string, loops int) []string {
			own, backend := serve.ProxyAddress(address)
			return []string{b.path("rondo"), "proxy", "--backend", serve.Rondos[i].Backend, "--listen", own, "--to", backend,
				"--loops", strconv.Itoa(loops), "--spin", serve.Rondos[i].Spin.String(), "--access-log", "off", "--log-level", "error"}
		}}, true
	}
	switch name {
	case "haproxy":
		return debianProxy(name, haproxyConfig(""), "haproxy", "-db", "-f"), true
	case "haproxy-splice":
		return debianProxy(name, haproxyConfig("option splice-request\n    option splice-response"), "haproxy", "-db", "-f"), true
	case "nginx":
		s := debianProxy(name, nginxConfig, "nginx", "-e", "stderr", "-c")
		s.files = []string{nginxStream}
		return s, true
	}
	return server{}, false
}

// debianProxy is a proxy of Debian's, whose command gets the name of its configuration last.
func debianProxy(name string, config func(address string, loops int) string, command ...string) server {
	return server{name: name, config: config, command: func(build, string, string, int) []string { return slices.Clone(command) }}
}

// haproxyConfig returns a configuration with an option of the section defaults. Its limits
// leave room for 1,000 pairs with pipes, and more without, within 20,000 descriptors.
func haproxyConfig(option string) func(address string, loops int) string {
	return func(address string, loops int) string {
		own, backend := serve.ProxyAddress(address)
		return fmt.Sprintf(`global
    nbthread %d
    maxconn 6000
    maxpipes 2000
defaults
    mode tcp
    maxconn 6000
    timeout connect 5s
    timeout client 1h
    timeout server 1h
    %s
frontend clients
    bind %s
    default_backend target
backend target
    server target %s
`, loops, option, own, backend)
	}
}

// nginxStream is the module of Debian's package libnginx-mod-stream.
const nginxStream = "/usr/lib/nginx/modules/ngx_stream_module.so"

// nginxConfig has one process, whatever loops is: with more the process whose CPU time is
// read would be none of those that serve.
func nginxConfig(address string, _ int) string {
	own, backend := serve.ProxyAddress(address)
	return fmt.Sprintf(`load_module %s;
daemon off;
master_process off;
pid /dev/null;
error_log stderr crit;
events {
    worker_connections 15000;
}
stream {
    server {
        listen %s backlog=4096;
        proxy_pass %s;
        proxy_timeout 1h;
    }
}
`, nginxStream, own, backend)
}

// installed returns an error if a server is a program that this machine does not have.
func (s server) installed() error {
	if s.config == nil {
		return nil
	}
	program := s.command(build{}, "", "", 1)[0]
	if _, err := exec.LookPath(program); err != nil {
		return fmt.Errorf("%s is not installed", program)
	}
	for _, file := range s.files {
		if _, err := os.Stat(file); errors.Is(err, fs.ErrNotExist) {
			return fmt.Errorf("%s has no %s", program, filepath.Base(file))
		}
	}
	return nil
}

// withoutMissing leaves out the servers of a suite that are proxies of Debian's and not
// installed, and says so.
func withoutMissing(s suite) suite {
	s.Servers = slices.DeleteFunc(slices.Clone(s.Servers), func(name string) bool {
		x, ok := proxyServer(name)
		if !ok {
			return false
		}
		err := x.installed()
		if err != nil {
			fmt.Fprintf(os.Stderr, "%s is left out: %v\n", name, err)
		}
		return err != nil
	})
	return s
}
