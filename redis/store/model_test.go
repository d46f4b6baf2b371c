package store

import (
	"bytes"
	"fmt"
	"math/rand/v2"
	"slices"
	"strconv"
	"testing"
)

// A model is what a Store should hold: maps, and the same clock.
type model struct {
	t    *testing.T
	seed uint64
	rng  *rand.Rand
	s    *Store
	dbs  []map[string]modelValue
	now  int64

	shots map[*table]*modelShot
	step  int
}

type modelValue struct {
	value    string
	deadline int64
}

// modelShot is a Snapshot, what it should visit, and what it has visited.
type modelShot struct {
	snap      *Snapshot
	want, got map[string]modelValue
}

func newModel(t *testing.T, seed uint64, o Options) *model {
	o.Seed, o.Poison, o.Databases = seed, true, 2
	m := &model{t: t, seed: seed, rng: rand.New(rand.NewPCG(seed, 1)), s: New(o), now: 1_700_000_000_000}
	m.dbs = []map[string]modelValue{{}, {}}
	m.shots = make(map[*table]*modelShot)
	m.s.SetNow(m.now)
	m.s.SetDefrag(10)
	m.s.OnExpire = m.onExpire
	t.Cleanup(m.s.Close)
	return m
}

func (m *model) fail(format string, args ...any) {
	m.t.Helper()
	m.t.Fatalf("seed %d, step %d: %s", m.seed, m.step, fmt.Sprintf(format, args...))
}

func (m *model) onExpire(db *DB, key []byte) {
	v, ok := m.dbs[db.Index()][string(key)]
	if !ok || v.deadline == 0 || v.deadline > m.now {
		m.fail("%q expires, want %v", key, v)
	}
	delete(m.dbs[db.Index()], string(key))
}

// value returns a random value: integers, short, long and very long strings.
func (m *model) value() string {
	switch n := m.rng.IntN(100); {
	case n < 20:
		return strconv.FormatInt(int64(m.rng.Uint64())>>m.rng.IntN(64), 10)
	case n < 80:
		return m.text(m.rng.IntN(40))
	case n < 95:
		return m.text(m.rng.IntN(400))
	case n < 99:
		return m.text(m.rng.IntN(5000))
	}
	return m.text(20000 + m.rng.IntN(40000))
}

func (m *model) text(n int) string {
	b := make([]byte, n)
	for i := range b {
		b[i] = byte('a' + (i+n)%26)
	}
	if n > 0 {
		b[m.rng.IntN(n)] = byte(m.rng.Uint32())
	}
	return string(b)
}

func (m *model) key() []byte {
	key := []byte("key:" + strconv.Itoa(m.rng.IntN(600)))
	if key[len(key)-1] == '7' { // some are long
		key = append(key, bytes.Repeat([]byte("k"), 200)...)
	}
	return key
}

func (m *model) deadline() int64 {
	switch m.rng.IntN(4) {
	case 0:
		return m.now + 1 + int64(m.rng.IntN(300))
	case 1:
		return m.now + 1 + int64(m.rng.IntN(200_000))
	case 2:
		return m.now + 1 + m.rng.Int64N(1<<40)
	}
	return m.now + 1 + m.rng.Int64N(Never-m.now-1)
}

// find looks up a key, and compares.
func (m *model) find(db int, key []byte) Item {
	it := m.s.DB(db).Find(key)
	want, ok := m.dbs[db][string(key)]
	if it.Exists() != ok {
		m.fail("Find(%q) exists: %t, want %t", key, it.Exists(), ok)
	}
	if ok {
		m.compare(it, key, want)
	}
	return it
}

