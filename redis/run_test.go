package redis

import (
	"bytes"
	"fmt"
	"math/rand"
	"strconv"
	"strings"
	"testing"

	"github.com/rondo-go/rondo"
	"github.com/rondo-go/rondo/resp"
)

// feed passes bytes to a connection in pieces of the given lengths, the last one
// to the end. As a loop does, it offers bytes that were not taken again.
func (b *bench) feed(f *fakeConn, in []byte, pieces ...int) string {
	var rest []byte
	for _, n := range append(pieces, len(in)) {
		n = min(n, len(in))
		rest, in = append(rest, in[:n]...), in[n:]
		if f.closed || f.aborted != nil {
			break
		}
		rest = rest[b.send(f, rest):]
	}
	return string(f.out)
}

// pipeline is requests of all families.
func pipeline() []byte {
	var p []byte
	for _, line := range []string{
		"PING", "SET k v EX 100", "GET k", "APPEND k xyz", "INCR n", "MSET a 1 b 2 c 3", "MGET a b none c", "bogus x", "GET",
		"MULTI", "SET k w", "INCR k", "GET k", "EXEC", "SUBSCRIBE ch", "PING", "UNSUBSCRIBE ch", "HELLO 3", "GET none",
		"SUBSCRIBE ch", "PUBLISH ch message", "CLIENT REPLY SKIP", "PING", "CLIENT SETNAME me", "CLIENT GETNAME", "SCAN 0",
	} {
		p = resp.AppendRequest(p, strings.Fields(line)...)
	}
	p = append(p, "GET k\r\nECHO \"a b\"\r\n\r\nSET k 'x'\r\n"...)
	return resp.AppendRequest(p, "QUIT")
}

func TestAnySplitGivesTheSameReplies(t *testing.T) {
	in := pipeline()
	b := newBench(t, &Server{})
	want := b.feed(b.connect("a"), in)
	for i := range in {
		b := newBench(t, &Server{})
		if got := b.feed(b.connect("a"), in, i); got != want {
			t.Fatalf("split at %d:\ngot  %q\nwant %q", i, got, want)
		}
	}
	rnd := rand.New(rand.NewSource(1))
	for range 200 {
		var pieces []int
		for range rnd.Intn(50) {
			pieces = append(pieces, rnd.Intn(30))
		}
		b := newBench(t, &Server{})
		if got := b.feed(b.connect("a"), in, pieces...); got != want {
			t.Fatalf("split %v:\ngot  %q\nwant %q", pieces, got, want)
		}
	}
}

func FuzzAnySplitGivesTheSameReplies(f *testing.F) {
	f.Add(pipeline(), uint16(7))
	f.Add([]byte("*3\r\n$3\r\nSET\r\n$1\r\nk\r\n$1\r\nv\r\n*2\r\n$3\r\nGET\r\n$1\r\nk\r\n"), uint16(20))
	f.Add([]byte("SET k \"\\x41\"\r\nGET k\r\n*1\r\n$x\r\n"), uint16(3))
	f.Fuzz(func(t *testing.T, in []byte, at uint16) {
		if bytes.Contains(bytes.ToLower(in), []byte("sleep")) || bytes.Contains(bytes.ToLower(in), []byte("info")) {
			return // takes time, tells the time
		}
		one, two := newBench(t, &Server{}), newBench(t, &Server{})
		one.s.config.maxBulk, two.s.config.maxBulk = 1<<16, 1<<16
		want := one.feed(one.connect("a"), in)
		got := two.feed(two.connect("a"), in, int(at)%(len(in)+1))
		if got != want && !bytes.Contains(bytes.ToLower(in), []byte("randomkey")) {
			t.Errorf("split at %d:\ngot  %q\nwant %q", at, got, want)
		}
	})
}

// A client's requests stop while its replies wait, so a peer that never reads can
// make the server hold only a bounded number of bytes.
func TestRequestsWaitWhileRepliesDo(t *testing.T) {
	b := newBench(t, &Server{})
	f := b.connect("a")
	b.do("a", "SET", "k", strings.Repeat("x", 10000))
	one := resp.AppendRequest(nil, "GET", "k")
	in := bytes.Repeat(one, 1000)
	f.waiting = rondo.DefaultHighWater + 1
	n := b.send(f, in)
	if most := 10 * len(one); n == 0 || n > most || n%len(one) != 0 {
		t.Errorf("%d bytes of requests were run, want whole ones of at most %d", n, most)
	}
	f.waiting = 0
	if m := b.send(f, in[n:]); m != len(in)-n {
		t.Errorf("%d bytes were run of the rest of %d", m, len(in)-n)
	}
	if got, want := len(f.out), 1000*len("$10000\r\n\r\n")+1000*10000; got != want {
		t.Errorf("%d bytes of replies, want %d", got, want)
	}
}

// hot are requests that must not allocate once their keys are there.
var hot = []string{"PING", "SET key value", "GET key", "INCR counter", "MSET key value other value", "MGET key none other",
	"EXISTS key", "TTL key", "EXPIRE key 100", "SET key value EX 100", "APPEND key \"\"", "STRLEN key", "SELECT 0", "DEL none"}

func TestHotCommandsDoNotAllocate(t *testing.T) {
	for _, line := range hot {
		b := newBench(t, &Server{})
		b.allFast()
		f := b.connect("a")
		f.out = make([]byte, 0, 1<<10)
		in := resp.AppendRequest(nil, splitWords(line)...)
		run := func() {
			f.out = f.out[:0]
			b.send(f, in)
		}
		run()
		if n := testing.AllocsPerRun(100, run); n != 0 {
			t.Errorf("%s allocates %v times", line, n)
		}
	}
}

func BenchmarkCommands(b *testing.B) {
	for _, line := range []string{"PING", "SET key:000000000001 xxx", "GET key:000000000001", "INCR counter", "SET key value EX 100"} {
		b.Run(strings.ReplaceAll(line, " ", "_"), func(b *testing.B) {
			const batch = 32
			s := newBench(b, &Server{})
			f := s.connect("a")
			f.out = make([]byte, 0, 64<<10)
			in := bytes.Repeat(resp.AppendRequest(nil, strings.Fields(line)...), batch)
			b.ReportAllocs()
			for i := 0; i < b.N; i += batch {
				f.out = f.out[:0]
				s.send(f, in)
			}
		})
	}
}

func BenchmarkManyKeys(b *testing.B) {
	for _, cmd := range []string{"SET", "GET"} {
		b.Run(cmd, func(b *testing.B) {
			const keys = 1 << 20
			s := newBench(b, &Server{})
			f := s.connect("a")
			f.out = make([]byte, 0, 64<<10)
			for i := range keys {
				s.do("a", "SET", fmt.Sprintf("key:%012d", i), "xxx")
			}
			var in [][]byte
			rnd := rand.New(rand.NewSource(1))
			for range 1 << 16 {
				args := []string{cmd, fmt.Sprintf("key:%012d", rnd.Intn(keys)), strconv.Itoa(rnd.Intn(1000))}
				if cmd == "GET" {
					args = args[:2]
				}
				in = append(in, resp.AppendRequest(nil, args...))
			}
			b.ReportAllocs()
			b.ResetTimer()
			for i := range b.N {
				f.out = f.out[:0]
				s.send(f, in[i&(1<<16-1)])
			}
		})
	}
}
