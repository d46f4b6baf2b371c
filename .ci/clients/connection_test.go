package clients

import (
	"context"
	"fmt"
	"strings"
	"sync"
	"testing"

	"github.com/redis/go-redis/v9"
)

func TestHello(t *testing.T) {
	each(t, func(t *testing.T, ctx context.Context, c *redis.Client) {
		conn := c.Conn()
		defer conn.Close()
		for _, protocol := range []int{3, 2, 3} {
			hello, err := conn.Hello(ctx, protocol, "", "", "tester").Result()
			check(t, err)
			if hello["server"] != "redis" || hello["proto"] != int64(protocol) || hello["role"] != "master" {
				t.Fatalf("HELLO %d: %v", protocol, hello)
			}
		}
		equal(t, "tester")(conn.ClientGetName(ctx).Result())
		fails(t, do(ctx, conn, "HELLO", "4").Err(), "NOPROTO")
	})
}

func TestDatabases(t *testing.T) {
	each(t, func(t *testing.T, ctx context.Context, c *redis.Client) {
		o := *c.Options()
		o.DB = 15
		other := open(t, &o)
		check(t, c.Set(ctx, "k", "0", 0).Err())
		check(t, other.Set(ctx, "k", "15", 0).Err())
		equal(t, "0")(c.Get(ctx, "k").Result())
		equal(t, "15")(other.Get(ctx, "k").Result())
		check(t, c.FlushDB(ctx).Err())
		equal(t, 1)(int64AsInt(other.DBSize(ctx).Result()))
		check(t, c.FlushAll(ctx).Err())
		equal(t, 0)(int64AsInt(other.DBSize(ctx).Result()))
		fails(t, c.Do(ctx, "SELECT", 16).Err(), "ERR DB index is out of range")
	})
}

func TestClient(t *testing.T) {
	each(t, func(t *testing.T, ctx context.Context, c *redis.Client) {
		o := *c.Options()
		o.ClientName = "named"
		named := open(t, &o)
		conn := named.Conn()
		defer conn.Close()
		equal(t, "named")(conn.ClientGetName(ctx).Result())
		id, err := conn.ClientID(ctx).Result()
		check(t, err)
		list, err := c.ClientList(ctx).Result()
		check(t, err)
		if want := fmt.Sprintf("id=%d ", id); !strings.Contains(list, want) || !strings.Contains(list, " name=named ") {
			t.Fatalf("CLIENT LIST without %q: %s", want, list)
		}
		info, err := conn.ClientInfo(ctx).Result()
		check(t, err)
		if info.ID != id || info.Name != "named" {
			t.Fatalf("CLIENT INFO: %+v", info)
		}
		equal(t, true)(conn.ClientSetName(ctx, "renamed").Result())
		equal(t, "renamed")(conn.ClientGetName(ctx).Result())
	})
}

func TestServer(t *testing.T) {
	each(t, func(t *testing.T, ctx context.Context, c *redis.Client) {
		equal(t, "PONG")(c.Ping(ctx).Result())
		equal(t, any("hi"))(c.Echo(ctx, "hi").Result())
		info, err := c.Info(ctx).Result()
		check(t, err)
		for _, want := range []string{"# Server", "redis_version:7.", "# Clients", "connected_clients:"} {
			if !strings.Contains(info, want) {
				t.Errorf("INFO has no %q", want)
			}
		}
		commands, err := c.Command(ctx).Result()
		check(t, err)
		if get := commands["get"]; get == nil || get.Arity != 2 || get.FirstKeyPos != 1 || !get.ReadOnly {
			t.Errorf("COMMAND: get is %+v", get)
		}
		config, err := c.ConfigGet(ctx, "maxmemory").Result()
		check(t, err)
		if len(config) != 1 || config["maxmemory"] == "" {
			t.Errorf("CONFIG GET maxmemory: %v", config)
		}
	})
}

// A password is required from now on, also of clients that are connected, but
// not of those that have given one or needed none when they came.
func TestAuth(t *testing.T) {
	each(t, func(t *testing.T, ctx context.Context, c *redis.Client) {
		admin := c.Conn()
		defer admin.Close()
		check(t, admin.ConfigSet(ctx, "requirepass", "sesame").Err())
		defer func() { check(t, admin.ConfigSet(ctx, "requirepass", c.Options().Password).Err()) }()

		for _, tt := range []struct{ user, password, want string }{
			{"", "", "NOAUTH Authentication required."},
			{"", "wrong", "WRONGPASS invalid username-password pair or user is disabled."},
			{"nobody", "sesame", "WRONGPASS invalid username-password pair or user is disabled."},
			{"", "sesame", ""},
			{"default", "sesame", ""},
		} {
			o := *c.Options()
			o.Username, o.Password = tt.user, tt.password
			err := open(t, &o).Get(ctx, "none").Err()
			if tt.want != "" {
				fails(t, err, tt.want)
			} else if err != redis.Nil {
				t.Fatalf("%s with password %q: %v", tt.user, tt.password, err)
			}
		}
	})
}

func TestManyClients(t *testing.T) {
	each(t, func(t *testing.T, ctx context.Context, c *redis.Client) {
		var wg sync.WaitGroup
		for i := range 200 {
			own := open(t, c.Options())
			wg.Add(1)
			go func() {
				defer wg.Done()
				key := fmt.Sprint("client:", i)
				for n := range 20 {
					if err := own.Set(ctx, key, n, 0).Err(); err != nil {
						t.Error(err)
						return
					}
					if got, err := own.Get(ctx, key).Int(); err != nil || got != n {
						t.Errorf("%s: got %d, %v; want %d", key, got, err, n)
						return
					}
				}
			}()
		}
		wg.Wait()
		equal(t, 200)(int64AsInt(c.DBSize(ctx).Result()))
	})
}
