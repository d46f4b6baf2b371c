package redis

import (
	"fmt"
	"strings"
	"testing"

	"github.com/rondo-go/rondo/redis/store"
	"github.com/rondo-go/rondo/resp"
)

// A database that is large enough for lookAhead answers as a small one does, wherever the
// input is split.
func TestLookAheadChangesNothing(t *testing.T) {
	small, large := newBench(t, &Server{}), newBench(t, &Server{})
	for i := range aheadFrom + 10 {
		large.s.space.dbs[0].keys.Put(fmt.Appendf(nil, "other%d", i), store.IntValue(1), store.NoDeadline)
	}
	var in []byte
	for i := range 40 {
		key := fmt.Sprint("k", i%7)
		for _, request := range [][]string{
			{"SET", key, fmt.Sprint("v", i)}, {"GET", key}, {"DEL", key, "none"}, {"PING"}, {"INCR", "n"},
			{"MGET", "n", key}, {"SELECT", fmt.Sprint(i / 20)}, {"SET", "long", strings.Repeat("x", 200*i)}, {"bogus"},
		} {
			in = resp.AppendRequest(in, request...)
		}
		in = append(in, "*0\r\nGET n\r\nSET i \"a\\x41\"\r\n"...)
	}
	in = append(in, "*1\r\n!x\r\n"...)
	run := func(b *bench, name string, size int) string {
		b.do("setup", "DEL", "n")
		f := b.connect(name)
		for from, to := 0, 0; to < len(in) && !f.closed; {
			to = min(to+size, len(in))
			from += b.send(f, in[from:to])
		}
		b.s.space.dbs[1].flush()
		return f.take()
	}
	want := run(small, "a", len(in))
	if !strings.Contains(want, "Protocol error") || strings.Count(want, "PONG") != 40 {
		t.Fatal(want)
	}
	for _, size := range []int{len(in), 5000, 333, 10} {
		if got := run(large, fmt.Sprint(size), size); got != want {
			t.Errorf("in pieces of %d bytes:\ngot  %.2000s\nwant %.2000s", size, got, want)
		}
	}
}
