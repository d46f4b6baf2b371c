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

// value is the value of a key of any type but string. To add a type, implement
// value beside the commands of the type's family.
type value interface {
	kind() kind
	// size estimates the bytes held, for maxmemory.
	size() int
}

// entry is a key and its value: 64 bytes and, for a string, the bytes of the
// key and of the value, so three allocations.
type entry struct {
	key string
	str []byte // the value of a string; the entry owns it, and nothing aliases it
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

// entryOverhead estimates the memory of a key beside its bytes: the entry and
// its slots in the map and the dense table.
const entryOverhead = 64 + 32 + 8

func (e *entry) size() int {
	n := entryOverhead + len(e.key) + cap(e.str)
	if e.ref != nil {
		n += e.ref.size()
	}
	return n
}
