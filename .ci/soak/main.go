// Soak keeps servers busy for a long time, and looks whether they grow: rondo redis, a server of
// package httpd with WebSocket, and rondo proxy in front of both. The load is mixed (pipelines,
// uploads, downloads, HTTP/2, messages, clients that break off) and bounded. Every answer is
// verified. All is on loopback, and ends by itself.
//
//	soak -rondo PATH -time 30m
//
// It fails if an answer is wrong, a server logs a warning or an error, does not end with status 0,
// or has more memory, goroutines or descriptors at the end than at the beginning.
package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"math/rand/v2"
	"os"
	"os/signal"
	"sync"
	"sync/atomic"
	"syscall"
	"time"
)

var (
	program = flag.String("rondo", "rondo", "the program rondo")
	length  = flag.Duration("time", 30*time.Minute, "how long the load lasts")
	clients = flag.Int("clients", 20, "clients of each kind")
	rest    = flag.Duration("rest", 30*time.Millisecond, "how long a client rests between two requests, on average")
	pause   = flag.String("pause", "", "no client sends anything while this file exists")
	backend = flag.String("backend", "epoll", "backend of the servers")
)

func main() {
	serve := flag.Bool("serve", false, "be the HTTP server: soak starts itself so")
	flag.Parse()
	run := soak
	if *serve {
		run = serveHTTP
	}
	if err := run(); err != nil {
		fmt.Fprintln(os.Stderr, "soak:", err)
		os.Exit(1)
	}
}

func soak() error {
	s, err := startServers()
	if err != nil {
		return err
	}
	defer s.kill()
	time.Sleep(2 * time.Second)
	before := s.sample()
	fmt.Println("at rest  ", before)

	signaled, unnotify := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer unnotify()
	ctx, stop := lasting(signaled, *length)
	defer stop()
	var l load
	l.start(ctx, s)
	samples, err := s.watch(ctx, &l)
	stop()
	l.clients.Wait()
	fmt.Printf("the load: %d requests, %d connections, %d broken off\n", l.requests.Load(), l.conns.Load(), l.broken.Load())
	if err != nil {
		return err
	}
	problems := []error{l.failure(), judge(samples), s.settles(before)}
	fmt.Println("afterward", s.sample())
	return errors.Join(append(problems, s.stop())...)
}

// lasting returns a context that is canceled after d. It has no deadline: package net reports a
// deadline that has passed before the context does, whose timer is late on a busy machine. So the
// dials of the last moment would look as if a server did not answer.
func lasting(parent context.Context, d time.Duration) (ctx context.Context, stop func()) {
	ctx, cancel := context.WithCancel(parent)
	timer := time.AfterFunc(d, cancel)
	return ctx, func() { timer.Stop(); cancel() }
}

// A load is the clients and what they have done.
type load struct {
	clients                 sync.WaitGroup
	requests, conns, broken atomic.Int64

	mu     sync.Mutex
	failed []error
}

// start starts the clients of each kind, directly and through the proxy.
func (l *load) start(ctx context.Context, s *servers) {
	for i := range *clients {
		for _, kind := range []func(*load, context.Context, *target, int){(*load).redis, (*load).http, (*load).websocket, (*load).rude} {
			for _, t := range []*target{s.direct, s.proxied} {
				l.clients.Add(1)
				go func() {
					defer l.clients.Done()
					for ctx.Err() == nil {
						l.conns.Add(1)
						kind(l, ctx, t, i)
						l.rest(ctx)
					}
				}()
			}
		}
	}
}

// rest waits before the next request, and counts the one that is over.
func (l *load) rest(ctx context.Context) {
	l.requests.Add(1)
	d := time.Duration(rand.Int64N(int64(2 * *rest)))
	for {
		select {
		case <-ctx.Done():
			return
		case <-time.After(d):
		}
		if *pause == "" {
			return
		}
		if _, err := os.Stat(*pause); err != nil {
			return
		}
		d = time.Second
	}
}

// fail notes that a server did something wrong.
func (l *load) fail(ctx context.Context, what string, err error) {
	if ctx.Err() != nil {
		return // the client itself has broken off
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	if len(l.failed) < 20 {
		l.failed = append(l.failed, fmt.Errorf("%s: %w", what, err))
		fmt.Println(time.Now().Format(time.TimeOnly), what+":", err)
	}
}

func (l *load) failure() error {
	l.mu.Lock()
	defer l.mu.Unlock()
	return errors.Join(l.failed...)
}
