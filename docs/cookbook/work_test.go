package cookbook_test

import (
	"bytes"
	"context"
	"fmt"
	"time"

	"github.com/rondo-go/rondo"
	"github.com/rondo-go/rondo/workers"
)

// openShop answers each line by a slow query. All connections share the pool.
func openShop(pool *workers.Pool) rondo.OpenFunc {
	return pool.Open(func(_ *rondo.Conn, q *workers.Queue) rondo.Handler { return &shop{q} })
}

type shop struct{ queue *workers.Queue }

func (s *shop) Data(_ *rondo.Conn, in []byte) (n int, err error) {
	for {
		end := bytes.IndexByte(in[n:], '\n')
		if end < 0 {
			return n, nil
		}
		item := string(in[n : n+end]) // in is the loop's again when Data returns
		taken := s.queue.Submit(func(ctx context.Context) ([]byte, error) {
			price, err := priceOf(ctx, item)
			return fmt.Appendf(nil, "%s costs %d\n", item, price), err
		})
		if !taken {
			return n, nil // full: Data is called again with the rest
		}
		n += end + 1
	}
}

func (s *shop) Closed(*rondo.Conn, error) {}

// priceOf stands for a query of a database.
func priceOf(_ context.Context, item string) (int, error) {
	time.Sleep(10 * time.Millisecond)
	return 10 * len(item), nil
}
