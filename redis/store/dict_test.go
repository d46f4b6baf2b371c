package store

import (
	"bytes"
	"encoding/binary"
	"fmt"
	"math/rand/v2"
	"strconv"
	"testing"
)

// dictModel is what a Dict should hold, and a scan that goes on while it changes.
type dictModel struct {
	t     *testing.T
	seed  uint64
	rng   *rand.Rand
	s     *Store
	db    *DB
	shape Shape
	want  map[string]string

	cursor uint64
	since  map[string]bool // present since the scan began
	seen   map[string]bool
}

func newDictModel(t *testing.T, seed uint64, shape Shape) *dictModel {
	s := New(Options{Databases: 2, Seed: seed, Poison: true})
	t.Cleanup(s.Close)
	s.SetNodeOps(Hash, DictNodes{})
	s.SetDefrag(5)
	m := &dictModel{t: t, seed: seed, rng: rand.New(rand.NewPCG(seed, 2)), s: s, db: s.DB(0), shape: shape, want: map[string]string{}}
	m.db.Put([]byte("d"), NodeValue(Hash, m.db.NewDict(shape).Root(), false), NoDeadline)
	m.beginScan()
	return m
}

func (m *dictModel) fail(format string, args ...any) {
	m.t.Helper()
	m.t.Fatalf("seed %d: %s", m.seed, fmt.Sprintf(format, args...))
}

func (m *dictModel) dict() Dict { return m.db.Dict(m.db.Find([]byte("d")).Root()) }

func (m *dictModel) text() []byte {
	n := m.rng.IntN(30)
	switch m.rng.IntN(200) {
	case 0:
		n = 40000 + m.rng.IntN(1000)
	case 1, 2:
		n = 100 + m.rng.IntN(300)
	}
	return bytes.Repeat([]byte{byte(m.rng.Uint32())}, n)
}

func (m *dictModel) name(of int) []byte {
	name := strconv.AppendInt(nil, m.rng.Int64N(int64(of)), 10)
	if name[len(name)-1] == '7' {
		name = append(name, bytes.Repeat([]byte("n"), 200)...)
	}
	return name
}

func mark(name []byte) uint64 { return seededHash(77, name) }

func (m *dictModel) put(name []byte) {
	d := m.dict()
	var value []byte
	if m.shape.Values {
		value = m.text()
	}
	h, added := d.Put(name, value)
	if _, had := m.want[string(name)]; added == had {
		m.fail("Put(%.20q) reports %t", name, added)
	}
	if m.shape.Payload > 0 {
		p := d.Payload(h)
		if got := binary.LittleEndian.Uint64(p); added && got != 0 || !added && got != mark(name) {
			m.fail("payload of %.20q is %x", name, got)
		}
		binary.LittleEndian.PutUint64(p, mark(name))
	}
	m.want[string(name)] = string(value)
}

func (m *dictModel) delete(name []byte) {
	_, had := m.want[string(name)]
	if m.dict().Delete(name) != had {
		m.fail("Delete(%.20q) reports %t", name, !had)
	}
	delete(m.want, string(name))
	delete(m.since, string(name))
}

func (m *dictModel) check(d Dict) {
	m.t.Helper()
	n := 0
	for h := range d.Each {
		m.checkField(d, h)
		n++
	}
	if n != len(m.want) || d.Len() != n {
		m.fail("Each visits %d fields of %d, want %d", n, d.Len(), len(m.want))
	}
	for name := range m.want {
		if h := d.Find([]byte(name)); h == 0 || string(d.Name(h)) != name {
			m.fail("%.20q is not found", name)
		}
	}
}

func (m *dictModel) checkField(d Dict, h Handle) {
	m.t.Helper()
	name := d.Name(h)
	value, ok := m.want[string(name)]
	switch {
	case !ok:
		m.fail("unexpected %.20q", name)
	case m.shape.Values && string(d.Value(h)) != value:
		m.fail("%.20q has value %.20q, want %.20q", name, d.Value(h), value)
	case m.shape.Payload > 0 && binary.LittleEndian.Uint64(d.Payload(h)) != mark(name):
		m.fail("%.20q has payload %x", name, d.Payload(h))
	}
}

func (m *dictModel) beginScan() {
	m.since, m.seen = map[string]bool{}, map[string]bool{}
	for name := range m.want {
		m.since[name] = true
	}
}

func (m *dictModel) scan() {
	d := m.dict()
	m.cursor = d.Scan(m.cursor, 1+m.rng.IntN(20), func(h Handle) {
		m.checkField(d, h)
		m.seen[string(d.Name(h))] = true
	})
	if m.cursor == 0 {
		for name := range m.since {
			if !m.seen[name] {
				m.fail("Scan has missed %.20q", name)
			}
		}
		m.beginScan()
	}
}

