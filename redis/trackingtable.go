package redis

import (
	"encoding/binary"
	"slices"

	"github.com/rondo-go/rondo/redis/store"
)

// trackingTable knows which clients have read which keys. It is a store of its own: a key
// takes about 24 bytes and its length, and 4 for each client, none of which Go's collector
// sees. The value of a key is the sorted list of its clients' tokens.
type trackingTable struct {
	store *store.Store // nil: no key was ever noted
	db    *store.DB
	items int64 // tokens of all keys
	seed  uint64
}

// tokenSize is the size of a token.
const tokenSize = 4

func (t *trackingTable) len() int {
	if t.db == nil {
		return 0
	}
	return t.db.Len()
}

// used returns the bytes that the table takes.
func (t *trackingTable) used() int64 {
	if t.db == nil {
		return 0
	}
	return t.db.Used()
}

// held returns used, and a tenth more that may be free in between, as keyspace.memory does.
func (t *trackingTable) held() int64 {
	if t.store == nil {
		return 0
	}
	m := t.store.Memory()
	return min(m.Held, m.Used+m.Used/10)
}

// tick gives the table's store time; see store.Store.Tick.
func (t *trackingTable) tick(budget int) (more bool) { return t.store != nil && t.store.Tick(budget) }

func (t *trackingTable) open() {
	o := storeOptions
	o.Databases = 1
	if t.seed != 0 {
		o.Seed = t.seed
	}
	t.store = store.New(o)
	t.store.SetDefrag(defragFrom)
	t.db = t.store.DB(0)
}

// add notes that a client has read a key. alive tells which tokens still have clients.
func (t *trackingTable) add(key []byte, token uint32, alive func(uint32) bool) {
	if t.db == nil {
		t.open()
	}
	hash := t.db.Hash(key)
	it := t.db.FindHashed(key, hash)
	if !it.Exists() {
		var one [tokenSize]byte
		binary.LittleEndian.PutUint32(one[:], token)
		t.db.PutHashed(key, hash, store.BytesValue(store.String, one[:], false), store.NoDeadline)
		t.items++
		return
	}
	list := it.Bytes()
	at, found := searchToken(list, token)
	if found {
		return
	}
	if n := len(list) / tokenSize; n >= minPruned && n&(n-1) == 0 {
		list = prune(list, alive)
		t.items -= int64(n - len(list)/tokenSize)
		it = t.db.Replace(it, store.BytesValue(store.String, list, false), store.NoDeadline)
		at, _ = searchToken(list, token)
	}
	n := len(list)
	_, list = t.db.Resize(it, n+tokenSize)
	at *= tokenSize
	copy(list[at+tokenSize:], list[at:n])
	binary.LittleEndian.PutUint32(list[at:], token)
	t.items++
}

// minPruned is the least length of lists that are pruned, each time that it is a power of two.
// Clients that come, read and go would else make the list of a key that never changes longer
// and longer.
const minPruned = 64

// prune returns a copy of a list without the tokens of clients that have gone.
func prune(list []byte, alive func(uint32) bool) []byte {
	kept := make([]byte, 0, len(list))
	for ; len(list) > 0; list = list[tokenSize:] {
		if alive(binary.LittleEndian.Uint32(list)) {
			kept = append(kept, list[:tokenSize]...)
		}
	}
	return kept
}

// searchToken returns the index of a token in a list, or where it would be.
func searchToken(list []byte, token uint32) (at int, found bool) {
	low, high := 0, len(list)/tokenSize
	for low < high {
		middle := int(uint(low+high) / 2)
		if binary.LittleEndian.Uint32(list[middle*tokenSize:]) < token {
			low = middle + 1
		} else {
			high = middle
		}
	}
	return low, low*tokenSize < len(list) && binary.LittleEndian.Uint32(list[low*tokenSize:]) == token
}

// take removes a key, and appends the tokens of its clients to tokens.
func (t *trackingTable) take(key []byte, tokens []uint32) []uint32 {
	it := t.db.Find(key)
	if !it.Exists() {
		return tokens
	}
	list := it.Bytes()
	tokens = slices.Grow(tokens, len(list)/tokenSize)
	for ; len(list) > 0; list = list[tokenSize:] {
		tokens = append(tokens, binary.LittleEndian.Uint32(list))
	}
	t.items -= int64(len(tokens))
	t.db.Delete(it)
	return tokens
}

// random appends one of the keys to b. There must be one.
func (t *trackingTable) random(b []byte) []byte { return append(b, t.db.Random().Key()...) }

// flush removes all keys.
func (t *trackingTable) flush() {
	t.db.Flush()
	t.items = 0
}
