// Program asynq has asynq's and redsync's clients at work on a Redis server, for the checks of
// applications. It is a module of its own, so that they stay out of the main one.
//
//	REDIS_URL=redis://127.0.0.1:6379/0 asynq worker          works until it is killed
//	asynq features                                           asks workers
//	asynq produce N                                          adds N tasks
//	asynq check N                                            wants them completed
//	asynq redlock ADDRESS,ADDRESS,... FILE N                 counts to N in a file, in turns
//	asynq redlock ADDRESS,ADDRESS,... FILE refused           wants no lock
package main

import (
	"context"
	"fmt"
	"os"
	"strconv"
	"time"

	"github.com/hibiken/asynq"
)

// patience is how long anything may take on a loaded machine before it counts as stuck.
const patience = 5 * time.Minute

func main() {
	if err := run(os.Args[1:]); err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
}

func run(args []string) error {
	if len(args) == 4 && args[0] == "redlock" {
		return redlock(args[1], args[2], args[3])
	}
	server, err := asynq.ParseRedisURI(os.Getenv("REDIS_URL"))
	if err != nil {
		return err
	}
	switch {
	case len(args) == 1 && args[0] == "worker":
		return work(server)
	case len(args) == 1 && args[0] == "features":
		return features(server)
	case len(args) == 2 && (args[0] == "produce" || args[0] == "check"):
		total, err := strconv.Atoi(args[1])
		if err != nil {
			return err
		}
		if args[0] == "produce" {
			return produce(server, total)
		}
		return checkCount(server, total)
	}
	return fmt.Errorf("asynq does not know what %q is", args)
}

// eventually waits until a condition holds.
func eventually(what string, condition func() (bool, error)) error {
	for end := time.Now().Add(patience); ; time.Sleep(20 * time.Millisecond) {
		holds, err := condition()
		if err != nil {
			return fmt.Errorf("%s: %w", what, err)
		}
		if holds {
			return nil
		}
		if time.Now().After(end) {
			return fmt.Errorf("there was not: %s", what)
		}
	}
}

// produce adds tasks from several goroutines.
func produce(server asynq.RedisConnOpt, total int) error {
	const producers = 8
	client := asynq.NewClient(server)
	defer client.Close()
	errs := make(chan error, producers)
	for p := range producers {
		go func() {
			var err error
			for i := p; i < total && err == nil; i += producers {
				id := strconv.Itoa(i)
				_, err = client.EnqueueContext(context.Background(), asynq.NewTask("count", []byte(id)),
					asynq.TaskID("n-"+id), asynq.Queue("count"), asynq.MaxRetry(1000), asynq.Retention(time.Hour))
			}
			errs <- err
		}()
	}
	for range producers {
		if err := <-errs; err != nil {
			return err
		}
	}
	return nil
}

func checkCount(server asynq.RedisConnOpt, total int) error {
	inspector := asynq.NewInspector(server)
	defer inspector.Close()
	var last *asynq.QueueInfo
	err := eventually("all completed", func() (bool, error) {
		q, err := inspector.GetQueueInfo("count")
		if err != nil {
			return false, err
		}
		last = q
		return q.Completed == total && q.Size == total, nil
	})
	if err != nil && last != nil {
		err = fmt.Errorf("%w: of %d completed %d, pending %d, active %d, retry %d, archived %d",
			err, total, last.Completed, last.Pending, last.Active, last.Retry, last.Archived)
	}
	return err
}
