package redis

import (
	"fmt"
	"maps"
	"math/big"
	"math/rand/v2"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/rondo-go/rondo/redis/store"
	"github.com/rondo-go/rondo/resp"
)

// reply runs a command and returns its reply.
func (b *bench) reply(args ...string) resp.Value {
	b.t.Helper()
	f := b.connect("a")
	b.send(f, resp.AppendRequest(nil, args...))
	v, n, _, err := resp.ReadValue(f.out)
	if err != nil || n != len(f.out) {
		b.t.Fatalf("%q replies %.200q: %v", args, f.out, err)
	}
	f.out = nil
	return v
}

// texts returns the elements of an array as strings.
func texts(v resp.Value) (all []string) {
	for _, e := range v.Elems {
		all = append(all, string(e.Str))
	}
	return all
}

// drain does the store's own work, to the end.
func (b *bench) drain() {
	for b.s.space.store.Tick(tidyWork) {
	}
}

func TestHashes(t *testing.T) {
	newBench(t, &Server{}).script(`
		HSET h f v g 2 => :2
		HSET h f w n 1 => :1
		HGETALL h => *6 $1 f $1 w $1 g $1 2 $1 n $1 1
		HMSET h f => -ERR wrong number of arguments for 'hmset' command
		MULTI => +OK
		HSET h f v g => +QUEUED
		EXEC => *1 -ERR wrong number of arguments for 'hset' command
		OBJECT ENCODING h => $8 listpack
		HDEL h f g n n => :3
		EXISTS h => :0
		HSET h long "` + strings.Repeat("x", 65) + `" => :1
		OBJECT ENCODING h => $9 hashtable
		HSET h long short => :0
		OBJECT ENCODING h => $9 hashtable
		HGET h long => $5 short
		DEL h => :1
		CONFIG SET hash-max-listpack-entries 0 => +OK
		HSET h f v => :1
		OBJECT ENCODING h => $9 hashtable
		COPY h i => :1
		HDEL h f => :1
		EXISTS h => :0
		HGET i f => $1 v
		RENAME i j => +OK
		COPY j j DB 1 => :1
		FLUSHDB => +OK
		SELECT 1 => +OK
		HGET j f => $1 v
	`)
}

// A hash holds what a map does, whatever its encoding, through defragmentation.
func TestHashModel(t *testing.T) {
	for seed := range uint64(6) {
		b := newBench(t, &Server{})
		b.s.config.hashEntries = int64(seed * 16)
		rng := rand.New(rand.NewPCG(seed, 1))
		want := map[string]string{}
		for step := range 4000 {
			field, value := strconv.Itoa(rng.IntN(20*(1+int(seed)))), strconv.Itoa(rng.IntN(1<<rng.IntN(31)))
			if rng.IntN(4) == 0 {
				value = strings.Repeat(value, rng.IntN(8))
			}
			switch _, had := want[field]; rng.IntN(6) {
			case 0, 1:
				created := b.reply("HSET", "h", field, value, field, value).Int
				if created == 1 == had {
					t.Fatalf("seed %d: HSET creates %d", seed, created)
				}
				want[field] = value
			case 2, 3:
				if deleted := b.reply("HDEL", "h", field, field).Int; deleted == 1 != had {
					t.Fatalf("seed %d: HDEL deletes %d", seed, deleted)
				}
				delete(want, field)
			case 4:
				if got := b.reply("HGET", "h", field); string(got.Str) != want[field] {
					t.Fatalf("seed %d: HGET is %q, want %q", seed, got.Str, want[field])
				}
			case 5:
				if n := b.reply("HLEN", "h").Int; n != int64(len(want)) {
					t.Fatalf("seed %d: HLEN is %d, want %d", seed, n, len(want))
				}
			}
			if step%500 == 0 {
				got := map[string]string{}
				for pair := range slices.Chunk(texts(b.reply("HGETALL", "h")), 2) {
					got[pair[0]] = pair[1]
				}
				if !maps.Equal(got, want) {
					t.Fatalf("seed %d: HGETALL is %v, want %v", seed, got, want)
				}
				b.reply("COPY", "h", "copy", "REPLACE")
				b.drain()
			}
		}
	}
}

// HSCAN returns every field that stays, while the hash grows and shrinks.
func TestHscanMissesNothing(t *testing.T) {
	b := newBench(t, &Server{})
	for i := range 2000 {
		b.reply("HSET", "h", fmt.Sprint("stays", i), "v")
	}
	for round := range 6 {
		seen, cursor := map[string]bool{}, "0"
		for i := 0; ; i++ {
			v := b.reply("HSCAN", "h", cursor, "COUNT", "100", "MATCH", "s*")
			for pair := range slices.Chunk(texts(v.Elems[1]), 2) {
				seen[pair[0]] = true
			}
			if cursor = string(v.Elems[0].Str); cursor == "0" {
				break
			}
			for j := range 50 {
				if round%2 == 0 {
					b.reply("HSET", "h", fmt.Sprint("comes", i, j), "v")
				} else {
					b.reply("HDEL", "h", fmt.Sprint("comes", i, j))
				}
			}
		}
		if len(seen) != 2000 {
			t.Errorf("round %d: %d fields seen", round, len(seen))
		}
	}
}

