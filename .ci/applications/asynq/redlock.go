package main

import (
	"errors"
	"fmt"
	"os"
	"strconv"
	"strings"
	"time"

	"github.com/go-redsync/redsync/v4"
	redsyncredis "github.com/go-redsync/redsync/v4/redis"
	"github.com/go-redsync/redsync/v4/redis/goredis/v9"
	"github.com/redis/go-redis/v9"
)

// redlock counts in a file, one at a time with other processes, by a lock that most of the
// servers must give.
func redlock(addresses, file, times string) error {
	var pools []redsyncredis.Pool
	for _, address := range strings.Split(addresses, ",") {
		client := redis.NewClient(&redis.Options{Addr: address, MaxRetries: -1})
		defer client.Close()
		pools = append(pools, goredis.NewPool(client))
	}
	locks := redsync.New(pools...)
	if times == "refused" {
		err := locks.NewMutex("refused", redsync.WithTries(3)).Lock()
		if err == nil {
			return errors.New("a minority of the servers gave the lock")
		}
		return nil
	}
	n, err := strconv.Atoi(times)
	if err != nil {
		return err
	}
	for range n {
		mutex := locks.NewMutex("counter", redsync.WithExpiry(patience), redsync.WithTries(100_000),
			redsync.WithRetryDelay(5*time.Millisecond))
		if err := mutex.Lock(); err != nil {
			return err
		}
		if err := increment(file); err != nil {
			return err
		}
		if ok, err := mutex.Extend(); !ok && !died(err) {
			return fmt.Errorf("extending: %w", err)
		}
		if ok, err := mutex.Unlock(); !ok && !died(err) {
			return fmt.Errorf("unlocking: %w", err)
		}
	}
	return nil
}

// died tells whether a lock is too few servers' because one is dead. Of a lock that three of five
// gave, two are left then. They still refuse it to everybody else: what it guards was guarded.
func died(err error) bool {
	var dead *redsync.RedisError
	return errors.As(err, &dead)
}

// increment counts one in a file. Only a lock keeps others from doing it at the same time.
func increment(file string) error {
	text, err := os.ReadFile(file)
	if err != nil {
		return err
	}
	n, err := strconv.Atoi(string(text))
	if err != nil {
		return err
	}
	time.Sleep(time.Millisecond)
	return os.WriteFile(file, []byte(strconv.Itoa(n+1)), 0o644)
}
