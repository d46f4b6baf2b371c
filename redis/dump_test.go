package redis

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/rondo-go/rondo/redis/listpack"
	"github.com/rondo-go/rondo/redis/rdb"
)

// payload returns what DUMP of Redis would for parts that add appends.
func payload(add func(e *rdb.Encoder)) string {
	e := rdb.Encoder{Compress: true}
	add(&e)
	e.Seal()
	return string(e.B)
}

// values returns the payload of a number of strings.
func values(typ rdb.Type, n int, all ...string) string {
	return payload(func(e *rdb.Encoder) {
		e.Type(typ)
		e.Len(uint64(n))
		for _, s := range all {
			e.String([]byte(s))
			if typ == rdb.TypeZSet2 {
				e.Score(float64(len(s)))
			}
		}
	})
}

// dumpOf returns the payload that DUMP replies with.
func (b *bench) dumpOf(key string) string {
	f := b.connect("a")
	b.do("a", "PING")
	b.send(f, fmt.Appendf(nil, "*2\r\n$4\r\nDUMP\r\n$%d\r\n%s\r\n", len(key), key))
	_, rest, _ := strings.Cut(string(f.out), "\r\n")
	f.out = nil
	return strings.TrimSuffix(rest, "\r\n")
}

func TestRestore(t *testing.T) {
	b := newBench(t, &Server{})
	x := payload(func(e *rdb.Encoder) { e.Type(rdb.TypeString); e.String([]byte("x")) })
	for _, step := range []struct {
		args []string
		want string
	}{
		{[]string{"k", "0", x}, "+OK"},
		{[]string{"k", "0", x}, "-BUSYKEY Target key name already exists."},
		{[]string{"k", "x", x}, "-BUSYKEY Target key name already exists."},
		{[]string{"k", "x", x, "REPLACE"}, "-ERR value is not an integer or out of range"},
		{[]string{"k", "-1", x, "replace"}, "-ERR Invalid TTL value, must be >= 0"},
		{[]string{"k", "0", x[:len(x)-1], "REPLACE"}, "-ERR DUMP payload version or checksum are wrong"},
		{[]string{"k", "0", "", "REPLACE"}, "-ERR DUMP payload version or checksum are wrong"},
		{[]string{"k", "0", values(99, 1, "x"), "REPLACE"}, "-ERR Bad data format"},
		{[]string{"k", "0", x, "REPLACE", "BOGUS"}, "-ERR syntax error"},
		{[]string{"k", "0", x, "IDLETIME"}, "-ERR syntax error"},
		{[]string{"k", "0", x, "IDLETIME", "-1"}, "-ERR Invalid IDLETIME value, must be >= 0"},
		{[]string{"k", "0", x, "IDLETIME", "x"}, "-ERR value is not an integer or out of range"},
		{[]string{"k", "0", x, "FREQ", "256"}, "-ERR Invalid FREQ value, must be >= 0 and <= 255"},
		{[]string{"k", "0", x, "FREQ", "1", "IDLETIME", "1"}, "-ERR syntax error"},
		{[]string{"k", "5000", x, "REPLACE"}, "+OK"},
	} {
		if got := b.do("a", append([]string{"RESTORE"}, step.args...)...); got != step.want {
			t.Errorf("%.100q: %s, want %s", step.args, got, step.want)
		}
	}
	b.script(`
		PTTL k => :5000
		GET k => $1 x
		DUMP none => $-1
	`)
	b.do("a", "RESTORE", "k", "1700000009000", x, "ABSTTL", "REPLACE")
	b.script(`PTTL k => :9000`)
	b.do("a", "RESTORE", "k", "1700000000000", x, "ABSTTL", "REPLACE")
	b.script(`EXISTS k => :0`)
	b.do("a", "RESTORE", "k", "9223372036854775807", x)
	b.script(`EXISTS k => :0`)
	b.do("a", "RESTORE", "k", "0", x, "IDLETIME", "1000")
	b.script(`OBJECT IDLETIME k => :1000`)
	b.do("a", "RESTORE", "k", "0", x, "IDLETIME", "9223372036854775807", "REPLACE")
	b.script(`
		OBJECT IDLETIME k => :252...
		CONFIG SET maxmemory-policy allkeys-lfu => +OK
	`)
	b.do("a", "RESTORE", "k", "0", x, "FREQ", "100", "REPLACE")
	b.script(`OBJECT FREQ k => :100`)
}

