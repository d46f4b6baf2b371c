package redis

import (
	"maps"
	"math/rand/v2"
	"slices"
	"strconv"
	"strings"
	"testing"
)

func TestSets(t *testing.T) {
	newBench(t, &Server{}).script(`
		SADD s 3 1 2 => :3
		SMEMBERS s => *3 $1 1 $1 2 $1 3
		OBJECT ENCODING s => $6 intset
		SADD s x => :1
		OBJECT ENCODING s => $9 hashtable
		SREM s 1 2 3 x x => :4
		EXISTS s => :0
		SADD s 1 => :1
		EXPIRE s 10 => :1
		SPOP s => $1 1
		SADD s 1 => :1
		TTL s => :-1
		SADD t 1 2 => :2
		EXPIRE t 1 => :1
		+2s
		SMOVE s t 1 => :1
		TTL t => :-1
		SMEMBERS t => *1 $1 1
		SINTERSTORE t none => :0
		EXISTS t => :0
	`)
}

// A set operation reads keys whose reading moves others: they have expired, or get
// a note of when they were used.
func TestSetOperationsOnMovingKeys(t *testing.T) {
	b := newBench(t, &Server{})
	b.script(`
		SADD a 1 2 3 => :3
		SADD b 2 3 4 => :3
		SADD c x 3 => :2
		SADD gone 9 => :1
		PEXPIRE gone 5 => :1
		+10ms
		SINTER a b gone c => *0
		OBJECT IDLETIME a => :0
		SINTER a b c => *1 $1 3
		SUNIONSTORE d a b gone => :4
		SDIFF a b => *1 $1 1
		SMOVE a c 1 => :1
		SCARD c => :3
	`)
}

// Operations on sets are those on maps, whatever the encodings.
func TestSetModel(t *testing.T) {
	for seed := range uint64(6) {
		b := newBench(t, &Server{})
		b.s.config.setEntries = int64(seed * 8)
		rng := rand.New(rand.NewPCG(seed, 1))
		names := []string{"a", "b", "c"}
		want := map[string]map[string]bool{"a": {}, "b": {}, "c": {}}
		check := func(what string, got []string, want map[string]bool) {
			t.Helper()
			slices.Sort(got)
			if !slices.Equal(got, slices.Sorted(maps.Keys(want))) {
				t.Fatalf("seed %d: %s: %q, want %v", seed, what, got, want)
			}
		}
		for step := range 3000 {
			name := names[rng.IntN(3)]
			set, member := want[name], strconv.Itoa(rng.IntN(60)-20)
			if rng.IntN(50) == 0 {
				member += "x"
			}
			switch had := set[member]; rng.IntN(8) {
			case 0, 1, 2:
				if b.reply("SADD", name, member, member).Int == 1 == had {
					t.Fatalf("seed %d: SADD of %s", seed, member)
				}
				set[member] = true
			case 3:
				if b.reply("SREM", name, member, member).Int == 1 != had {
					t.Fatalf("seed %d: SREM of %s", seed, member)
				}
				delete(set, member)
			case 4:
				for _, m := range texts(b.reply("SPOP", name, strconv.Itoa(rng.IntN(5)))) {
					if !set[m] {
						t.Fatalf("seed %d: SPOP returns %q", seed, m)
					}
					delete(set, m)
				}
			case 5:
				to := names[rng.IntN(3)]
				if b.reply("SMOVE", name, to, member).Int == 1 != had {
					t.Fatalf("seed %d: SMOVE of %s", seed, member)
				}
				if had {
					delete(set, member)
					want[to][member] = true
				}
			case 6:
				check(name, texts(b.reply("SMEMBERS", name)), set)
				if n := b.reply("SCARD", name).Int; n != int64(len(set)) {
					t.Fatalf("seed %d: SCARD is %d", seed, n)
				}
			case 7:
				checkOperations(b, rng, want, check)
			}
			if step%300 == 0 {
				b.drain()
			}
		}
	}
}

