// Package rdb writes and reads values in the format of Redis's RDB files, version 10 of
// Redis 7.0. DUMP and RESTORE exchange values in it. Values of modules are not
// known.
//
// An [Encoder] appends the parts of a value to a slice. [Parse] checks a value from
// elsewhere, of this or of any earlier version, before anything is done with it: every
// length, and all of a listpack, an intset, a ziplist or a zipmap. What it allocates is in
// proportion to the bytes that there are, not to lengths that they announce; compressed
// bytes count as they are when expanded, and have a limit. It cannot panic, whatever the
// bytes are.
//
// [Encoder.Seal] ends the payload of DUMP with version and checksum; [Unseal] checks these.
//
//	append.go   Encoder
//	parse.go    Parse, Value
//	elements.go what a Value has
//	stream.go   streams
//	read.go     lengths and strings
//	ziplist.go  small values of Redis before 7.0, as listpacks
//	lzf.go      compressed strings
//	seal.go     version and checksum
//
// # Layout
//
// A value is a [Type], and then a string, or a number of strings. A number, or the length
// of a string, begins with two bits:
//
//	00     6 bits are the number
//	01     14 bits, high ones first
//	10     10000000: 4 bytes follow, high one first; 10000001: 8 bytes
//	11     a string that is an integer of 1, 2 or 4 bytes, low one first, or compressed:
//	       its compressed length, its length, the compressed bytes
package rdb