// Values that have an element twice are refused, leave the key as it is, and leave no memory
// behind.
func TestRestoreOfDuplicates(t *testing.T) {
	b := newBench(t, &Server{})
	b.do("a", "SET", "k", "old")
	many := make([]string, 2000)
	for i := range many {
		many[i] = fmt.Sprint("element ", i)
	}
	many[len(many)-2], many[len(many)-1] = many[0], many[0]
	var before int64
	for range 5 {
		for _, x := range []string{
			values(rdb.TypeSet, 2, "a", "a"),
			values(rdb.TypeSet, 2, "1", "1"),
			values(rdb.TypeSet, len(many), many...),
			values(rdb.TypeHash, 2, "a", "b", "a", "c"),
			values(rdb.TypeHash, len(many)/2, many...),
			values(rdb.TypeZSet2, 2, "a", "a"),
			values(rdb.TypeZSet2, len(many), many...),
		} {
			if got := b.do("a", "RESTORE", "k", "0", x, "REPLACE"); got != "-ERR Bad data format" {
				t.Errorf("%.40q: %s", x, got)
			}
		}
		for b.s.space.store.Tick(1 << 20) {
		}
		if used := b.s.space.store.Memory().Used; before == 0 {
			before = used
		} else if used > before {
			t.Errorf("%d bytes in use, first %d", used, before)
		}
	}
	b.script(`GET k => $3 old`)
}

// A restored value has the encoding that the limits give it.
func TestRestoredEncodings(t *testing.T) {
	b := newBench(t, &Server{})
	b.script(`
		HSET h a 1 b 2 c 3 => :3
		ZADD z 1 a 2 b 3 c => :3
		SADD i 1 2 3 => :3
		SADD s a b c => :3
		RPUSH l a b c => :3
		SET n 12345 => +OK
	`)
	dumped := map[string]string{}
	for _, key := range []string{"h", "z", "i", "s", "l", "n"} {
		dumped[key] = b.dumpOf(key)
	}
	for _, limits := range []struct{ n, want string }{
		{"3", "h=listpack z=listpack i=intset s=hashtable l=quicklist n=int"},
		{"2", "h=hashtable z=skiplist i=hashtable s=hashtable l=quicklist n=int"},
	} {
		for _, p := range []string{"hash-max-listpack-entries", "zset-max-listpack-entries", "set-max-intset-entries"} {
			b.do("a", "CONFIG", "SET", p, limits.n)
		}
		got := ""
		for _, key := range []string{"h", "z", "i", "s", "l", "n"} {
			if reply := b.do("a", "RESTORE", key, "0", dumped[key], "REPLACE"); reply != "+OK" {
				t.Errorf("%s: %s", key, reply)
			}
			_, encoding, _ := strings.Cut(b.do("a", "OBJECT", "ENCODING", key), " ")
			got += key + "=" + encoding + " "
		}
		if strings.TrimSpace(got) != limits.want {
			t.Errorf("limit %s: %s, want %s", limits.n, got, limits.want)
		}
		b.script(`
			HMGET h a b c => *3 $1 1 $1 2 $1 3
			ZRANGE z 0 -1 WITHSCORES => *6 $1 a $1 1 $1 b $1 2 $1 c $1 3
			SMISMEMBER i 1 2 3 4 => *4 :1 :1 :1 :0
			SMISMEMBER s a b c d => *4 :1 :1 :1 :0
			LRANGE l 0 -1 => *3 $1 a $1 b $1 c
			GET n => $5 12345
		`)
	}
	// General encodings of small values.
	for key, x := range map[string]string{
		"h": values(rdb.TypeHash, 2, "a", "1", "b", "2"), "z": values(rdb.TypeZSet2, 2, "bb", "a"),
		"s": values(rdb.TypeSet, 2, "7", "8"), "l": values(rdb.TypeList, 2, "a", "b"),
	} {
		if reply := b.do("a", "RESTORE", key, "0", x, "REPLACE"); reply != "+OK" {
			t.Errorf("%s: %s", key, reply)
		}
	}
	b.script(`
		OBJECT ENCODING h => $8 listpack
		ZRANGE z 0 -1 => *2 $1 a $2 bb
		OBJECT ENCODING z => $8 listpack
		OBJECT ENCODING s => $6 intset
		LRANGE l 0 -1 => *2 $1 a $1 b
	`)
}