// HRANDFIELD chooses all fields alike, in each of its ways.
func TestHrandfieldIsFair(t *testing.T) {
	const fields = 50
	for _, entries := range []int64{0, 512} {
		b := newBench(t, &Server{})
		b.s.config.hashEntries = entries
		for i := range fields {
			b.reply("HSET", "h", strconv.Itoa(i), "v"+strconv.Itoa(i))
		}
		for _, count := range []string{"-100", "10", "40", "1"} {
			counts, total := map[string]int{}, 0
			for total < 20000 {
				all := texts(b.reply("HRANDFIELD", "h", count, "WITHVALUES"))
				distinct := map[string]bool{}
				for pair := range slices.Chunk(all, 2) {
					if pair[1] != "v"+pair[0] {
						t.Fatalf("%q has %q", pair[0], pair[1])
					}
					distinct[pair[0]] = true
					counts[pair[0]]++
					total++
				}
				if count[0] != '-' && len(distinct) != len(all)/2 {
					t.Fatalf("HRANDFIELD h %s repeats a field", count)
				}
			}
			chi, mean := 0.0, float64(total)/fields
			for _, n := range counts {
				chi += (float64(n) - mean) * (float64(n) - mean) / mean
			}
			if len(counts) != fields || chi > 120 {
				t.Errorf("entries %d, count %s: %d fields, chi square %.0f", entries, count, len(counts), chi)
			}
		}
	}
}

// Arguments and texts as C's long double reads and writes them.
func TestLongDouble(t *testing.T) {
	for in, want := range map[string]string{
		"1": "1", "-0": "0", "+1.50": "1.5", ".5": "0.5", "5.": "5", "1e3": "1000", "1E-3": "0.001",
		"0x1.8p1": "3", "0X10": "16", "0xap-1": "5", "1e-18": "0", "-1e-18": "0", "-1e-17": "-0.00000000000000001",
		"3.14159265358979323846": "3.14159265358979324", "0e99999": "0", "0.1": "0.1",
		"18446744073709551615": "18446744073709551615",
		"":                     "", ".": "", "e1": "", "1e": "", "1e+": "", "0x": "", "0x.p1": "", "1p3": "", "1_0": "", " 1": "", "1 ": "",
		"nan": "", "1e5000": "", "1e-5000": "", "--1": "", "0b1": "", "0o7": "",
	} {
		f, ok := parseLongDouble([]byte(in))
		if ok != (want != "") {
			t.Errorf("%q is a number: %t", in, ok)
			continue
		}
		if ok && string(appendLongDouble(nil, f)) != want {
			t.Errorf("%q is %s, want %s", in, appendLongDouble(nil, f), want)
		}
	}
	for _, in := range []string{"inf", "-Infinity", "+INF"} {
		if f, ok := parseLongDouble([]byte(in)); !ok || !f.IsInf() || f.Signbit() != (in[0] == '-') {
			t.Errorf("%s is %v, %t", in, f, ok)
		}
	}
	most, _ := parseLongDouble([]byte("1e4932"))
	if _, ok := addLongDouble(most, most); ok {
		t.Error("a sum beyond long double is finite")
	}
	if _, ok := addLongDouble(new(big.Float).SetInf(true), new(big.Float).SetInf(false)); ok {
		t.Error("infinities have a sum")
	}
}

// Commands on small and large hashes and sets allocate nothing of Go's heap.
func TestNestedCommandsDoNotAllocate(t *testing.T) {
	for _, limit := range []int64{0, 512} {
		b := newBench(t, &Server{})
		b.allFast()
		b.s.config.hashEntries, b.s.config.setEntries = limit, limit
		for i := range 100 {
			b.reply("HSET", "h", strconv.Itoa(i), "v")
			b.reply("SADD", "s", strconv.Itoa(i))
		}
		c := b.connect("a").client
		out := make([]byte, 0, 1<<16)
		for _, line := range []string{"HSET h 5 w", "HSET h 5 12345", "HGET h 7", "HMGET h 7 8 none", "HINCRBY h 5 1", "HLEN h", "HEXISTS h 3",
			"SADD s 7", "SISMEMBER s 8", "SREM s 300", "SMISMEMBER s 1 2", "SCARD s"} {
			var args [][]byte
			for _, word := range strings.Fields(line) {
				args = append(args, []byte(word))
			}
			n := testing.AllocsPerRun(50, func() {
				c.B = out
				c.call(c.server.commands.find(args), args)
			})
			c.B = nil
			if n > 0 {
				t.Errorf("limit %d: %s: %.1f allocations", limit, line, n)
			}
		}
	}
}

// MEMORY USAGE tells about what the values take.
func TestMemoryUsage(t *testing.T) {
	b := newBench(t, &Server{})
	for _, add := range []func(i string){
		func(i string) { b.reply("HSET", "k", "field"+i, "value"+i) },
		func(i string) { b.reply("SADD", "k", "member"+i) },
	} {
		before := b.s.space.memory()
		for i := range 20000 {
			add(strconv.Itoa(i))
		}
		grown, usage := b.s.space.memory()-before, b.reply("MEMORY", "USAGE", "k").Int
		if usage < grown*9/10 || usage > grown*11/10 {
			t.Errorf("MEMORY USAGE is %d, the store has grown by %d", usage, grown)
		}
		b.reply("DEL", "k")
		b.drain()
		if m := b.s.space.store.Memory(); m.Held > before+100_000 {
			t.Errorf("after DEL %+v", m)
		}
	}
}

func TestEncodingsOfTypes(t *testing.T) {
	b := newBench(t, &Server{})
	b.script(`
		SET i 12 => +OK
		SET e abc => +OK
		OBJECT ENCODING i => $3 int
		OBJECT ENCODING e => $6 embstr
		APPEND e d => :4
		OBJECT ENCODING e => $3 raw
		OBJECT IDLETIME e => :0
		+10s
		OBJECT IDLETIME e => :10
		OBJECT IDLETIME e => :10
		GET e => $4 abcd
		OBJECT IDLETIME e => :0
	`)
	if b.s.space.store.Tracking() != store.TrackLRU {
		t.Error("OBJECT IDLETIME does not turn tracking on")
	}
}
