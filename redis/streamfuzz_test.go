package redis

import (
	"math"
	"testing"

	"github.com/rondo-go/rondo/redis/rdb"
	"github.com/rondo-go/rondo/redis/store"
)

// FuzzRestoreStream runs commands on what RESTORE makes of any bytes.
func FuzzRestoreStream(f *testing.F) {
	seed := newBench(f, &Server{})
	seed.do("a", "CONFIG", "SET", "rdbcompression", "no", "stream-node-max-entries", "5")
	seed.manyPending(12)
	seed.do("a", "XDEL", "s", "3-1", "8-1")
	seed.do("a", "XCLAIM", "s", "g", "d", "0", "9-1")
	f.Add([]byte(seed.dumpOf("s"))[:len(seed.dumpOf("s"))-10])
	seed.do("a", "XTRIM", "s", "MAXLEN", "2")
	f.Add([]byte(seed.dumpOf("s"))[:len(seed.dumpOf("s"))-10])
	f.Fuzz(func(t *testing.T, b []byte) {
		v, err := rdb.Parse(b, 1<<16)
		if err != nil || v.Kind != rdb.Stream {
			return
		}
		x := newBench(t, &Server{})
		defer x.s.space.store.Close()
		c := x.connect("a").client
		if made, ok := c.made(v); ok {
			c.db.keys.Put([]byte("s"), made.value, store.NoDeadline)
		}
		for _, request := range [][]string{
			{"XRANGE", "s", "-", "+"}, {"XREVRANGE", "s", "+", "-"}, {"XRANGE", "s", "2", "6"}, {"XREVRANGE", "s", "6", "(2-1"}, {"XINFO", "STREAM", "s"}, {"XINFO", "GROUPS", "s"}, {"XPENDING", "s", "g", "-", "+", "10"},
			{"XREADGROUP", "GROUP", "g", "c", "STREAMS", "s", "0"}, {"DEBUG", "DIGEST-VALUE", "s"}, {"MEMORY", "USAGE", "s"}, {"XINFO", "STREAM", "s", "FULL", "COUNT", "0"}, {"XGROUP", "CREATE", "s", "new", "0"},
			{"XREADGROUP", "GROUP", "new", "c", "STREAMS", "s", ">"}, {"XREADGROUP", "GROUP", "g", "c", "STREAMS", "s", ">"}, {"XADD", "s", "*", "f", "v"},
			{"XAUTOCLAIM", "s", "g", "x", "0", "-", "COUNT", "1000"}, {"XPENDING", "s", "g"}, {"XDEL", "s", "1-1", "2-1"}, {"COPY", "s", "t"}, {"DUMP", "s"},
			{"XTRIM", "s", "MAXLEN", "1"}, {"XTRIM", "s", "MINID", "18446744073709551615"}, {"XADD", "s", "*", "f", "v"}, {"DEL", "s", "t"},
		} {
			x.reply(request...) // one, and whole
		}
		x.drain()
		if used := x.s.space.store.Memory(); used.Used > math.MaxInt16 {
			t.Errorf("%+v", used)
		}
	})
}
