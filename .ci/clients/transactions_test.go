package clients

import (
	"context"
	"errors"
	"fmt"
	"strconv"
	"sync"
	"sync/atomic"
	"testing"

	"github.com/redis/go-redis/v9"
)

func TestPipeline(t *testing.T) {
	each(t, func(t *testing.T, ctx context.Context, c *redis.Client) {
		const count = 10_000
		cmds, err := c.Pipelined(ctx, func(p redis.Pipeliner) error {
			for i := range count {
				p.Set(ctx, fmt.Sprint("k", i), i, 0)
				p.Get(ctx, fmt.Sprint("k", i))
			}
			return nil
		})
		check(t, err)
		for i := range count {
			if got := cmds[2*i+1].(*redis.StringCmd).Val(); got != strconv.Itoa(i) {
				t.Fatalf("reply %d is %q: out of order", i, got)
			}
		}

		// An error in the middle is that command's alone.
		cmds, err = c.Pipelined(ctx, func(p redis.Pipeliner) error {
			p.Set(ctx, "text", "x", 0)
			p.Incr(ctx, "text")
			p.Get(ctx, "text")
			return nil
		})
		fails(t, err, "ERR value is not an integer")
		equal(t, "x")(cmds[2].(*redis.StringCmd).Result())
	})
}

func TestTransaction(t *testing.T) {
	each(t, func(t *testing.T, ctx context.Context, c *redis.Client) {
		cmds, err := c.TxPipelined(ctx, func(p redis.Pipeliner) error {
			p.Set(ctx, "k", "1", 0)
			p.Incr(ctx, "k")
			p.Get(ctx, "none")
			return nil
		})
		if err != redis.Nil {
			t.Fatal(err)
		}
		equal(t, 2)(int64AsInt(cmds[1].(*redis.IntCmd).Result()))

		// A command that fails when it runs does not undo the others.
		_, err = c.TxPipelined(ctx, func(p redis.Pipeliner) error {
			p.Set(ctx, "text", "x", 0)
			p.Incr(ctx, "text")
			p.Set(ctx, "after", "1", 0)
			return nil
		})
		fails(t, err, "ERR value is not an integer")
		equal(t, "1")(c.Get(ctx, "after").Result())

		// One that cannot be queued spoils the whole.
		_, err = c.TxPipelined(ctx, func(p redis.Pipeliner) error {
			p.Set(ctx, "after", "2", 0)
			p.Do(ctx, "NOSUCHCOMMAND")
			return nil
		})
		fails(t, err, "EXECABORT Transaction discarded because of previous errors.")
		equal(t, "1")(c.Get(ctx, "after").Result())

		conn := c.Conn()
		defer conn.Close()
		equal(t, any("OK"))(do(ctx, conn, "MULTI").Result())
		equal(t, any("QUEUED"))(do(ctx, conn, "SET", "after", "3").Result())
		equal(t, any("OK"))(do(ctx, conn, "DISCARD").Result())
		equal(t, "1")(c.Get(ctx, "after").Result())
		fails(t, do(ctx, conn, "EXEC").Err(), "ERR EXEC without MULTI")
	})
}

// Eight clients increment one key by WATCH, GET and a transaction, and retry
// when another was first: none of the increments may be lost.
func TestWatchUnderContention(t *testing.T) {
	each(t, func(t *testing.T, ctx context.Context, c *redis.Client) {
		var wg sync.WaitGroup
		var lost atomic.Int64
		increment := func(tx *redis.Tx) error {
			n, err := tx.Get(ctx, "n").Int()
			if err != nil && err != redis.Nil {
				return err
			}
			_, err = tx.TxPipelined(ctx, func(p redis.Pipeliner) error {
				p.Set(ctx, "n", n+1, 0)
				return nil
			})
			return err
		}
		for range 8 {
			wg.Add(1)
			go func() {
				defer wg.Done()
				for done := 0; done < 50; {
					err := c.Watch(ctx, increment, "n")
					switch {
					case err == nil:
						done++
					case errors.Is(err, redis.TxFailedErr):
						lost.Add(1)
					default:
						t.Error(err)
						return
					}
				}
			}()
		}
		wg.Wait()
		equal(t, "400")(c.Get(ctx, "n").Result())
		t.Logf("%d transactions were tried again", lost.Load())

		// One that must fail, whatever the scheduling.
		err := c.Watch(ctx, func(tx *redis.Tx) error {
			check(t, c.Set(ctx, "n", "other", 0).Err())
			_, err := tx.TxPipelined(ctx, func(p redis.Pipeliner) error {
				p.Set(ctx, "n", "mine", 0)
				return nil
			})
			return err
		}, "n")
		if err != redis.TxFailedErr {
			t.Fatalf("a watched key was changed: %v, want TxFailedErr", err)
		}
		equal(t, "other")(c.Get(ctx, "n").Result())
	})
}