// The listpacks of a restored list are copied as they are, not element by element, but for
// their limit: so a payload that expands to very many elements takes no longer than its bytes.
func TestRestoredLists(t *testing.T) {
	// Elements with longer encodings than necessary show that nobody has made them anew.
	const five = "\xf4\x05\x00\x00\x00\x00\x00\x00\x00\x09"
	lp := func(n int) []byte {
		b := []byte(strings.Repeat(five, n))
		size := len(b) + 7
		return append(append([]byte{byte(size), byte(size >> 8), byte(size >> 16), 0, byte(n), byte(n >> 8)}, b...), 0xff)
	}
	list := func(counts ...int) string {
		return payload(func(e *rdb.Encoder) {
			e.Type(rdb.TypeListQuicklist2)
			e.Len(uint64(len(counts)))
			for _, n := range counts {
				e.Node(lp(n))
			}
		})
	}
	b := newBench(t, &Server{})
	for _, x := range []struct {
		limit     string
		in, nodes []int
	}{
		{"-2", []int{1}, []int{1}},
		{"-2", []int{100, 100}, []int{200}},
		{"-2", []int{800, 800, 1}, []int{800, 801}},
		{"-2", []int{2000, 700}, []int{816, 816, 368, 700}},
		{"3", []int{1, 1, 1, 1, 7}, []int{3, 1, 3, 3, 1}},
		{"3", []int{4}, []int{3, 1}},
	} {
		b.do("a", "CONFIG", "SET", "list-max-listpack-size", x.limit)
		if got := b.do("a", "RESTORE", "k", "0", list(x.in...), "REPLACE"); got != "+OK" {
			t.Fatal(got)
		}
		var nodes []int
		for part := range b.s.space.dbs[0].list(b.s.space.dbs[0].find([]byte("k"))).Listpacks {
			nodes = append(nodes, listpack.Len(part))
		}
		if want := list(x.nodes...); b.dumpOf("k") != want || !slices.Equal(nodes, x.nodes) {
			t.Errorf("limit %s: %d became %d, want %d, as they were", x.limit, x.in, nodes, x.nodes)
		}
		b.script(`
			LINDEX k -1 => $1 5
			LREM k 1 5 => :1
		`)
	}
}

// FuzzRestore restores any bytes with a right checksum, and reads what has become of them.
func FuzzRestore(f *testing.F) {
	for _, x := range []string{
		values(rdb.TypeHash, 2, "a", "1", "b", "2"), values(rdb.TypeZSet2, 2, "bb", "a"),
		values(rdb.TypeSet, 2, "7", "x"), values(rdb.TypeList, 2, "a", strings.Repeat("b", 9000)),
	} {
		body, _ := rdb.Unseal([]byte(x))
		f.Add(body)
	}
	b := newBench(f, &Server{})
	f.Fuzz(func(t *testing.T, body []byte) {
		b.do("a", "FLUSHALL")
		if got := b.do("a", "RESTORE", "k", "0", payload(func(e *rdb.Encoder) { e.B = body[:len(body):len(body)] })); got != "+OK" {
			if got != "-ERR Bad data format" {
				t.Fatal(got)
			}
			return
		}
		for _, request := range []string{"SORT k ALPHA", "LRANGE k 0 -1", "HGETALL k", "ZRANGE k 0 -1 WITHSCORES", "RPUSH k x", "HSET k a b", "ZADD k 1 zz", "SADD k zz", "APPEND k x"} {
			b.do("a", strings.Fields(request)...)
		}
		again := b.dumpOf("k")
		if got := b.do("a", "RESTORE", "again", "0", again); got != "+OK" {
			t.Fatalf("%s, after %x", got, again)
		}
	})
}
