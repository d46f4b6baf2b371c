package main

import (
	"context"
	"errors"
	"fmt"
	"math/rand"
	"os"
	"strings"
	"time"

	"github.com/hibiken/asynq"
)

// ledger is where tasks say that they begin and end; nil without LEDGER.
var ledger *os.File

func note(kind string, id []byte) error {
	// One write, so that lines of several processes do not mix.
	_, err := fmt.Fprintf(ledger, "%s %s\n", kind, id)
	return err
}

// work does tasks until the process is killed.
func work(server asynq.RedisConnOpt) error {
	if name := os.Getenv("LEDGER"); name != "" {
		var err error
		if ledger, err = os.OpenFile(name, os.O_APPEND|os.O_WRONLY, 0); err != nil {
			return err
		}
	}
	mux := asynq.NewServeMux()
	mux.HandleFunc("count", count)
	mux.HandleFunc("echo", echo)
	mux.HandleFunc("flaky", flaky)
	mux.HandleFunc("fails", func(context.Context, *asynq.Task) error { return errors.New("it always fails") })
	mux.HandleFunc("hopeless", func(context.Context, *asynq.Task) error {
		return fmt.Errorf("do not try again: %w", asynq.SkipRetry)
	})
	mux.HandleFunc("slow", slow)
	return asynq.NewServer(server, asynq.Config{
		Concurrency:              20,
		Queues:                   map[string]int{"count": 1, "default": 3, "low": 1},
		RetryDelayFunc:           func(int, error, *asynq.Task) time.Duration { return 100 * time.Millisecond },
		DelayedTaskCheckInterval: 100 * time.Millisecond,
		TaskCheckInterval:        50 * time.Millisecond,
		GroupGracePeriod:         time.Second,
		GroupMaxSize:             5,
		GroupAggregator:          asynq.GroupAggregatorFunc(join),
		LogLevel:                 asynq.WarnLevel,
	}).Run(mux)
}

func count(_ context.Context, t *asynq.Task) error {
	if err := note("b", t.Payload()); err != nil {
		return err
	}
	time.Sleep(time.Duration(rand.Int63n(int64(4 * time.Millisecond))))
	return note("e", t.Payload())
}

func echo(_ context.Context, t *asynq.Task) error {
	_, err := t.ResultWriter().Write(t.Payload())
	return err
}

// flaky fails twice.
func flaky(ctx context.Context, t *asynq.Task) error {
	tries, _ := asynq.GetRetryCount(ctx)
	if tries < 2 {
		return fmt.Errorf("try %d fails", tries)
	}
	return echo(ctx, t)
}

// slow waits until the task is cancelled or its time is over.
func slow(ctx context.Context, _ *asynq.Task) error {
	<-ctx.Done()
	return ctx.Err()
}

func join(group string, tasks []*asynq.Task) *asynq.Task {
	var all []string
	for _, t := range tasks {
		all = append(all, string(t.Payload()))
	}
	return asynq.NewTask("echo", []byte(group+":"+strings.Join(all, "")), asynq.Retention(time.Hour))
}
