package redis

// kind is the type of a value, as TYPE names it.
type kind uint8

const (
	kindString kind = iota
	kindList
	kindHash
	kindSet
	kindZSet
	kindStream
	kindCount
)

var kindNames = [kindCount]string{"string", "list", "hash", "set", "zset", "stream"}

func (k kind) String() string { return kindNames[k] }

// value is what a key of any type but string holds. A type is added by
// implementing it, beside the commands of its family.
type value interface {
	kind() kind
	// size is an estimate of the bytes held, for maxmemory.
	size() int
}

// entry is a key and what it holds: 64 bytes and, for a string, the bytes of
// the key and of the value, three allocations in all.
type entry struct {
	key string
	str []byte // the value of a string: owned by the entry, never aliased
	ref value  // the value of any other type; nil: a string

	slot   uint32 // position in database.dense
	expiry uint32 // position in database.expires plus one; 0: never expires
}

func (e *entry) kind() kind {
	if e.ref == nil {
		return kindString
	}
	return e.ref.kind()
}

// entryOverhead estimates what a key costs beside its bytes: the entry, its
// slots in the map and the dense table.
const entryOverhead = 64 + 32 + 8

func (e *entry) size() int {
	n := entryOverhead + len(e.key) + cap(e.str)
	if e.ref != nil {
		n += e.ref.size()
	}
	return n
}
