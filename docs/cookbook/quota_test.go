package cookbook_test

import (
	"bufio"
	"context"
	"fmt"
	"net"

	"github.com/rondo-go/rondo/coro"
	"github.com/rondo-go/rondo/redis"
)

// A quota gives each address so many requests a minute. The counts are keys that expire,
// in a Redis server within the program: nobody else can connect to it.
type quota struct {
	most   int64
	counts *redis.Client
}

func newQuota(most int64) (*quota, error) {
	server := &redis.Server{MaxMemory: 64 << 20}
	counts, err := server.NewClient()
	return &quota{most, counts}, err
}

// allow counts a request of an address.
func (q *quota) allow(ctx context.Context, address string) (bool, error) {
	n, err := q.counts.Do(ctx, "INCR", address)
	if err == nil && n.Int == 1 {
		_, err = q.counts.Do(ctx, "EXPIRE", address, "60")
	}
	return n.Int <= q.most, err
}

// serve is a coroutine: coro.Handler(q.serve). Do waits for the server's loop, so Await
// calls it on another goroutine.
func (q *quota) serve(co *coro.Co, c net.Conn) error {
	address, _, _ := net.SplitHostPort(c.RemoteAddr().String())
	for lines := bufio.NewScanner(c); lines.Scan(); {
		ok, err := coro.Await(co, func() (bool, error) { return q.allow(context.Background(), address) })
		if err != nil {
			return err
		}
		if !ok {
			fmt.Fprintln(c, "too many requests")
			return nil
		}
		fmt.Fprintf(c, "%s\n", lines.Bytes())
	}
	return nil
}