func (m *dictModel) copied() {
	db := m.s.DB(1)
	it := db.Peek([]byte("copy"))
	if it.Exists() {
		db.Delete(it)
	}
	m.db.Copy(m.db.Find([]byte("d")), db, []byte("copy"))
	it = db.Peek([]byte("copy"))
	m.check(db.Dict(it.Root()))
}

// A Dict holds what a map does, through growth, shrinking, defragmentation and copies, and
// a scan meanwhile misses nothing.
func TestDictModel(t *testing.T) {
	for _, shape := range []Shape{{}, {Values: true}, {Payload: 8}, {Payload: 8, Values: true}} {
		for seed := range uint64(4) {
			t.Run(fmt.Sprintf("%+v/%d", shape, seed), func(t *testing.T) {
				m := newDictModel(t, seed+1, shape)
				names := 1 << (2 * (seed + 2))
				for range 10 {
					deletes := 1 + m.rng.IntN(9)
					for range 600 {
						if name := m.name(names); m.rng.IntN(10) < deletes {
							m.delete(name)
						} else {
							m.put(name)
						}
						if m.rng.IntN(10) == 0 {
							m.scan()
						}
						if h := m.dict().Random(); h != 0 {
							m.checkField(m.dict(), h)
						}
					}
					m.s.Tick(m.rng.IntN(5000))
					m.check(m.dict())
					m.copied()
				}
				m.s.Flush()
				for m.s.Tick(1000) {
				}
				if memory := m.s.Memory(); memory != (Memory{}) {
					t.Errorf("after Flush %+v", memory)
				}
			})
		}
	}
}

// A large Dict, whose directory grows, moves when its neighbors are deleted, and gives its
// memory back as it shrinks.
func TestLargeDict(t *testing.T) {
	const fields = 60000
	m := newDictModel(t, 9, Shape{Payload: 100})
	empty := m.db.Used()
	for i := range fields {
		m.put(strconv.AppendInt(nil, int64(i), 10))
		if i%100 == 0 {
			m.scan()
		}
	}
	full := m.db.Used()
	if each := (full - empty) / fields; each > 125 {
		t.Errorf("%d bytes a field", each)
	}
	if n := m.db.Peek([]byte("d")).Size(); int64(n) > full-empty+1000 || int64(n) < (full-empty)*9/10 {
		t.Errorf("Size is %d of %d", n, full-empty)
	}
	for i := range fields {
		if i%8 != 0 {
			m.delete(strconv.AppendInt(nil, int64(i), 10))
		}
		if i%100 == 0 {
			m.scan()
		}
	}
	held := m.s.Memory().Held
	for range 200 {
		m.s.Tick(1_000_000)
	}
	if now := m.s.Memory().Held; now > held*2/3 {
		t.Errorf("%d bytes held after defragmentation, before %d", now, held)
	}
	m.check(m.dict())
	m.copied()
	for i := range fields {
		m.delete(strconv.AppendInt(nil, int64(i), 10))
	}
	m.check(m.dict())
	if now := m.db.Used(); now > empty {
		t.Errorf("%d bytes in use, at first %d", now, empty)
	}
}

// Every field is as likely as any other, also in chains.
func TestDictRandomIsFair(t *testing.T) {
	s := New(Options{Seed: 3})
	defer s.Close()
	d := s.DB(0).NewDict(Shape{})
	const fields, rounds = 300, 300_000
	for i := range fields {
		d.Put(strconv.AppendInt(nil, int64(i), 10), nil)
	}
	counts := map[string]int{}
	for range rounds {
		counts[string(d.Name(d.Random()))]++
	}
	const mean = float64(rounds) / fields
	chi := 0.0
	for _, n := range counts {
		chi += (float64(n) - mean) * (float64(n) - mean) / mean
	}
	// The mean of chi is fields-1, its deviation the root of twice that.
	if len(counts) != fields || chi > fields+5*24.5 {
		t.Errorf("%d fields were chosen, chi square %.0f", len(counts), chi)
	}
}

// FreeDict keeps to its budget, whatever that is.
func TestFreeDict(t *testing.T) {
	for budget := 1; budget < 3000; budget = budget*3 + 1 {
		s := New(Options{Databases: 1, Seed: 3, Poison: true})
		db := s.DB(0)
		d := db.NewDict(Shape{})
		for i := range 5000 {
			d.Put(strconv.AppendInt(nil, int64(i), 10), nil)
		}
		root, calls := d.Root(), 0
		for ; root != 0; calls++ {
			root = FreeDict(db.Cells(), root, budget)
		}
		if least := 5000 / budget; calls < least || calls > 2*least+2 {
			t.Errorf("%d calls with budget %d", calls, budget)
		}
		if n := db.Used(); n != 0 {
			t.Errorf("budget %d leaves %d bytes", budget, n)
		}
		s.Close()
	}
}

