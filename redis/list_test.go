package redis

import (
	"fmt"
	"math/rand/v2"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/rondo-go/rondo/redis/store"
)

// bulks is the reply that an array of strings is, as bench.do returns it.
func bulks(elements []string) string {
	var reply strings.Builder
	fmt.Fprintf(&reply, "*%d", len(elements))
	for _, e := range elements {
		fmt.Fprintf(&reply, " $%d %s", len(e), e)
	}
	return reply.String()
}

// Random writes to a list of all sizes and to a slice. The store overwrites what it frees.
func TestListModel(t *testing.T) {
	for seed := range uint64(8) {
		b := newBench(t, &Server{})
		rng := rand.New(rand.NewPCG(seed, 0))
		b.do("a", "CONFIG", "SET", "list-max-listpack-size", strconv.Itoa([]int{-2, -1, 4, 100}[seed%4]))
		var model []string
		element := func() string {
			if rng.IntN(10) == 0 {
				return strings.Repeat("x", rng.IntN(3000)) + "!"
			}
			return strconv.Itoa(rng.IntN(50))
		}
		for step := range 1500 {
			n, e := len(model), element()
			switch op := rng.IntN(20); {
			case op < 6 || n == 0:
				b.do("a", "RPUSH", "k", e, "tail")
				model = append(model, e, "tail")
			case op < 9:
				b.do("a", "LPUSH", "k", e)
				model = slices.Insert(model, 0, e)
			case op < 11:
				i := rng.IntN(n)
				b.do("a", "LSET", "k", strconv.Itoa(i), e)
				model[i] = e
			case op < 13:
				pivot := model[rng.IntN(n)]
				b.do("a", "LINSERT", "k", "BEFORE", pivot, e)
				model = slices.Insert(model, slices.Index(model, pivot), e)
			case op < 15:
				k := min(n, rng.IntN(4))
				b.do("a", "RPOP", "k", strconv.Itoa(k))
				model = model[:n-k]
			case op == 15:
				b.do("a", "LREM", "k", "1", e)
				if i := slices.Index(model, e); i >= 0 {
					model = slices.Delete(model, i, i+1)
				}
			case op == 16:
				b.do("a", "LMOVE", "k", "k", "LEFT", "RIGHT")
				model = append(model[1:n:n], model[0])
			case op == 17:
				b.do("a", "COPY", "k", "copy", "REPLACE")
				b.do("a", "RENAME", "copy", "k")
			case op == 18 && rng.IntN(5) == 0:
				first, last := rng.IntN(n), rng.IntN(n)
				b.do("a", "LTRIM", "k", strconv.Itoa(first), strconv.Itoa(last))
				if first > last {
					model = nil
				} else {
					model = model[first : last+1]
				}
			default:
				b.s.space.store.Tick(1000)
			}
			if got, want := b.do("a", "LRANGE", "k", "0", "-1"), bulks(model); got != want {
				t.Fatalf("seed %d, step %d:\ngot  %.300s\nwant %.300s", seed, step, got, want)
			}
		}
	}
}

// A list becomes long, and short again, and is a quicklist to clients all the time.
func TestListForms(t *testing.T) {
	b := newBench(t, &Server{})
	form := func(want store.Form) {
		t.Helper()
		if got := b.s.space.dbs[0].keys.Peek([]byte("k")).Form(); got != want {
			t.Errorf("form %d, want %d", got, want)
		}
		if got := b.do("a", "OBJECT", "ENCODING", "k"); got != "$9 quicklist" {
			t.Error(got)
		}
	}
	b.script("RPUSH k a b c => :3")
	form(store.Embedded)
	b.do("a", "EXPIRE", "k", "1000")
	b.do("a", "LPUSH", "k", strings.Repeat("x", 9000))
	form(store.Node)
	b.script(`
		TTL k => :1000
		LPOP k => $9000 ...
	`)
	form(store.Embedded)
	b.script(`
		TTL k => :1000
		LRANGE k 0 -1 => *3 $1 a $1 b $1 c
		CONFIG SET list-max-listpack-size 3 => +OK
		RPUSH k d => :4
	`)
	form(store.Node)
	b.script("LPOP k 2 => *2 $1 a $1 b")
	b.do("a", "LSET", "k", "0", strings.Repeat("y", 100_000))
	form(store.Node)
	b.script(`
		LSET k 0 c => +OK
		LRANGE k 0 -1 => *2 $1 c $1 d
		LREM k 0 c => :1
		LREM k 0 d => :1
		EXISTS k => :0
	`)
}

