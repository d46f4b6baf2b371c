package store

import "github.com/rondo-go/rondo/resp"

// Type is the type of a value, as Redis's TYPE names it.
type Type uint8

const (
	String Type = iota
	List
	Set
	ZSet
	Hash
	Stream
	numTypes
)

// String returns the name that the command TYPE returns.
func (t Type) String() string {
	return [...]string{"string", "list", "set", "zset", "hash", "stream"}[t]
}

// Form says how an entry holds its value. Together with the Type, and Value.Alt, it
// determines what OBJECT ENCODING returns.
type Form uint8

const (
	// Embedded bytes follow the key in the entry's cell.
	Embedded Form = iota
	// Integer values are an int64 in one to ten bytes.
	Integer
	// Large bytes have a cell beside the entry's: the entry would exceed 32 KiB.
	Large
	// Node values are cells of their own, which the Type's NodeOps know.
	Node
)

// maxEmbedded bounds the size of an entry with an embedded value.
const maxEmbedded = maxSmall

// A Value is a value for DB.Put and DB.Replace. The Store copies its bytes, except those
// of KeptString.
type Value struct {
	Type Type
	// Alt is a bit for the Type to use. For strings it says that the value was changed in
	// place, so that OBJECT ENCODING is raw.
	Alt bool

	form  Form
	kept  bool // the Store takes over bytes
	bytes []byte
	num   uint64 // the integer, or the Handle
}

// StringValue returns a string as SET stores it: as an integer if the bytes are an int64
// in decimal. The bytes must not be memory of the Store.
func StringValue(v []byte) Value {
	if n, ok := resp.ParseInt(v); ok {
		return IntValue(n)
	}
	return Value{bytes: v}
}

// BytesValue returns a value of bytes as they are. The bytes must not be memory of the
// Store.
func BytesValue(t Type, v []byte, alt bool) Value { return Value{Type: t, Alt: alt, bytes: v} }

// KeptString returns a string whose memory the Store takes over if it is too long for an
// entry: the caller must not use it any more, but after DB.Put as an Item's bytes.
func KeptString(v []byte) Value { return Value{kept: true, bytes: v} }

// IntValue returns the string of n in decimal.
func IntValue(n int64) Value { return Value{form: Integer, num: uint64(n)} }

// NodeValue returns a value made of cells.
func NodeValue(t Type, root Handle, alt bool) Value {
	return Value{Type: t, Alt: alt, form: Node, num: uint64(root)}
}
