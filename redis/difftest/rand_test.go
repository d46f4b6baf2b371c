package difftest

import (
	"bytes"
	"fmt"
	"math/rand/v2"
	"os"
	"strconv"
	"testing"

	"github.com/rondo-go/rondo/resp"
)

func TestRandom(t *testing.T) {
	path, _ := findReference()
	ref := startReference(t, path, "")
	seeds, _ := strconv.Atoi(os.Getenv("SEEDS"))
	seen := map[string]bool{}
	for _, e := range []struct {
		b string
		l int
	}{{"", 1}, {"", 3}} {
		ron := startRondo(t, e.b, e.l, "")
		for seed := 0; seed < seeds; seed++ {
			random(t, ref, ron, uint64(seed), seen)
		}
	}
}

var cmds = []string{"GET", "SET", "SETNX", "SETEX", "PSETEX", "GETSET", "GETDEL", "GETEX", "MGET", "MSET", "MSETNX", "APPEND", "STRLEN", "INCR", "DECR", "INCRBY", "DECRBY", "GETRANGE", "SETRANGE", "SUBSTR",
	"DEL", "UNLINK", "EXISTS", "TOUCH", "TYPE", "RENAME", "RENAMENX", "EXPIRE", "PEXPIRE", "EXPIREAT", "PEXPIREAT", "EXPIRETIME", "PEXPIRETIME", "PERSIST", "DBSIZE", "SELECT", "FLUSHDB", "FLUSHALL", "MULTI", "EXEC", "DISCARD", "WATCH", "UNWATCH", "MULTI", "EXEC", "EXEC",
	"PING", "ECHO", "RESET", "SUBSCRIBE", "UNSUBSCRIBE", "PSUBSCRIBE", "PUNSUBSCRIBE", "PUBSUB", "CLIENT", "HELLO", "CONFIG", "COMMAND", "AUTH", "SCAN", "KEYS", "FUNCTION", "DEBUG", "INFO", "NOSUCH", "TTL"}
var words = []string{"a", "b", "c", "k", "a", "b", "k", "", "0", "1", "-1", "2", "10", "3", "100", "abc", "12345678901234567890", "9223372036854775807", "-9223372036854775808", "NX", "XX", "GT", "LT", "EX", "PX", "EXAT", "PXAT", "KEEPTTL", "PERSIST", "GET", "get", "nx",
	"4102444800", "4102444800123", "*", "a*", "[ab]", "COUNT", "MATCH", "TYPE", "string", "ASYNC", "SYNC", "1.5", " 1", "+1", "01", "\x00", "x\r\ny", "CHANNELS", "NUMSUB", "NUMPAT", "SETNAME", "GETNAME", "REPLY", "ON", "INFO", "LIST", "ID", "DOCS", "COUNT", "GETKEYS", "timeout", "maxmemory", "FLUSH", "AUTH", "default", "LOG", "SLEEP"}

func random(t *testing.T, ref, ron *server, seed uint64, seen map[string]bool) {
	r := rand.New(rand.NewPCG(seed, 7))
	var a, b [2]*client
	for i := range 2 {
		var err error
		if a[i], err = ref.dial(""); err != nil {
			t.Fatal(err)
		}
		defer a[i].Close()
		if b[i], err = ron.dial(""); err != nil {
			t.Fatal(err)
		}
		defer b[i].Close()
	}
	ask := func(c *client, req []byte) []byte {
		c.Write(req)
		reply, err := c.one()
		if err != nil {
			return []byte("ERROR " + err.Error())
		}
		return reply
	}
	for _, c := range []*client{a[0], b[0]} {
		ask(c, resp.AppendRequest(nil, "FLUSHALL"))
	}
	var hist []string
	for n := 0; n < 60; n++ {
		who := r.IntN(2)
		args := []string{cmds[r.IntN(len(cmds))]}
		for range r.IntN(5) {
			args = append(args, words[r.IntN(len(words))])
		}
		switch args[0] {
		case "SUBSCRIBE", "UNSUBSCRIBE", "PSUBSCRIBE", "PUNSUBSCRIBE":
			args = args[:min(2, len(args))]
			if len(args) == 1 && args[0][0] != 'S' && args[0][:2] != "PS" {
				continue
			}
		case "CLIENT":
			if len(args) > 1 && (args[1] == "REPLY" || args[1] == "INFO" || args[1] == "LIST" || args[1] == "ID") {
				continue
			}
		case "HELLO", "INFO", "SCAN", "KEYS", "DEBUG", "TTL", "COMMAND":
			if len(args) < 3 || args[0] == "HELLO" && r.IntN(3) > 0 {
				continue
			}
			if args[0] == "COMMAND" && args[1] == "LIST" || args[0] == "INFO" || args[0] == "COMMAND" && args[1] == "DOCS" {
				continue
			}
		}
		req := resp.AppendRequest(nil, args...)
		hist = append(hist, fmt.Sprintf("%d> %q", who, args))
		x, y := ask(a[who], req), ask(b[who], req)
		if args[0] == "HELLO" || args[0] == "EXEC" {
			x, _ = normalize("masked id", x)
			y, _ = normalize("masked id", y)
		}
		if args[0] == "KEYS" {
			x, _ = normalize("sorted", x)
			y, _ = normalize("sorted", y)
		}
		if args[0] == "SCAN" && len(x) > 40 {
			x, y = nil, nil
		}
		if args[0] == "CONFIG" && bytes.HasPrefix(x, []byte("*")) && len(x) > 100 {
			x, y = nil, nil
		}
		if !bytes.Equal(x, y) {
			key := fmt.Sprintf("%s %.30q %.30q", args[0], x, y)
			if !seen[key] {
				seen[key] = true
				if len(hist) > 12 {
					hist = hist[len(hist)-12:]
				}
				t.Errorf("seed %d: %q\n redis %q\n rondo %q\n%v", seed, args, x, y, hist)
			}
			if bytes.HasPrefix(x, []byte("ERROR")) || bytes.HasPrefix(y, []byte("ERROR")) {
				return
			}
			return
		}
	}
}