// Memory full refuses what adds to lists, and nothing else.
func TestListsWithoutMemory(t *testing.T) {
	b := newBench(t, &Server{})
	b.script(`
		RPUSH k a b c => :3
		CONFIG SET maxmemory 1 => +OK
		RPUSH k d => -OOM ...
		LSET k 0 d => -OOM ...
		LMOVE k l LEFT LEFT => -OOM ...
		BLMOVE k l LEFT LEFT 0 => -OOM ...
		LPOP k => $1 a
		LTRIM k 0 0 => +OK
		BLPOP k 0 => *2 $1 k $1 b
	`)
}

// INFO counts each element as a change.
func TestListChangesAreCounted(t *testing.T) {
	b := newBench(t, &Server{})
	for _, x := range []struct {
		request string
		changes int64
	}{
		{"RPUSH k a b c a b c", 6}, {"LPOP k 2", 2}, {"LPOP k", 1}, {"LREM k 0 a", 1}, {"LTRIM k 0 0", 1},
		{"LREM k 0 x", 0}, {"LMOVE k l LEFT LEFT", 1}, {"LMPOP 1 l LEFT", 1}, {"LPUSHX l x", 0},
	} {
		before := b.s.space.dirty
		b.do("a", strings.Fields(x.request)...)
		if got := b.s.space.dirty - before; got != x.changes {
			t.Errorf("%s: %d changes, want %d", x.request, got, x.changes)
		}
	}
}

// A small list takes little memory, and what a long one took is freed in slices.
func TestListMemory(t *testing.T) {
	b := newBench(t, &Server{})
	const keys = 10_000
	for i := range keys {
		args := []string{"RPUSH", fmt.Sprintf("key:%06d", i)}
		for j := range 10 {
			args = append(args, fmt.Sprintf("element-%02d", j))
		}
		b.do("a", args...)
	}
	if per := b.s.space.memory() / keys; per > 160 {
		t.Errorf("a list of 10 elements of 10 bytes takes %d bytes", per)
	}
	b.do("a", "FLUSHALL")
	args := append([]string{"RPUSH", "k"}, slices.Repeat([]string{strings.Repeat("x", 100)}, 1000)...)
	for range 300 {
		b.do("a", args...)
	}
	for _, request := range []string{"LTRIM k 10 20", "DEL k"} {
		taken := func() int64 { // what is deleted and not freed yet counts
			m := b.s.space.store.Memory()
			return m.Used + m.Waiting
		}
		before := taken()
		b.do("a", strings.Fields(request)...)
		if freed := before - taken(); freed > 2<<20 {
			t.Errorf("%s freed %d bytes at once", request, freed)
		}
		for b.s.space.store.Tick(10_000) {
		}
	}
	if n := b.s.space.memory(); n > 100_000 {
		t.Errorf("%d bytes are used in the end", n)
	}
}

func BenchmarkLists(b *testing.B) {
	for _, request := range []string{"LPUSH k element", "RPUSH k element", "LMOVE full full LEFT RIGHT", "LRANGE full 0 99", "LINDEX full 5000", "BLPOP none full 0"} {
		b.Run(request, func(b *testing.B) {
			w := newBench(b, &Server{})
			for i := range 200 {
				w.do("a", append([]string{"RPUSH", "full"}, slices.Repeat([]string{strconv.Itoa(i)}, 100)...)...)
			}
			f := w.connect("a")
			in := []byte(request + "\r\n")
			for b.Loop() {
				w.send(f, in)
				f.out = f.out[:0]
				if request[0] == 'B' {
					w.s.space.dbs[0].push(w.s.space.dbs[0].find([]byte("full")), []byte("full"), false, []byte("x"))
				}
			}
		})
	}
}
