package rtls

import (
	"bytes"
	"crypto/tls"
	"reflect"
	"unsafe"
)

// A tls.Conn receives each record into its bytes.Buffer. The buffer grows to the longest
// record so far and is kept: 18 KiB for an idle connection whose peer has once sent 16
// KiB. Between two records it is empty. So the connections of a loop share one buffer,
// which each borrows while it reads.
//
// The messages of a handshake pass through another buffer that is kept: 2 KiB if a client
// offers an ML-KEM key. That one is dropped when it is empty.
//
// crypto/tls offers no way to do this, so reflection finds the fields. If a later Go
// renames a field or changes its type, nothing is lent or dropped: that costs memory, and
// nothing else.

// rawInput and messages are the offsets of the fields in tls.Conn, valid if lends and
// drops are true.
var (
	rawInput, lends = bufferField("rawInput")
	messages, drops = bufferField("hand")
)

func bufferField(name string) (offset uintptr, ok bool) {
	field, ok := reflect.TypeFor[tls.Conn]().FieldByName(name)
	return field.Offset, ok && field.Type == reflect.TypeFor[bytes.Buffer]()
}

// rawSize is enough for the longest record without growing: bytes.Buffer wants room for a
// further read behind it.
const rawSize = maxRecord + 2*bytes.MinRead

// buffer returns c's buffer at an offset.
func buffer(c *tls.Conn, offset uintptr) *bytes.Buffer {
	return (*bytes.Buffer)(unsafe.Add(unsafe.Pointer(c), offset))
}

// lend lets c read into b until endLend.
func lend(c *tls.Conn, b *[rawSize]byte) {
	if lends {
		if raw := buffer(c, rawInput); raw.Len() == 0 {
			*raw = *bytes.NewBuffer(b[:0])
		}
	}
}

// endLend ends lend. The bytes that c has read are consumed, or c has failed.
func endLend(c *tls.Conn) {
	if lends {
		*buffer(c, rawInput) = bytes.Buffer{}
	}
	if drops {
		if b := buffer(c, messages); b.Cap() > 0 && b.Len() == 0 {
			*b = bytes.Buffer{}
		}
	}
}
