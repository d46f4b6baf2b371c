package redis

import (
	"fmt"
	"math/rand/v2"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/rondo-go/rondo/resp"
	"github.com/rondo-go/rondo/rondotest"
)

// netCache is a client on a network that reads and changes keys in pipelines, and keeps what
// it has read until it is told otherwise.
type netCache struct {
	peer
	options string
	in      []byte
	sent    []string // keys that are read, in the order of the replies; "": no key
	values  map[string]string
}

func (c *netCache) send(r *rand.Rand) {
	var out []byte
	for range 1 + r.IntN(8) {
		key := "k" + strconv.Itoa(r.IntN(6))
		if r.IntN(3) > 0 {
			out = resp.AppendRequest(out, "GET", key)
			c.sent = append(c.sent, key)
			continue
		}
		request := []string{"SET", key, strconv.Itoa(r.IntN(1000))}
		switch r.IntN(8) {
		case 0:
			request = []string{"DEL", key}
		case 1:
			request = []string{"RENAME", key, "k0"}
		case 2:
			request = []string{"FLUSHALL"}
		}
		out = resp.AppendRequest(out, request...)
		c.sent = append(c.sent, "")
	}
	c.Send(string(out))
}

// receive takes what has arrived. The connection's bytes are in order: so what the client knows
// at any moment is what the server had at one.
func (c *netCache) receive() {
	b := make([]byte, c.Buffered())
	n, _ := c.Read(b)
	c.in = append(c.in, b[:n]...)
	for len(c.in) > 0 {
		v, n, _, err := resp.ReadValue(c.in)
		if err != nil {
			c.t.Fatalf("%q: %v", c.in, err)
		}
		if n == 0 {
			return
		}
		c.in = c.in[n:]
		switch {
		case v.Kind != resp.Push:
			if key := c.sent[0]; key != "" && (key[1] < '3' || !strings.Contains(c.options, "PREFIX")) {
				c.values[key] = string(v.Str)
			}
			c.sent = c.sent[1:]
		case v.Elems[1].Elems == nil:
			clear(c.values)
		}
		if v.Kind == resp.Push {
			for _, key := range v.Elems[1].Elems {
				delete(c.values, string(key.Str))
			}
		}
	}
}

// Clients on several loops send pipelines at the same time. When all is quiet, each has no value
// but the present ones.
func TestNetworkTrackedCaches(t *testing.T) {
	seeds(t, 20, func(t *testing.T, net *rondotest.Network, loops int) {
		serve(t, net, loops, &Server{})
		r := rand.New(rand.NewPCG(net.Seed(), uint64(loops)))
		var caches []*netCache
		for _, options := range []string{"", "", "BCAST", "BCAST", "BCAST PREFIX k0 PREFIX k1 PREFIX k2", "OPTOUT"} {
			c := &netCache{peer: dial(t, net), options: options, values: map[string]string{}}
			c.request("HELLO 3")
			c.request("CLIENT TRACKING ON " + options)
			net.Run()
			c.Read(make([]byte, c.Buffered()))
			caches = append(caches, c)
		}
		checker := dial(t, net)
		kept := 0
		for range 40 {
			for range 5 {
				for range 1 + r.IntN(4) {
					caches[r.IntN(len(caches))].send(r)
				}
				if r.IntN(2) == 0 {
					net.Run()
				}
				caches[r.IntN(len(caches))].receive()
			}
			for range 8 {
				net.Advance(10 * time.Millisecond) // Run would stop at a timer of the server
				for _, c := range caches {
					c.receive() // which makes room for more
				}
			}
			for _, c := range caches {
				if len(c.sent) > 0 {
					t.Fatalf("seed %d: %d replies are missing of %s: %q", net.Seed(), len(c.sent), c.options, c.in)
				}
				for key, value := range c.values {
					kept++
					want := "$" + strconv.Itoa(len(value)) + " " + value
					if value == "" {
						want = "$-1"
					}
					checker.do("GET "+key, want)
				}
			}
		}
		if kept == 0 {
			t.Errorf("seed %d: no client ever kept a key", net.Seed())
		}
	})
}

