// Package resp encodes and decodes RESP2 and RESP3, the protocols between Redis
// clients and servers. It consists of pure functions on bytes.
//
// A server reads requests with [ReadRequest]. [PartialRequest] does the same
// and resumes an incomplete request; [LongRequest] takes a request in pieces. A
// server writes replies with the Append functions, or with a [Reply], which
// knows the client's protocol version. A client, a test or a load generator
// reads replies with [ReadValue] and writes requests with [AppendRequest].
//
// Readers take the bytes that have arrived so far, and return how many they
// used:
//
//	n > 0            one item was read; it took n bytes
//	n == 0, no error the item is incomplete: call again with at least want bytes
//	error            the bytes can never become an item: close the connection
//
// The outcome does not depend on how the bytes were cut into pieces. Readers
// keep nothing: results alias the input, and are valid while the input is.
// Readers never write to the input. Only a LongRequest copies.
//
// The package does no I/O, starts no goroutines, knows no commands, and imports
// only the standard library. Its functions may be called from any goroutine.
//
// The protocol is described at
// https://redis.io/docs/latest/develop/reference/protocol-spec/. Where the
// description leaves a question open, Redis 7.0 is the reference, including the
// text of its protocol errors.
package resp