func TestDictNoAllocations(t *testing.T) {
	s := New(Options{Databases: 1})
	defer s.Close()
	db := s.DB(0)
	root := db.NewDict(Shape{Values: true}).Root()
	names := make([][]byte, 3000)
	for i := range names {
		names[i] = fmt.Appendf(nil, "name%d", i)
	}
	short, long := []byte("v"), []byte("a longer value for the field")
	total := 0
	n := testing.AllocsPerRun(10, func() {
		d := db.Dict(root)
		for _, name := range names {
			d.Put(name, short)
			d.Put(name, long)
			total += len(d.Value(d.Find(name)))
		}
		for h := range d.Each {
			total += len(d.Name(h))
		}
		d.Scan(0, 10, func(h Handle) { total += len(d.Name(h)) })
		d.Random()
		for _, name := range names {
			d.Delete(name)
		}
	})
	if n > 0 {
		t.Errorf("%.1f allocations", n)
	}
}

func BenchmarkDict(b *testing.B) {
	for _, fields := range []int{1000, 1_000_000} {
		s := New(Options{Databases: 1})
		d := s.DB(0).NewDict(Shape{})
		names := make([][]byte, fields)
		for i := range names {
			names[i] = fmt.Appendf(nil, "member:%d", i)
		}
		b.Run(fmt.Sprintf("put/%d", fields), func(b *testing.B) {
			for i := range b.N {
				d.Put(names[i%fields], nil)
			}
		})
		for _, name := range names {
			d.Put(name, nil)
		}
		b.Run(fmt.Sprintf("find/%d", fields), func(b *testing.B) {
			for i := range b.N {
				if d.Find(names[i*7919%fields]) == 0 {
					b.Fatal("not found")
				}
			}
		})
		s.Close()
	}
}

// A large Dict is defragmented in slices, among other values, while it changes.
func TestDictIsDefragmentedInSlices(t *testing.T) {
	m := newDictModel(t, 5, Shape{Payload: 100})
	other := m.db.NewDict(Shape{})
	for i := range 20000 {
		other.Put(strconv.AppendInt(nil, int64(i), 10), nil)
	}
	m.db.Put([]byte("other"), NodeValue(Hash, other.Root(), false), NoDeadline)
	for i := range 100 {
		m.db.Put(fmt.Appendf(nil, "string%d", i), IntValue(int64(i)), NoDeadline)
	}
	const fields = 60000
	for i := range fields {
		m.put(strconv.AppendInt(nil, int64(i), 10))
	}
	for i := range fields {
		if i%8 != 0 {
			m.delete(strconv.AppendInt(nil, int64(i), 10))
		}
	}
	held := m.s.Memory().Held
	slices, cursors := 0, 0
	for m.s.Tick(1000) || slices < 300 {
		slices++
		if m.db.t.sweep.cursor != 0 {
			cursors++
		}
		name := m.name(fields)
		if m.put(name); slices%2 == 0 {
			m.delete(name)
		}
	}
	if now := m.s.Memory().Held; now > held/2 || cursors < 20 {
		t.Errorf("%d bytes held after %d slices, %d within a value; before %d", now, slices, cursors, held)
	}
	m.check(m.dict())
	if n := m.db.Dict(m.db.Find([]byte("other")).Root()).Len(); n != 20000 {
		t.Errorf("the other Dict has %d fields", n)
	}
}

// A large deleted value counts as waiting memory, not as used, though it is freed later:
// eviction goes by that.
func TestDeletedDictIsNotUsed(t *testing.T) {
	m := newDictModel(t, 6, Shape{})
	m.db.Put([]byte("other"), StringValue(bytes.Repeat([]byte("x"), 10000)), NoDeadline)
	d := m.dict()
	for i := range 50000 {
		d.Put(strconv.AppendInt(nil, int64(i), 10), nil)
	}
	full := m.s.Memory()
	m.db.Delete(m.db.Find([]byte("d")))
	if now := m.s.Memory(); now.Used > full.Used/10 || now.Waiting < full.Used*8/10 || now.Held < full.Held*9/10 {
		t.Errorf("after Delete %+v, before %+v", now, full)
	}
	for last := m.s.Memory(); m.s.Tick(5000); {
		now := m.s.Memory()
		if now.Used > full.Used/10 {
			t.Fatalf("%+v, before %+v", now, last)
		}
		last = now
	}
	if now := m.s.Memory(); now.Waiting > 0 || now.Used < 10000 || now.Used > 20000 {
		t.Errorf("at the end %+v", now)
	}
}