// A client that wants all changes and does not read them is cut off.
func TestNetworkTrackingBySlowClient(t *testing.T) {
	seeds(t, 6, func(t *testing.T, net *rondotest.Network, loops int) {
		s := &Server{}
		serve(t, net, loops, s)
		slow, writer, reader := dial(t, net), dial(t, net), dial(t, net)
		writer.do(`CONFIG SET client-output-buffer-limit "normal 2000000 0 0"`, "+OK")
		for _, p := range []peer{slow, reader} {
			p.request("HELLO 3")
			p.request("CLIENT TRACKING ON BCAST PREFIX k")
			net.Run()
			p.Read(make([]byte, p.Buffered()))
		}
		key := "k" + strings.Repeat("x", 10_000)
		message := fmt.Sprintf(">2 $10 invalidate *1 $%d %s", len(key), key)
		for range 300 {
			writer.do("SET "+key+" v", "+OK")
			reader.expect(message)
		}
		net.Advance(time.Second)
		if n, tracking := len(s.clients.list), s.tracking.clients; n != 2 || tracking != 1 {
			t.Errorf("seed %d: %d clients are left, want 2; %d track, want 1", net.Seed(), n, tracking)
		}
	})
}

// The client that gets another one's messages vanishes.
func TestNetworkTrackingRedirectVanishes(t *testing.T) {
	seeds(t, 6, func(t *testing.T, net *rondotest.Network, loops int) {
		serve(t, net, loops, &Server{})
		to, c, writer := dial(t, net), dial(t, net), dial(t, net)
		to.do("CLIENT ID", ":1")
		to.do("SUBSCRIBE __redis__:invalidate", "*3 $9 subscribe $20 __redis__:invalidate :1")
		c.do("CLIENT TRACKING ON REDIRECT 1", "+OK")
		c.do("GET k", "$-1")
		writer.do("SET k 1", "+OK")
		to.expect("*3 $7 message $20 __redis__:invalidate *1 $1 k")
		c.do("GET k", "$1 1")
		to.Reset()
		net.Run()
		writer.do("SET k 2", "+OK")
		c.do("GET k", "$1 2")
		c.do("CLIENT TRACKINGINFO", "*6 $5 flags *2 $2 on $15 broken_redirect $8 redirect :1 $8 prefixes *0")
		c.request("HELLO 3")
		net.Run()
		c.Read(make([]byte, c.Buffered()))
		writer.do("SET k 3", "+OK")
		c.expect(">2 $21 tracking-redir-broken :1")
	})
}

// TestTrackingTableSize states what the table takes: some 24 bytes and the key's length for a key,
// and 4 for each client.
func TestTrackingTableSize(t *testing.T) {
	const keys, clients = 20_000, 100
	var table trackingTable
	alive := func(uint32) bool { return true }
	add := func(first, last int) int64 {
		for client := first; client <= last; client++ {
			for key := range keys {
				table.add(fmt.Appendf(nil, "key:%06d", key), uint32(client), alive)
			}
		}
		return table.used()
	}
	one, all := add(1, 1), add(2, clients)
	if each := float64(one) / keys; each > 44 {
		t.Errorf("a key of 10 bytes takes %.1f bytes", each)
	}
	if each := float64(all-one) / keys / (clients - 1); each > 6 {
		t.Errorf("each further client of a key takes %.2f bytes", each)
	}
	t.Logf("a key of 10 bytes: %.1f bytes; each further client: %.2f", float64(one)/keys, float64(all-one)/keys/(clients-1))
	if table.items != keys*clients || table.len() != keys {
		t.Errorf("%d items of %d keys", table.items, table.len())
	}
	for key := range keys {
		if tokens := table.take(fmt.Appendf(nil, "key:%06d", key), nil); len(tokens) != clients || tokens[0] != 1 || tokens[clients-1] != clients {
			t.Fatalf("key %d has the clients %v", key, tokens)
		}
	}
	if table.items != 0 || table.len() != 0 {
		t.Errorf("%d items of %d keys are left", table.items, table.len())
	}
}