func (m *model) compare(it Item, key []byte, want modelValue) {
	m.t.Helper()
	if !bytes.Equal(it.Key(), key) {
		m.fail("the Item of %q has key %q", key, it.Key())
	}
	if got := string(it.AppendTo(nil)); got != want.value {
		m.fail("%q is %.60q (%d bytes), want %.60q (%d)", key, got, len(got), want.value, len(want.value))
	}
	if it.Len() != len(want.value) || it.Deadline() != want.deadline {
		m.fail("%q has length %d and deadline %d, want %d and %d", key, it.Len(), it.Deadline(), len(want.value), want.deadline)
	}
}

// write does one random change.
func (m *model) write() {
	i := m.rng.IntN(2)
	db, want := m.s.DB(i), m.dbs[i]
	key := m.key()
	it := m.find(i, key)
	old := want[string(key)]
	switch n := m.rng.IntN(16); {
	case n < 5:
		m.put(db, want, key)
	case !it.Exists():
	case n < 6:
		v := m.value()
		db.Replace(it, StringValue([]byte(v)), KeepDeadline)
		want[string(key)] = modelValue{v, old.deadline}
	case n < 9:
		m.resize(db, it, want, key)
	case n < 11:
		db.Delete(it)
		delete(want, string(key))
	case n < 13:
		old.deadline = m.deadline()
		want[string(key)] = old
		m.compare(db.SetDeadline(it, old.deadline), key, old)
	case n < 14:
		old.deadline = 0
		want[string(key)] = old
		m.compare(db.Persist(it), key, old)
	default:
		m.transfer(i, key, old)
	}
}

func (m *model) put(db *DB, want map[string]modelValue, key []byte) {
	v := m.value()
	deadline := NoDeadline
	switch m.rng.IntN(3) {
	case 0:
		deadline = m.deadline()
	case 1:
		deadline = KeepDeadline
	}
	value := StringValue([]byte(v))
	if m.rng.IntN(4) == 0 {
		spare := append(make([]byte, 0, len(v)+100), v...)
		value = KeptString(spare)
		for i := range spare[len(v):cap(spare)] {
			spare[:cap(spare)][len(v)+i] = 0xEE
		}
	}
	it := db.Put(key, value, deadline)
	if deadline == KeepDeadline {
		deadline = want[string(key)].deadline
	}
	want[string(key)] = modelValue{v, deadline}
	m.compare(it, key, want[string(key)])
}

func (m *model) resize(db *DB, it Item, want map[string]modelValue, key []byte) {
	old := want[string(key)]
	n := max(0, len(old.value)+m.rng.IntN(60)-20)
	if m.rng.IntN(10) == 0 {
		n = m.rng.IntN(70000)
	}
	it, b := db.Resize(it, n)
	if len(b) != n {
		m.fail("Resize(%d) returned %d bytes", n, len(b))
	}
	is := append([]byte(old.value), make([]byte, n)...)[:n]
	if n > 0 {
		at := m.rng.IntN(n)
		b[at], is[at] = 'X', 'X'
	}
	want[string(key)] = modelValue{string(is), old.deadline}
	m.compare(it, key, want[string(key)])
}

// transfer renames, moves or copies a key to one that does not exist.
func (m *model) transfer(from int, key []byte, old modelValue) {
	to := m.rng.IntN(2)
	other := m.key()
	if bytes.Equal(key, other) && from == to {
		return
	}
	if target := m.find(to, other); target.Exists() {
		m.s.DB(to).Delete(target)
		delete(m.dbs[to], string(other))
	}
	it := m.find(from, key)
	if m.rng.IntN(2) == 0 {
		it = m.s.DB(from).Copy(it, m.s.DB(to), other)
	} else {
		it = m.s.DB(from).Move(it, m.s.DB(to), other)
		delete(m.dbs[from], string(key))
	}
	m.dbs[to][string(other)] = old
	m.compare(it, other, old)
}

