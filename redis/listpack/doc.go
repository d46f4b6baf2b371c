// Package listpack reads and writes Redis's listpacks: short lists of strings in one piece
// of memory. Small lists, hashes, sets and sorted sets are listpacks. The bytes are the
// same as those of Redis 7.0, so they can be exchanged by DUMP and RESTORE.
//
// # Elements
//
// An element is a [Value]: a string, or an integer that stands for its decimal digits.
// Elements are found by their position, an offset in the listpack. [First], [Last], [Next],
// [Prev] and [Seek] return positions. [End] is the position behind the last element.
//
//	for at := listpack.First(lp); at >= 0; at = listpack.Next(lp, at) {
//		v := listpack.At(lp, at)
//		...
//	}
//
// # Changes
//
// Functions that change a listpack work like append: they change lp in place if it has the
// capacity, otherwise they allocate. Use the listpack that they return, and not lp. To
// change a listpack whose memory has a fixed size, first make room for [Value.Size] bytes.
//
// Positions behind a changed element are not valid any more. A listpack may have at most
// [MaxSize] bytes; the caller checks that.
//
// # Foreign bytes
//
// All functions but [Valid] trust that lp is a listpack, and panic or return nonsense if it
// is not. Call Valid for bytes from elsewhere.
//
// # Layout
//
//	header   4 bytes: size in bytes; 2: number of elements, 65535 if there are more
//	element  encoding and data, then the size of both in 1 to 5 bytes, for the way back
//	end      1 byte: 255
//
// Numbers of the header are in little-endian order. See value.go for the encodings.
package listpack