func checkOperations(b *bench, rng *rand.Rand, sets map[string]map[string]bool, check func(string, []string, map[string]bool)) {
	b.t.Helper()
	keys := []string{"a", "b", "c", "none"}
	rng.Shuffle(len(keys), func(i, j int) { keys[i], keys[j] = keys[j], keys[i] })
	keys = keys[:1+rng.IntN(4)]
	inter, union, diff := map[string]bool{}, map[string]bool{}, map[string]bool{}
	for _, key := range keys {
		for m := range sets[key] {
			union[m] = true
		}
	}
	for m := range union {
		in := 0
		for _, key := range keys {
			if sets[key][m] {
				in++
			}
		}
		if in == len(keys) {
			inter[m] = true
		}
		if in == 1 && sets[keys[0]][m] {
			diff[m] = true
		}
	}
	for op, want := range map[string]map[string]bool{"SINTER": inter, "SUNION": union, "SDIFF": diff} {
		check(op, texts(b.reply(append([]string{op}, keys...)...)), want)
		if n := b.reply(append([]string{op + "STORE", "to"}, keys...)...).Int; n != int64(len(want)) {
			b.t.Fatalf("%sSTORE is %d", op, n)
		}
		check(op+"STORE", texts(b.reply("SMEMBERS", "to")), want)
	}
	if n := b.reply(append([]string{"SINTERCARD", strconv.Itoa(len(keys))}, keys...)...).Int; n != int64(len(inter)) {
		b.t.Fatalf("SINTERCARD is %d, want %d", n, len(inter))
	}
}

// SPOP takes all members alike.
func TestSpopIsFair(t *testing.T) {
	const members, rounds = 20, 4000
	for _, entries := range []int64{0, 512} {
		for _, count := range []string{"1", "5", "15"} {
			b := newBench(t, &Server{})
			b.s.config.setEntries = entries
			for i := range members {
				b.reply("SADD", "all", strconv.Itoa(i))
			}
			counts, total := map[string]int{}, 0
			for range rounds {
				b.reply("COPY", "all", "s", "REPLACE")
				for _, m := range texts(b.reply("SPOP", "s", count)) {
					counts[m]++
					total++
				}
			}
			chi, mean := 0.0, float64(total)/members
			for _, n := range counts {
				chi += (float64(n) - mean) * (float64(n) - mean) / mean
			}
			if len(counts) != members || chi > 70 {
				t.Errorf("entries %d, count %s: %d members, chi square %.0f", entries, count, len(counts), chi)
			}
		}
	}
}

// A large set is deleted at once and freed in slices.
func TestLargeSetIsFreedInSlices(t *testing.T) {
	b := newBench(t, &Server{})
	const members = 200_000
	request := make([]string, 0, 1002)
	for i := 0; i < members; i += 1000 {
		request = append(request[:0], "SADD", "s")
		for j := range 1000 {
			request = append(request, "member:"+strconv.Itoa(i+j))
		}
		b.reply(request...)
	}
	if n := b.reply("SCARD", "s").Int; n != members {
		t.Fatalf("SCARD is %d", n)
	}
	full := b.s.space.store.Memory()
	b.reply("DEL", "s")
	if now := b.s.space.store.Memory(); now.Held < full.Held*9/10 || now.Used > full.Used/10 || now.Waiting < full.Used*8/10 {
		t.Errorf("after DEL %+v, before %+v", now, full)
	}
	slices := 0
	for b.s.space.store.Tick(tidyWork) {
		slices++
	}
	if now := b.s.space.memory(); now > 10_000 || slices < 20 {
		t.Errorf("%d bytes are left after %d slices", now, slices)
	}
}

// What many members of a set make goes out in pieces, and comes complete.
func TestLargeReplies(t *testing.T) {
	b := newBench(t, &Server{})
	long := strings.Repeat("m", 1000)
	for i := range 300 {
		b.reply("SADD", "s", long+strconv.Itoa(i))
		b.reply("HSET", "h", strconv.Itoa(i), long)
	}
	for _, line := range []string{"SMEMBERS s", "SUNION s none", "SRANDMEMBER s -500", "SRANDMEMBER s 299", "SSCAN s 0 COUNT 1000", "HVALS h", "HRANDFIELD h -300 WITHVALUES", "SPOP s 250"} {
		v := b.reply(strings.Fields(line)...)
		if len(v.Elems) == 2 {
			v = v.Elems[1]
		}
		if len(v.Elems) < 250 {
			t.Errorf("%s: %d elements", line, len(v.Elems))
		}
	}
}
