package clients

import (
	"bytes"
	"context"
	"crypto/sha256"
	"fmt"
	"slices"
	"sync"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"
)

func TestStrings(t *testing.T) {
	each(t, func(t *testing.T, ctx context.Context, c *redis.Client) {
		equal(t, "OK")(c.Set(ctx, "k", "v1", 0).Result())
		equal(t, "v1")(c.Get(ctx, "k").Result())
		equal(t, "v1")(c.GetSet(ctx, "k", "v2").Result())
		equal(t, false)(c.SetNX(ctx, "k", "v3", 0).Result())
		equal(t, true)(c.SetNX(ctx, "new", "v", time.Minute).Result())
		equal(t, true)(c.SetXX(ctx, "k", "v3", 0).Result())
		equal(t, false)(c.SetXX(ctx, "none", "v", 0).Result())
		equal(t, "v3")(c.SetArgs(ctx, "k", "v4", redis.SetArgs{Get: true}).Result())
		equal(t, 6)(int64AsInt(c.Append(ctx, "k", "more").Result()))
		equal(t, 6)(int64AsInt(c.StrLen(ctx, "k").Result()))
		equal(t, "v4more")(c.GetDel(ctx, "k").Result())
		if _, err := c.Get(ctx, "k").Result(); err != redis.Nil {
			t.Fatalf("a key that is not there: %v, want redis.Nil", err)
		}
		equal(t, "OK")(c.MSet(ctx, "a", "1", "b", "", "c", "\x00\r\n\xff").Result())
		got, err := c.MGet(ctx, "a", "b", "c", "none").Result()
		check(t, err)
		if want := []any{"1", "", "\x00\r\n\xff", nil}; !slices.Equal(got, want) {
			t.Fatalf("MGET %q, want %q", got, want)
		}
	})
}

func TestCounters(t *testing.T) {
	each(t, func(t *testing.T, ctx context.Context, c *redis.Client) {
		equal(t, 1)(int64AsInt(c.Incr(ctx, "n").Result()))
		equal(t, 11)(int64AsInt(c.IncrBy(ctx, "n", 10).Result()))
		equal(t, 10)(int64AsInt(c.Decr(ctx, "n").Result()))
		equal(t, -10)(int64AsInt(c.DecrBy(ctx, "n", 20).Result()))
		check(t, c.Set(ctx, "text", "x", 0).Err())
		fails(t, c.Incr(ctx, "text").Err(), "ERR value is not an integer or out of range")
		check(t, c.Set(ctx, "max", "9223372036854775807", 0).Err())
		fails(t, c.Incr(ctx, "max").Err(), "ERR increment or decrement would overflow")

		var wg sync.WaitGroup
		for range 8 {
			wg.Add(1)
			go func() {
				defer wg.Done()
				for range 250 {
					if err := c.Incr(ctx, "shared").Err(); err != nil {
						t.Error(err)
						return
					}
				}
			}()
		}
		wg.Wait()
		equal(t, "2000")(c.Get(ctx, "shared").Result())
	})
}

func TestKeys(t *testing.T) {
	each(t, func(t *testing.T, ctx context.Context, c *redis.Client) {
		check(t, c.MSet(ctx, "one", 1, "two", 2, "three", 3).Err())
		equal(t, "string")(c.Type(ctx, "one").Result())
		equal(t, "none")(c.Type(ctx, "zero").Result())
		equal(t, 3)(int64AsInt(c.DBSize(ctx).Result()))
		equal(t, 3)(int64AsInt(c.Exists(ctx, "one", "one", "two", "zero").Result()))
		keys, err := c.Keys(ctx, "t*").Result()
		check(t, err)
		slices.Sort(keys)
		if !slices.Equal(keys, []string{"three", "two"}) {
			t.Fatalf("KEYS t*: %q", keys)
		}
		equal(t, 1)(int64AsInt(c.Del(ctx, "one", "zero").Result()))
		equal(t, 2)(int64AsInt(c.Unlink(ctx, "two", "three").Result()))
		equal(t, 0)(int64AsInt(c.DBSize(ctx).Result()))
	})
}

