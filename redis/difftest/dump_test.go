package difftest

import (
	"bytes"
	"fmt"
	"math/rand/v2"
	"slices"
	"testing"

	"github.com/rondo-go/rondo/resp"
)

// TestDump makes random values on redis-server and on package redis, and lets each of them
// restore what both have dumped.
func TestDump(t *testing.T) {
	seed := randomSeedOr()
	for name, family := range randomFamilies {
		t.Run(name, func(t *testing.T) {
			_, clients := pairServers(t)
			r := rand.New(rand.NewPCG(seed, 2))
			for done := 0; done < *randomOps/4; {
				for range 100 {
					batch := family.requests(r)
					done += len(batch)
					for _, request := range batch {
						for _, c := range clients {
							if _, err := c.ask(request...); err != nil {
								t.Fatal(err)
							}
						}
					}
				}
				if err := exchange(clients); err != nil {
					t.Fatalf("-seed %d, after %d requests: %v", seed, done, err)
				}
			}
		})
	}
}

// TestDumpLarge exchanges values that are not small.
func TestDumpLarge(t *testing.T) {
	_, clients := pairServers(t)
	r := rand.New(rand.NewPCG(randomSeedOr(), 3))
	for i := range 3000 {
		element := randomElement(r)
		unique := fmt.Sprint(i, " ", element)
		for _, c := range clients {
			for _, request := range [][]string{
				{"RPUSH", "list", element, unique},
				{"SADD", "set", element, unique},
				{"SADD", "ints", fmt.Sprint(i * i * i)},
				{"ZADD", "zset", fmt.Sprint(i % 50), element, fmt.Sprint(float64(i) / 3), unique},
				{"HSET", "hash", element, unique, unique, element},
				{"APPEND", "string", element},
			} {
				if _, err := c.ask(request...); err != nil {
					t.Fatal(err)
				}
			}
		}
		if i%500 == 0 {
			if err := exchange(clients); err != nil {
				t.Fatal(err)
			}
		}
	}
	if err := exchange(clients); err != nil {
		t.Fatal(err)
	}
}

// exchange dumps each key on both servers, and restores both payloads on both.
func exchange(clients []*client) error {
	keys, err := clients[0].ask("KEYS", "*")
	if err != nil {
		return err
	}
	for _, key := range keys.Elems {
		if slices.Contains(nearKeys, string(key.Str)) {
			continue // stored distances may have another last bit: see package redis
		}
		if err := exchangeKey(clients, string(key.Str)); err != nil {
			return fmt.Errorf("%.100q: %w", key.Str, err)
		}
	}
	return nil
}

func exchangeKey(clients []*client, key string) error {
	want, encoding, err := clients[0].view(key)
	if err != nil {
		return err
	}
	var payloads [2]string
	for i, c := range clients {
		payload, err := c.ask("DUMP", key)
		if err != nil {
			return err
		}
		payloads[i] = string(payload.Str)
	}
	if len(want) < 200 && compact[encoding] && payloads[0] != payloads[1] {
		return fmt.Errorf("dumped as\n%.500x, want\n%.500x", payloads[1], payloads[0])
	}
	for j, payload := range payloads {
		for i, c := range clients {
			if reply, err := c.ask("RESTORE", "copy of a key", "0", payload, "REPLACE"); err != nil || string(reply.Str) != "OK" {
				return fmt.Errorf("server %d refuses what server %d has dumped: %q, %v\n%.500x", i, j, reply.Str, err, payload)
			}
			got, now, err := c.view("copy of a key")
			if err != nil {
				return err
			}
			if i == 0 {
				// The limits may give it another encoding than it had. Without a tree a score
				// has no -0.
				encoding = now
				if bytes.Equal(unsigned(got), unsigned(want)) {
					want = got
				}
			}
			if !bytes.Equal(got, want) || now != encoding {
				return fmt.Errorf("server %d has restored what server %d has dumped as\n%s %.2000q, want\n%s %.2000q", i, j, now, got, encoding, want)
			}
			if _, err := c.ask("DEL", "copy of a key"); err != nil {
				return err
			}
		}
	}
	return nil
}

// unsigned replaces scores of -0 by 0.
func unsigned(view []byte) []byte {
	return bytes.ReplaceAll(view, []byte("$2\r\n-0\r\n"), []byte("$1\r\n0\r\n"))
}

// compact are the encodings whose bytes are the same on both servers. Long ones are
// compressed, and Redis's compressor may use what earlier calls have left in its memory.
var compact = map[string]bool{"listpack": true, "intset": true, "int": true, "embstr": true}

// view returns type and contents of a key, in an order that does not depend on the server,
// and its encoding.
func (c *client) view(key string) (view []byte, encoding string, err error) {
	typ, err := c.ask("TYPE", key)
	if err != nil {
		return nil, "", err
	}
	form, err := c.ask("OBJECT", "ENCODING", key)
	if err != nil {
		return nil, "", err
	}
	read := map[string][]string{
		"string": {"GETRANGE", key, "0", "-1"},
		"list":   {"LRANGE", key, "0", "-1"},
		"set":    {"SMEMBERS", key},
		"hash":   {"HGETALL", key},
		"zset":   {"ZRANGE", key, "0", "-1", "WITHSCORES"},
		"stream": {"XINFO", "STREAM", key, "FULL", "COUNT", "0"},
	}[string(typ.Str)]
	if read == nil {
		return nil, "", fmt.Errorf("type %q", typ.Str)
	}
	content, err := c.ask(read...)
	if err != nil {
		return nil, "", err
	}
	switch string(typ.Str) {
	case "stream":
		if content, err = untimed(content, []string{"seen-time"}); err != nil {
			return nil, "", err
		}
	case "set":
		slices.SortFunc(content.Elems, less)
	case "hash":
		if content, err = sortedPairs(content, nil); err != nil {
			return nil, "", err
		}
	}
	return resp.AppendValue([]byte(string(typ.Str)+" "), content), string(form.Str), nil
}
