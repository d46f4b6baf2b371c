package main

import (
	"errors"
	"fmt"
	"net"
	"os"
	"os/exec"
	"strconv"
	"strings"
	"sync/atomic"
	"syscall"
	"time"
)

// A server is a process that is watched.
type server struct {
	address string
	dir     string
	cmd     *exec.Cmd
	done    chan struct{} // it has ended
	most    atomic.Int64  // MiB
}

// startServer starts a server with directives as redis-server takes them.
func startServer(directives ...string) (*server, error) {
	dir, err := os.MkdirTemp("", "abuse")
	if err != nil {
		return nil, err
	}
	ln, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		return nil, err
	}
	address := ln.Addr().String()
	ln.Close()
	_, port, _ := net.SplitHostPort(address)
	args := []string{"--port", port, "--bind", "127.0.0.1", "--dir", dir, "--save", "", "--maxclients", "12000", "--loglevel", "warning"}
	name := *redis
	if name == "" {
		name = *program
		args = append([]string{"redis", "--"}, args...)
	}
	for i, d := range directives {
		directives[i] = strings.ReplaceAll(d, "DIR", dir)
	}
	s := &server{address: address, dir: dir, cmd: exec.Command(name, append(args, directives...)...), done: make(chan struct{})}
	if s.cmd.Stderr, err = os.Create(dir + "/log"); err != nil {
		return nil, err
	}
	if err := os.WriteFile(dir+"/users.acl", nil, 0o600); err != nil {
		return nil, err
	}
	if err := s.cmd.Start(); err != nil {
		return nil, err
	}
	go func() {
		s.cmd.Wait()
		close(s.done)
	}()
	go s.watch()
	for range 200 {
		if c, err := dial(address); err == nil {
			head, err := c.do("PING")
			c.Close()
			if err == nil && head == "+PONG" {
				return s, nil
			}
		}
		time.Sleep(50 * time.Millisecond)
	}
	s.kill()
	return nil, errors.New("the server does not serve")
}

// watch notes the peak of the memory.
func (s *server) watch() {
	for {
		select {
		case <-s.done:
			return
		case <-time.After(10 * time.Millisecond):
		}
		if m, err := s.memory(); err == nil && int64(m) > s.most.Load() {
			s.most.Store(int64(m))
		}
	}
}

func (s *server) forgetPeak() { s.most.Store(0) }

func (s *server) peak() int { return int(s.most.Load()) }

// memory returns the resident memory in MiB.
func (s *server) memory() (int, error) {
	text, err := os.ReadFile(fmt.Sprintf("/proc/%d/statm", s.cmd.Process.Pid))
	if err != nil {
		return 0, errors.New("the server has ended")
	}
	fields := strings.Fields(string(text))
	if len(fields) < 2 {
		return 0, errors.New("the server has ended")
	}
	pages, err := strconv.Atoi(fields[1])
	return pages * os.Getpagesize() >> 20, err
}

// cpu returns the seconds of processor time that the server has taken.
func (s *server) cpu() float64 {
	text, err := os.ReadFile(fmt.Sprintf("/proc/%d/stat", s.cmd.Process.Pid))
	if err != nil {
		return 0
	}
	fields := strings.Fields(string(text[strings.LastIndexByte(string(text), ')')+1:]))
	user, _ := strconv.Atoi(fields[11])
	system, _ := strconv.Atoi(fields[12])
	return float64(user+system) / 100
}

// log returns the end of the server's log.
func (s *server) log() string {
	text, _ := os.ReadFile(s.dir + "/log")
	return string(text[max(0, len(text)-4000):])
}

// ended waits until the process has ended.
func (s *server) ended(within time.Duration) error {
	select {
	case <-s.done:
		return nil
	case <-time.After(within):
		return errors.New("the server does not end")
	}
}

func (s *server) kill() {
	s.cmd.Process.Signal(syscall.SIGTERM)
	if s.ended(3*time.Second) != nil {
		s.cmd.Process.Kill()
		<-s.done
	}
	os.RemoveAll(s.dir)
}
