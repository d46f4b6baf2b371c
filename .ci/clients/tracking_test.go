package clients

import (
	"context"
	"crypto/tls"
	"fmt"
	"net"
	"os"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/redis/rueidis"
)

// caching returns a client that keeps what it has read until the server says that it has
// changed. rueidis reads within a transaction, behind CLIENT CACHING YES, or tracks prefixes.
func caching(t *testing.T, tracking ...string) rueidis.Client {
	t.Helper()
	addr := os.Getenv("RONDO_ADDR")
	c, err := rueidis.NewClient(rueidis.ClientOption{
		InitAddress: []string{addr},
		DialFn: func(_ string, d *net.Dialer, _ *tls.Config) (net.Conn, error) {
			if strings.HasPrefix(addr, "/") {
				return d.Dial("unix", addr)
			}
			return d.Dial("tcp", addr)
		},
		Password:              os.Getenv("RONDO_PASSWORD"),
		ClientTrackingOptions: tracking,
		ForceSingleClient:     true,
	})
	check(t, err)
	t.Cleanup(c.Close)
	return c
}

// TestClientSideCaching has clients that read a few keys from their caches while others write them.
// Each must see every key's last value soon, and most reads must not reach the server.
func TestClientSideCaching(t *testing.T) {
	ctx, cancel := context.WithTimeout(context.Background(), patience)
	defer cancel()
	plain := open(t, options(3))
	check(t, plain.FlushAll(ctx).Err())
	readers := []rueidis.Client{
		caching(t), caching(t), caching(t, "OPTIN", "NOLOOP"), caching(t, "BCAST", "PREFIX", "k"), caching(t, "OPTOUT"),
	}
	const keys, rounds = 10, 100
	for round := range rounds {
		for key := range keys {
			check(t, plain.Set(ctx, fmt.Sprint("k", key), round, 0).Err())
		}
		var wg sync.WaitGroup
		for i, c := range readers {
			wg.Add(1)
			go func() {
				defer wg.Done()
				for key := range keys {
					name := fmt.Sprint("k", key)
					for {
						v, err := c.DoCache(ctx, c.B().Get().Key(name).Cache(), time.Hour).AsInt64()
						if err != nil {
							t.Errorf("client %d: %s: %v", i, name, err)
							return
						}
						if v == int64(round) {
							break
						}
					}
				}
			}()
		}
		wg.Wait()
		if t.Failed() {
			return
		}
	}
	for i, c := range readers {
		hit := c.DoCache(ctx, c.B().Get().Key("k0").Cache(), time.Hour)
		if !hit.IsCacheHit() {
			t.Errorf("client %d asked the server for what it had", i)
		}
	}
	check(t, plain.FlushAll(ctx).Err())
	for i, c := range readers {
		for {
			err := c.DoCache(ctx, c.B().Get().Key("k0").Cache(), time.Hour).Error()
			if rueidis.IsRedisNil(err) {
				break
			}
			if err != nil {
				t.Fatalf("client %d: %v", i, err)
			}
		}
	}
}
