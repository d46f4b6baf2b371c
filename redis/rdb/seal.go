package rdb

import (
	"encoding/binary"
	"hash/crc64"
	"math/bits"
)

// Version is the version of the format: that of Redis 7.0.
const Version = 10

const sealSize = 2 + 8

// jones is the polynomial of David Jones.
var jones = crc64.MakeTable(bits.Reverse64(0xAD93D23594C935A9))

// checksum continues a CRC over more bytes. It begins with 0, and unlike hash/crc64's it is
// not inverted.
func checksum(crc uint64, b []byte) uint64 { return ^crc64.Update(^crc, jones, b) }

// Seal appends the version and the checksum of all that is before: the end of a payload of
// DUMP.
func (e *Encoder) Seal() {
	e.B = binary.LittleEndian.AppendUint16(e.B, Version)
	e.B = binary.LittleEndian.AppendUint64(e.B, checksum(0, e.B))
}

// Unseal returns a payload of DUMP without its end. ok is false if the version is newer than
// Version, or the checksum wrong.
func Unseal(payload []byte) (value []byte, ok bool) {
	n := len(payload) - sealSize
	if n < 0 || binary.LittleEndian.Uint16(payload[n:]) > Version {
		return nil, false
	}
	return payload[:n], binary.LittleEndian.Uint64(payload[n+2:]) == checksum(0, payload[:n+2])
}
