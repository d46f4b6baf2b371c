package main

import (
	"bufio"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"syscall"
	"time"
)

// A target is the addresses at which clients find the servers.
type target struct{ redis, http, https string }

// servers are the processes that are watched.
type servers struct {
	all     []*server
	direct  *target
	proxied *target
	dir     string
}

// A server is a process of which the log has told the addresses.
type server struct {
	name  string
	cmd   *exec.Cmd
	admin string
	ready chan []string // addresses
	done  chan struct{} // its log has ended
	mu    sync.Mutex
	wrong []string // lines of its log that should not be
}

const proxyFile = `
[[listener]]
address = "tcp://127.0.0.1:0"
pool = "redis"
[[listener]]
address = "tcp://127.0.0.1:0"
pool = "http"
[[listener]]
address = "tcp://127.0.0.1:0"
pool = "https"
[[pool]]
name = "redis"
health = { check = "redis" }
[[pool.target]]
address = %q
[[pool]]
name = "http"
health = { check = "http", path = "/hello" }
[[pool.target]]
address = %q
[[pool]]
name = "https"
health = { check = "tls" }
[[pool.target]]
address = %q
`

// slow is how long a callback may take. On a machine that is busy with other things, one that
// waits for another goroutine takes much longer than on its own.
const slow = time.Second

func startServers() (s *servers, err error) {
	s = new(servers)
	defer func() {
		if err != nil {
			s.kill()
		}
	}()
	if s.dir, err = os.MkdirTemp("", "soak"); err != nil {
		return nil, err
	}
	self, err := os.Executable()
	if err != nil {
		return nil, err
	}
	admin := []string{"--admin", "127.0.0.1:0", "--log-format", "json", "--slow-callback", slow.String(), "--backend", *backend}
	redis, err := s.start("redis", *program, append([]string{"redis", "--addr", "127.0.0.1:0", "--maxmemory", "64MiB", "--max-buffers", "64MiB"}, admin...)...)
	if err != nil {
		return s, err
	}
	web, err := s.start("http", self, "-serve", "-backend", *backend)
	if err != nil {
		return s, err
	}
	s.direct = &target{redis[0], web[0], web[1]}
	file := filepath.Join(s.dir, "proxy.toml")
	text := fmt.Sprintf(proxyFile, redis[0], web[0], web[1])
	if err := os.WriteFile(file, []byte(text), 0o600); err != nil {
		return s, err
	}
	front, err := s.start("proxy", *program, append([]string{"proxy", "--config", file, "--maxclients", "2000", "--access-log", "off"}, admin...)...)
	if err != nil {
		return s, err
	}
	s.proxied = &target{front[0], front[1], front[2]}
	return s, nil
}

func (s *servers) start(name, path string, args ...string) (addresses []string, err error) {
	p := &server{name: name, cmd: exec.Command(path, args...), ready: make(chan []string, 1), done: make(chan struct{})}
	log, err := p.cmd.StderrPipe()
	if err != nil {
		return nil, err
	}
	if err := p.cmd.Start(); err != nil {
		return nil, err
	}
	s.all = append(s.all, p)
	go p.read(log)
	select {
	case addresses = <-p.ready:
		return addresses, nil
	case <-time.After(20 * time.Second):
	case <-p.done:
	}
	return nil, fmt.Errorf("%s does not serve: %q", name, p.lines())
}

// read reads the log.
func (p *server) read(log io.Reader) {
	defer close(p.done)
	lines := bufio.NewScanner(log)
	lines.Buffer(nil, 16<<20) // a line may have the stacks of many goroutines
	for lines.Scan() {
		var line struct {
			Level, Msg, Address string
			Addresses           []string
		}
		err := json.Unmarshal(lines.Bytes(), &line)
		switch {
		case err != nil, line.Level == "WARN", line.Level == "ERROR":
			p.mu.Lock()
			p.wrong = append(p.wrong, lines.Text())
			p.mu.Unlock()
			fmt.Println(time.Now().Format(time.TimeOnly), p.name+":", lines.Text())
		case strings.HasPrefix(line.Msg, "the page of --admin is shown"):
			p.admin = "http://" + strings.TrimPrefix(line.Address, "tcp://")
		case strings.HasSuffix(line.Msg, " is ready"):
			for i, a := range line.Addresses {
				line.Addresses[i] = strings.TrimPrefix(a, "tcp://")
			}
			p.ready <- line.Addresses
		}
	}
	if err := lines.Err(); err != nil {
		p.mu.Lock()
		p.wrong = append(p.wrong, "its log cannot be read: "+err.Error())
		p.mu.Unlock()
	}
}

// lines returns the lines of the log that should not be.
func (p *server) lines() []string {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.wrong
}

// stop ends the servers as an operator does.
func (s *servers) stop() error {
	var problems []error
	for i := len(s.all) - 1; i >= 0; i-- { // the proxy first
		p := s.all[i]
		p.cmd.Process.Signal(syscall.SIGTERM)
		select {
		case <-p.done:
		case <-time.After(30 * time.Second):
			problems = append(problems, fmt.Errorf("%s does not end", p.name))
			p.cmd.Process.Kill()
		}
		if err := p.cmd.Wait(); err != nil {
			problems = append(problems, fmt.Errorf("%s: %w", p.name, err))
		}
		if lines := p.lines(); len(lines) > 0 {
			problems = append(problems, fmt.Errorf("%s has logged %d lines that should not be", p.name, len(lines)))
		}
	}
	s.all = nil
	return errors.Join(problems...)
}

// kill ends what is left.
func (s *servers) kill() {
	for _, p := range s.all {
		p.cmd.Process.Kill()
		p.cmd.Wait()
	}
	os.RemoveAll(s.dir)
}

// goroutines asks the page of --admin.
func (p *server) goroutines() (int, error) {
	answer, err := pages.Get(p.admin + "/vars")
	if err != nil {
		return 0, err
	}
	defer answer.Body.Close()
	var vars struct{ Process struct{ Goroutines int } }
	err = json.NewDecoder(answer.Body).Decode(&vars)
	return vars.Process.Goroutines, err
}

// pages keeps no connections, which would count.
var pages = &http.Client{Timeout: 10 * time.Second, Transport: &http.Transport{DisableKeepAlives: true}}