func TestExpiry(t *testing.T) {
	each(t, func(t *testing.T, ctx context.Context, c *redis.Client) {
		check(t, c.Set(ctx, "k", "v", time.Hour).Err())
		between(t, c.TTL(ctx, "k"), 59*time.Minute, time.Hour)
		between(t, c.PTTL(ctx, "k"), 59*time.Minute, time.Hour)
		check(t, c.SetArgs(ctx, "k", "v", redis.SetArgs{KeepTTL: true}).Err())
		between(t, c.TTL(ctx, "k"), 59*time.Minute, time.Hour)
		equal(t, true)(c.Persist(ctx, "k").Result())
		equal(t, time.Duration(-1))(c.TTL(ctx, "k").Result())
		equal(t, time.Duration(-2))(c.TTL(ctx, "none").Result())
		equal(t, true)(c.Expire(ctx, "k", time.Minute).Result())
		equal(t, "v")(c.GetEx(ctx, "k", 2*time.Hour).Result())
		between(t, c.TTL(ctx, "k"), time.Hour, 2*time.Hour)

		// Keys that nobody asks for are to go as well.
		for i := range 100 {
			check(t, c.Set(ctx, fmt.Sprint("short:", i), "v", 50*time.Millisecond).Err())
		}
		equal(t, true)(c.PExpire(ctx, "k", 50*time.Millisecond).Result())
		eventually(t, func() bool { return c.DBSize(ctx).Val() == 0 })
		equal(t, 0)(int64AsInt(c.Exists(ctx, "k").Result()))
	})
}

func TestScan(t *testing.T) {
	each(t, func(t *testing.T, ctx context.Context, c *redis.Client) {
		pipe := c.Pipeline()
		for i := range 1000 {
			pipe.Set(ctx, fmt.Sprint("even:", 2*i), i, 0)
			pipe.Set(ctx, fmt.Sprint("odd:", 2*i+1), i, 0)
		}
		_, err := pipe.Exec(ctx)
		check(t, err)
		for _, count := range []int64{0, 1, 100, 10000} {
			seen := map[string]bool{}
			for it := c.Scan(ctx, 0, "even:*", count).Iterator(); it.Next(ctx); {
				seen[it.Val()] = true
				// Keys that come and go meanwhile must not disturb those that stay.
				if len(seen)%10 == 0 {
					check(t, c.Del(ctx, fmt.Sprint("odd:", len(seen)+1)).Err())
					check(t, c.Set(ctx, fmt.Sprint("late:", len(seen)), "", 0).Err())
				}
			}
			if len(seen) != 1000 {
				t.Errorf("COUNT %d: %d of 1000 keys", count, len(seen))
			}
		}
		if it := c.ScanType(ctx, 0, "*", 100, "list").Iterator(); it.Next(ctx) || it.Err() != nil {
			t.Errorf("SCAN TYPE list found %q, %v", it.Val(), it.Err())
		}
	})
}

func TestBigValues(t *testing.T) {
	each(t, func(t *testing.T, ctx context.Context, c *redis.Client) {
		value := make([]byte, 64<<20)
		for i := range value {
			value[i] = byte(i) ^ byte(i>>8) ^ byte(i>>16)
		}
		check(t, c.Set(ctx, "big", value, 0).Err())
		got, err := c.Get(ctx, "big").Bytes()
		check(t, err)
		if sha256.Sum256(got) != sha256.Sum256(value) {
			t.Fatalf("a value of 64 MiB came back changed, with %d bytes", len(got))
		}
		equal(t, 64<<20+3)(int64AsInt(c.Append(ctx, "big", "end").Result()))
		got, err = c.GetDel(ctx, "big").Bytes()
		check(t, err)
		if !bytes.HasSuffix(got, []byte("end")) || !bytes.Equal(got[:64<<20], value) {
			t.Fatal("a value of 64 MiB came back changed after APPEND")
		}
		equal(t, "PONG")(c.Ping(ctx).Result())
	})
}

func int64AsInt(n int64, err error) (int, error) { return int(n), err }

func between(t *testing.T, cmd *redis.DurationCmd, low, high time.Duration) {
	t.Helper()
	if d, err := cmd.Result(); err != nil || d < low || d > high {
		t.Fatalf("%v: %v, %v; want %v to %v", cmd.Args(), d, err, low, high)
	}
}

// eventually waits for what a server does in its own time.
func eventually(t *testing.T, condition func() bool) {
	t.Helper()
	for end := time.Now().Add(patience); !condition(); {
		if time.Now().After(end) {
			t.Fatal("it did not happen")
		}
		time.Sleep(5 * time.Millisecond)
	}
}
