package difftest

import (
	"bytes"
	"flag"
	"fmt"
	"math/rand/v2"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/rondo-go/rondo/resp"
)

var (
	randomOps  = flag.Int("random", 20_000, "how many random requests of each family to compare, with each protocol")
	randomSeed = flag.Uint64("seed", 0, "seed of the random requests; 0: any")
)

// A randomFamily makes random requests.
type randomFamily struct {
	// requests returns requests that belong together: usually one.
	requests func(r *rand.Rand) [][]string
	// normal returns the normal form in which replies to a request are compared. nil, or
	// a returned "": the bytes as they are.
	normal func(request []string) string
}

// randomFamilies are filled by the init functions of the families' files.
var randomFamilies = map[string]randomFamily{}

// TestRandom sends the same random requests to redis-server and to package redis, and
// compares the replies.
func TestRandom(t *testing.T) {
	path, reason := findReference()
	if path == "" {
		t.Skip(reason)
	}
	seed := randomSeedOr()
	for name, family := range randomFamilies {
		for _, proto := range []string{"2", "3"} {
			t.Run(name+"/RESP"+proto, func(t *testing.T) {
				servers := []*server{startReference(t, path, ""), startRondo(t, "", 1, "")}
				r := rand.New(rand.NewPCG(seed, uint64(len(proto))))
				if err := family.compare(servers, r, proto); err != nil {
					t.Fatalf("-seed %d: %v", seed, err)
				}
			})
		}
	}
}

// compare sends random requests to two servers until their replies differ.
func (f *randomFamily) compare(servers []*server, r *rand.Rand, proto string) error {
	var clients []*client
	for _, s := range servers {
		c, err := s.dial("")
		if err != nil {
			return err
		}
		defer c.Close()
		clients = append(clients, c)
	}
	var sent []string
	batch := [][]string{{"FLUSHALL"}, {"HELLO", proto}, {"CLIENT", "ID"}}
	masks := []string{"", "masked id version", "kind"}
	ops := *randomOps
	if testing.Short() {
		ops = min(ops, 2000)
	}
	for done := 0; done < ops; done += len(batch) {
		if done > 0 {
			batch, masks = nil, nil
			for size := 1 + r.IntN(60); len(batch) < size; {
				batch = append(batch, f.requests(r)...)
			}
		}
		var b []byte
		for _, request := range batch {
			b = resp.AppendRequest(b, request...)
			sent = append(sent, fmt.Sprintf("%.300s", fmt.Sprintf("%q", request)))
		}
		for _, c := range clients {
			c.SetDeadline(time.Now().Add(patience))
			if _, err := c.Write(b); err != nil {
				return err
			}
		}
		for i, request := range batch {
			normal := ""
			if masks != nil {
				normal = masks[i]
			} else if f.normal != nil {
				normal = f.normal(request)
			}
			if err := sameReply(clients, normal); err != nil {
				at := len(sent) - len(batch) + i + 1
				return fmt.Errorf("request %d: %.10000q: %w\nafter\n%s", at, request, err, strings.Join(sent[max(0, at-20):at-1], "\n"))
			}
		}
		sent = slices.Delete(sent, 0, max(0, len(sent)-100))
	}
	return nil
}

// sameReply reads a reply from the reference and one from the other server, and compares
// them.
func sameReply(clients []*client, normal string) error {
	var replies [2][]byte
	for i, c := range clients {
		reply, err := c.one()
		if err != nil {
			return fmt.Errorf("%s: %w", [...]string{"redis-server", "rondo"}[i], err)
		}
		if err != nil {
			return err
		}
		if replies[i], err = normalize(normal, reply); err != nil {
			return err
		}
	}
	if !bytes.Equal(replies[0], replies[1]) {
		return fmt.Errorf("%s", difference(replies[1], replies[0], nil))
	}
	return nil
}

// pick returns one of some words.
func pick(r *rand.Rand, words ...string) string { return words[r.IntN(len(words))] }

// randomKey returns one of a few keys.
func randomKey(r *rand.Rand) string { return "key" + strconv.Itoa(r.IntN(6)) }

// randomNumber returns a number as text: mostly a small one, sometimes none at all.
func randomNumber(r *rand.Rand) string {
	switch r.IntN(60) {
	case 0:
		return pick(r, "", "x", "1.5", " 1", "01", "+1", "-0", "1e3")
	case 1:
		return pick(r, "9223372036854775807", "-9223372036854775808", "9223372036854775808", "-9223372036854775807", "4294967296", "2147483648")
	case 2, 3, 4, 5:
		return strconv.Itoa(r.IntN(2000) - 1000)
	}
	return strconv.Itoa(r.IntN(12) - 4)
}

// randomElement returns the text of an element, in all encodings of a listpack.
func randomElement(r *rand.Rand) string {
	switch r.IntN(20) {
	case 0:
		return ""
	case 1:
		return strconv.FormatInt(int64(r.Uint64())>>r.IntN(64), 10)
	case 2:
		return strings.Repeat(pick(r, "x", "yz", "\x00"), r.IntN(200))
	case 3:
		if r.IntN(10) == 0 {
			return strings.Repeat("long", r.IntN(3000))
		}
	case 4:
		return pick(r, "a\r\nb", "\xff\x00", "-1", "1.5", "007")
	}
	return pick(r, "a", "b", "c", "d", "e", "1", "2", "100")
}

// randomWords returns n to m words that f makes.
func randomWords(r *rand.Rand, n, m int, f func(*rand.Rand) string) (words []string) {
	for range n + r.IntN(m-n+1) {
		words = append(words, f(r))
	}
	return words
}