// upkeep does one random thing that concerns all keys.
func (m *model) upkeep() {
	switch n := m.rng.IntN(40); {
	case n < 12:
		m.advance()
		m.s.Expire(1 + m.rng.IntN(300))
	case n < 24:
		m.s.Tick(1 + m.rng.IntN(3000))
	case n < 28:
		m.snapshot()
	case n < 30:
		m.mass()
	case n < 31:
		m.s.Swap(m.s.DB(0), m.s.DB(1))
		m.dbs[0], m.dbs[1] = m.dbs[1], m.dbs[0]
	case n < 32 && m.rng.IntN(4) == 0:
		i := m.rng.IntN(2)
		m.s.DB(i).Flush()
		clear(m.dbs[i])
	case n < 33:
		m.s.Track(Tracking(m.rng.IntN(3)))
	}
	for _, shot := range m.shots {
		if !shot.snap.Next(m.rng.IntN(40)) {
			m.endSnapshot(shot)
		}
	}
}

func (m *model) advance() {
	switch m.rng.IntN(10) {
	default:
		m.now += int64(m.rng.IntN(50))
	case 0:
		m.now += int64(m.rng.IntN(100_000))
	case 1:
		m.now += m.rng.Int64N(1 << 34)
	}
	m.s.SetNow(m.now)
	for i := range m.dbs {
		for key, v := range m.dbs[i] {
			if v.deadline == 0 || v.deadline > m.now {
				continue
			}
			if it := m.s.DB(i).Peek([]byte(key)); !it.Exists() || !it.Expired() {
				m.fail("%q should be there, and expired", key)
			}
		}
	}
}

// mass adds many keys, or deletes most, so that the table grows and shrinks.
func (m *model) mass() {
	i := m.rng.IntN(2)
	db := m.s.DB(i)
	if m.rng.IntN(2) == 0 {
		for n := range m.rng.IntN(3000) {
			key := fmt.Sprintf("mass:%d:%d", m.step, n)
			db.Put([]byte(key), StringValue([]byte(key)), NoDeadline)
			m.dbs[i][key] = modelValue{key, 0}
		}
		return
	}
	keys := make([]string, 0, len(m.dbs[i]))
	for key := range m.dbs[i] {
		keys = append(keys, key)
	}
	slices.Sort(keys) // so that the seed decides
	for _, key := range keys {
		if m.rng.IntN(8) > 0 {
			if it := db.Find([]byte(key)); it.Exists() {
				db.Delete(it)
			}
			delete(m.dbs[i], key)
		}
	}
}

func (m *model) snapshot() {
	db := m.s.DB(m.rng.IntN(2))
	if db.t.snap != nil {
		return
	}
	shot := &modelShot{want: contents(db), got: make(map[string]modelValue)}
	shot.snap = db.Snapshot(func(it Item) {
		key := string(it.Key())
		if _, ok := shot.got[key]; ok {
			m.fail("the Snapshot visits %q twice", key)
		}
		shot.got[key] = modelValue{string(it.AppendTo(nil)), it.Deadline()}
	})
	m.shots[db.t] = shot
}

func contents(db *DB) map[string]modelValue {
	all := make(map[string]modelValue)
	db.Each(func(it Item) {
		all[string(it.Key())] = modelValue{string(it.AppendTo(nil)), it.Deadline()}
	})
	return all
}

func (m *model) endSnapshot(shot *modelShot) {
	for t, s := range m.shots {
		if s == shot {
			delete(m.shots, t)
		}
	}
	if len(shot.got) != len(shot.want) {
		m.fail("the Snapshot visited %d keys, want %d", len(shot.got), len(shot.want))
	}
	for key, want := range shot.want {
		if shot.got[key] != want {
			m.fail("the Snapshot has %q as %.40v, want %.40v", key, shot.got[key], want)
		}
	}
}

