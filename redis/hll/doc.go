// Package hll reads and writes Redis's HyperLogLogs: estimates of the number of different
// elements, in 12 KiB at most. The bytes are the same as those of Redis 7.0, so GET and SET,
// or DUMP and RESTORE, can exchange them.
//
// A HyperLogLog has 16,384 registers. The hash of an element ([Hash]) chooses a register,
// and gives a rank, which is the higher the rarer it is. A register keeps the highest rank
// of its elements, and [Count] makes an estimate of all ranks.
//
// [Set] works like append: it changes the HyperLogLog in place if it has the capacity,
// otherwise it allocates. Use the bytes that it returns.
//
// A HyperLogLog is a string that clients may write as they like. All functions but [Valid]
// trust that Valid reports true of their argument, which says nothing about a sparse one's
// runs: functions that find them wrong return ok false.
//
// The layout:
//
//	magic      4 bytes: HYLL
//	encoding   1 byte: 0 dense, 1 sparse
//	unused     3 bytes
//	estimate   8 bytes, little-endian: what Count returned, unless the highest bit is set
//	registers  dense: 6 bits each, from the lowest bit of each byte on
//	           sparse: runs of registers with the same rank
//
// A run of the sparse encoding:
//
//	00nnnnnn           n+1 registers of rank 0
//	01nnnnnn nnnnnnnn  n+1 registers of rank 0
//	1rrrrrnn           n+1 registers of rank r+1
package hll
