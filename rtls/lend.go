package rtls

import (
	"bytes"
	"crypto/tls"
	"reflect"
	"unsafe"
)

// A tls.Conn receives each record into a bytes.Buffer of its own, which grows to
// the longest record there was, and is kept: 18 KiB of an idle connection whose
// peer has once sent 16 KiB. Between two records it is empty. So the connections
// of a loop share one, which each is lent for as long as it reads.
//
// Likewise the messages of a handshake pass through a buffer that is kept: 2 KiB
// where a client offers a key of ML-KEM. That one is dropped when it is empty.
//
// crypto/tls has no means for that, hence reflection finds the fields. If one is
// called otherwise some day, or is something else, nothing is lent or dropped, and
// memory is all that is lost.

// rawInput and messages are the fields' offsets in tls.Conn, if lends and drops.
var (
	rawInput, lends = bufferField("rawInput")
	messages, drops = bufferField("hand")
)

func bufferField(name string) (offset uintptr, ok bool) {
	field, ok := reflect.TypeFor[tls.Conn]().FieldByName(name)
	return field.Offset, ok && field.Type == reflect.TypeFor[bytes.Buffer]()
}

// rawSize lets a buffer take the longest record without growing: bytes.Buffer
// wants room for a further read behind it.
const rawSize = maxRecord + 2*bytes.MinRead

// buffer is c's at an offset.
func buffer(c *tls.Conn, offset uintptr) *bytes.Buffer {
	return (*bytes.Buffer)(unsafe.Add(unsafe.Pointer(c), offset))
}

// lend lets c read into b, until giveBack.
func lend(c *tls.Conn, b *[rawSize]byte) {
	if lends {
		if raw := buffer(c, rawInput); raw.Len() == 0 {
			*raw = *bytes.NewBuffer(b[:0])
		}
	}
}

// giveBack ends lend. What c has read was consumed, or c has failed.
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