// check compares everything.
func (m *model) check() {
	for i, want := range m.dbs {
		db := m.s.DB(i)
		got := contents(db)
		if len(got) != len(want) || db.Len() != len(want) {
			m.fail("DB %d has %d keys, Len is %d, want %d", i, len(got), db.Len(), len(want))
		}
		expiring := 0
		for key, v := range want {
			if got[key] != v {
				m.fail("DB %d: %q is %.60v, want %.60v", i, key, got[key], v)
			}
			if v.deadline != 0 {
				expiring++
			}
		}
		if db.Expiring() != expiring {
			m.fail("DB %d: %d keys expire, want %d", i, db.Expiring(), expiring)
		}
		checkTable(m.t, db.t)
	}
}

// checkTable checks that each entry is in the bucket of its hash, and that the accounts
// are right.
func checkTable(t *testing.T, tb *table) {
	t.Helper()
	if tb.segments == nil {
		return
	}
	var used, large int64
	over := 0
	for i := range tb.buckets() {
		for b := tb.next(tb.at(i)); b != nil; b = tb.next(b) {
			over++
		}
		tb.each(i, func(b bucket, slot int) {
			it := tb.item(b, slot)
			hash := tb.store.hasher.hash(it.Key())
			if tb.index(hash) != i || tagOf(hash) != b[slot] {
				t.Fatalf("%q is in bucket %d with tag %d, want %d and %d", it.Key(), i, b[slot], tb.index(hash), tagOf(hash))
			}
			h := handleAt(b, slot)
			used += int64(tb.cells.size(h))
			if it.Form() == Large {
				large += int64(tb.cells.size(it.e().handleAt(int(it.at))))
			}
		})
	}
	if used != tb.cells.used || large != tb.cells.large || over != tb.over.used {
		t.Fatalf("used %d, large %d, overflow buckets %d; the accounts say %d, %d, %d", used, large, over,
			tb.cells.used, tb.cells.large, tb.over.used)
	}
	if tb.cells.used > tb.cells.held {
		t.Fatalf("%d bytes are used of %d held", tb.cells.used, tb.cells.held)
	}
	if n := int(tb.buckets()); tb.count > n*maxLoad {
		t.Fatalf("%d keys in %d buckets", tb.count, n)
	}
}

// drain expires everything that has expired.
func (m *model) drain() {
	for m.s.Expire(100) {
	}
	for i := range m.dbs {
		for key, v := range m.dbs[i] {
			if v.deadline != 0 && v.deadline <= m.now {
				m.fail("%q has not expired", key)
			}
		}
	}
}

func (m *model) run(steps int) {
	for ; m.step < steps; m.step++ {
		m.write()
		if m.rng.IntN(4) == 0 {
			m.upkeep()
		}
		if m.step%500 == 499 {
			m.drain()
			m.check()
		}
	}
	for len(m.shots) > 0 {
		for _, shot := range m.shots {
			if !shot.snap.Next(100) {
				m.endSnapshot(shot)
			}
		}
	}
	m.s.Flush()
	for m.s.Tick(10000) {
	}
	if got := m.s.Memory(); got != (Memory{}) {
		m.fail("after Flush the Store takes %+v", got)
	}
	for number, c := range m.s.space.meta {
		if c.state != chunkUnused && c.state != chunkIdle {
			m.fail("after Flush chunk %d is in state %d of owner %d", number, c.state, c.owner)
		}
	}
}

// A Store does what a map does, whatever happens in whatever order.
func TestModel(t *testing.T) {
	seeds, steps := 30, 4000
	if testing.Short() {
		seeds = 5
	}
	for seed := range uint64(seeds) {
		for _, heap := range []bool{false, true} {
			t.Run(fmt.Sprintf("seed %d, heap %t", seed+1, heap), func(t *testing.T) {
				newModel(t, seed+1, Options{GoHeap: heap}).run(steps)
			})
		}
	}
}

// FuzzModel looks for seeds that TestModel does not try.
func FuzzModel(f *testing.F) {
	f.Add(uint64(1), uint16(1000))
	f.Fuzz(func(t *testing.T, seed uint64, steps uint16) {
		newModel(t, max(seed, 1), Options{GoHeap: seed%4 == 0}).run(int(steps % 5000))
	})
}
