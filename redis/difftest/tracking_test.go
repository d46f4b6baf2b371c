package difftest

import (
	"fmt"
	"math/rand/v2"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/rondo-go/rondo/resp"
)

// trackerModes are the options of the clients that track keys, with the protocols of their
// connection and of the one that gets the messages, if that is another one.
var trackerModes = []struct{ options, proto, to string }{
	{"", "3", ""},
	{"NOLOOP", "3", ""},
	{"OPTIN", "3", ""},
	{"OPTOUT", "3", ""},
	{"BCAST", "3", ""},
	{"BCAST NOLOOP PREFIX key1 PREFIX key2 PREFIX key3", "3", ""},
	{"", "2", "2"},
	{"NOLOOP", "2", "3"},
	{"BCAST PREFIX key", "2", "2"},
}

// A tracker is a client of both servers that tracks keys, and what it has been told since.
type tracker struct {
	asks, gets []*client
	told       [2][]string
}

// TestTracking lets clients of all modes send the same random requests to redis-server and to
// package redis, and compares what they are told about keys after each.
func TestTracking(t *testing.T) {
	seed := randomSeedOr()
	for name, family := range randomFamilies {
		t.Run(name, func(t *testing.T) {
			servers, writers := pairServers(t)
			x := &trackers{r: rand.New(rand.NewPCG(seed, 3)), family: family}
			x.all = append(x.all, &tracker{asks: writers, gets: writers})
			for _, mode := range trackerModes {
				x.all = append(x.all, newTracker(t, servers, mode.options, mode.proto, mode.to))
			}
			ops := *randomOps / 50
			if testing.Short() {
				ops = min(ops, 100)
			}
			for range ops {
				if err := x.step(); err != nil {
					t.Fatalf("-seed %d: %v\nafter\n%s", seed, err, strings.Join(x.sent[max(0, len(x.sent)-20):], "\n"))
				}
				x.sent = x.sent[max(0, len(x.sent)-100):]
			}
			if x.messages < ops/10 {
				t.Errorf("only %d messages in %d steps", x.messages, ops)
			}
		})
	}
}

func newTracker(t *testing.T, servers []*server, options, proto, to string) *tracker {
	x := new(tracker)
	for _, s := range servers {
		asks := dial(t, s)
		gets := asks
		request := append([]string{"CLIENT", "TRACKING", "ON"}, strings.Fields(options)...)
		mustAsk(t, asks, "HELLO", proto)
		if to != "" {
			gets = dial(t, s)
			mustAsk(t, gets, "HELLO", to)
			id := mustAsk(t, gets, "CLIENT", "ID").Int
			mustAsk(t, gets, "SUBSCRIBE", "__redis__:invalidate")
			request = append(request, "REDIRECT", strconv.FormatInt(id, 10))
		}
		if v := mustAsk(t, asks, request...); v.Kind == resp.Error {
			t.Fatalf("%q: %s", request, v.Str)
		}
		x.asks, x.gets = append(x.asks, asks), append(x.gets, gets)
	}
	return x
}

func mustAsk(t *testing.T, c *client, request ...string) resp.Value {
	t.Helper()
	v, err := c.ask(request...)
	if err != nil {
		t.Fatal(err)
	}
	return v
}

// trackers sends the requests. The first of all tracks nothing.
type trackers struct {
	r        *rand.Rand
	family   randomFamily
	all      []*tracker
	sent     []string
	messages int
}

// step lets one client send requests that belong together, sometimes in a transaction, and
// compares what all are told.
func (x *trackers) step() error {
	n := x.r.IntN(len(x.all))
	var batch [][]string
	if x.r.IntN(3) == 0 {
		batch = append(batch, []string{"CLIENT", "CACHING", pick(x.r, "YES", "NO")})
	}
	multi := x.r.IntN(4) == 0
	if multi {
		batch = append(batch, []string{"MULTI"})
	}
	for range 1 + x.r.IntN(3) {
		for _, request := range x.family.requests(x.r) {
			if !leftOut(request) && (!multi || !strings.EqualFold(request[0], "HELLO")) {
				batch = append(batch, request)
			}
		}
	}
	if x.r.IntN(60) == 0 {
		batch = append(batch, []string{pick(x.r, "FLUSHALL", "FLUSHDB")})
	}
	if multi {
		batch = append(batch, []string{"EXEC"})
	}
	for _, request := range batch {
		x.sent = append(x.sent, fmt.Sprintf("%d: %.200q", n, request))
		if err := x.all[n].send(request); err != nil {
			return err
		}
		if err := x.settle(); err != nil {
			return err
		}
	}
	return nil
}

// leftOut reports whether a request may make keys expire, since the servers decide when exactly,
// or is one of which Redis tells nobody.
func leftOut(request []string) bool {
	return slices.ContainsFunc(request, func(word string) bool {
		word = strings.ToUpper(word)
		return strings.Contains(word, "EXPIRE") || slices.Contains([]string{"EX", "PX", "EXAT", "PXAT", "GETEX", "SETEX", "PSETEX", "RESTORE", "RESET", "SWAPDB"}, word)
	})
}

// settle gets the messages of all clients.
func (x *trackers) settle() error {
	for i, t := range x.all {
		for j, c := range t.gets {
			if err := t.until(j, c, []string{"PING", "end"}); err != nil {
				return err
			}
		}
		x.messages += len(t.told[0])
		if !slices.Equal(t.told[0], t.told[1]) {
			return fmt.Errorf("client %d is told\n%s\nwant\n%s", i, strings.Join(t.told[1], "\n"), strings.Join(t.told[0], "\n"))
		}
		t.told = [2][]string{}
	}
	return nil
}

// send sends a request to both servers.
func (t *tracker) send(request []string) error {
	for j, c := range t.asks {
		if err := t.until(j, c, request); err != nil {
			return err
		}
	}
	return nil
}

// until sends a request, and keeps the messages until its reply comes.
func (t *tracker) until(server int, c *client, request []string) error {
	c.SetDeadline(time.Now().Add(patience))
	if _, err := c.Write(resp.AppendRequest(nil, request...)); err != nil {
		return err
	}
	for {
		reply, err := c.one()
		if err != nil {
			return err
		}
		if reply[0] != '>' && !strings.HasPrefix(string(reply), "*3\r\n$7\r\nmessage\r\n") {
			return nil
		}
		message := fmt.Sprintf("%q", reply)
		// Redis writes null in the version of the tracking client, not in that of this connection.
		message = strings.Replace(message, `>2\r\n$10\r\ninvalidate\r\n$-1\r\n`, `>2\r\n$10\r\ninvalidate\r\n_\r\n`, 1)
		t.told[server] = append(t.told[server], message)
	}
}
