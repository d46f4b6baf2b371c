package clients

import (
	"context"
	"fmt"
	"slices"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"
)

func TestPubSub(t *testing.T) {
	each(t, func(t *testing.T, ctx context.Context, c *redis.Client) {
		untilNobody(t, ctx, c, "news")
		sub := c.Subscribe(ctx, "news", "weather")
		defer sub.Close()
		confirm(t, ctx, sub, "subscribe", "news", 1)
		confirm(t, ctx, sub, "subscribe", "weather", 2)
		check(t, sub.PSubscribe(ctx, "n?ws*"))
		confirm(t, ctx, sub, "psubscribe", "n?ws*", 3)

		// Once as the channel's subscriber and once as the pattern's.
		equal(t, 2)(int64AsInt(c.Publish(ctx, "news", "hello").Result()))
		receive(t, ctx, sub, redis.Message{Channel: "news", Payload: "hello"})
		receive(t, ctx, sub, redis.Message{Channel: "news", Pattern: "n?ws*", Payload: "hello"})
		equal(t, 0)(int64AsInt(c.Publish(ctx, "sport", "nobody").Result()))

		channels, err := c.PubSubChannels(ctx, "*").Result()
		check(t, err)
		slices.Sort(channels)
		if !slices.Equal(channels, []string{"news", "weather"}) {
			t.Fatalf("PUBSUB CHANNELS: %q", channels)
		}
		counts, err := c.PubSubNumSub(ctx, "news", "sport").Result()
		check(t, err)
		if counts["news"] != 1 || counts["sport"] != 0 {
			t.Fatalf("PUBSUB NUMSUB: %v", counts)
		}
		equal(t, 1)(int64AsInt(c.PubSubNumPat(ctx).Result()))

		check(t, sub.Ping(ctx, "still there"))
		msg, err := sub.Receive(ctx)
		if pong, ok := msg.(*redis.Pong); err != nil || !ok || pong.Payload != "still there" {
			t.Fatalf("PING of a subscriber: %v, %v", msg, err)
		}
		check(t, sub.Unsubscribe(ctx, "weather"))
		confirm(t, ctx, sub, "unsubscribe", "weather", 2)
		check(t, sub.PUnsubscribe(ctx))
		confirm(t, ctx, sub, "punsubscribe", "n?ws*", 1)
	})
}

// untilNobody waits until the server has noticed that earlier subscribers left.
func untilNobody(t *testing.T, ctx context.Context, c *redis.Client, channel string) {
	t.Helper()
	for {
		counts, err := c.PubSubNumSub(ctx, channel).Result()
		check(t, err)
		if counts[channel] == 0 {
			return
		}
		time.Sleep(time.Millisecond)
	}
}

// Every subscriber gets every message once and in order.
func TestPubSubFanOut(t *testing.T) {
	each(t, func(t *testing.T, ctx context.Context, c *redis.Client) {
		const messages = 1000
		var subs []*redis.PubSub
		for range 10 {
			sub := c.Subscribe(ctx, "ticks")
			defer sub.Close()
			confirm(t, ctx, sub, "subscribe", "ticks", 1)
			subs = append(subs, sub)
		}
		_, err := c.Pipelined(ctx, func(p redis.Pipeliner) error {
			for i := range messages {
				p.Publish(ctx, "ticks", i)
			}
			return nil
		})
		check(t, err)
		for _, sub := range subs {
			for i := range messages {
				receive(t, ctx, sub, redis.Message{Channel: "ticks", Payload: fmt.Sprint(i)})
			}
			check(t, sub.Close())
		}
		eventually(t, func() bool { return c.Publish(ctx, "ticks", "").Val() == 0 })
	})
}

func confirm(t *testing.T, ctx context.Context, sub *redis.PubSub, kind, channel string, count int) {
	t.Helper()
	msg, err := sub.Receive(ctx)
	s, ok := msg.(*redis.Subscription)
	if err != nil || !ok || *s != (redis.Subscription{Kind: kind, Channel: channel, Count: count}) {
		t.Fatalf("got %v, %v; want %s %s %d", msg, err, kind, channel, count)
	}
}

func receive(t *testing.T, ctx context.Context, sub *redis.PubSub, want redis.Message) {
	t.Helper()
	msg, err := sub.Receive(ctx)
	m, ok := msg.(*redis.Message)
	if err != nil || !ok || m.Channel != want.Channel || m.Pattern != want.Pattern || m.Payload != want.Payload {
		t.Fatalf("got %v, %v; want %v", msg, err, &want)
	}
}
