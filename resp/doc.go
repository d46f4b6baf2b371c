// Package resp encodes and decodes RESP2 and RESP3, the protocols between
// Redis clients and servers, as pure functions on bytes.
//
// A server reads requests with [ReadRequest] (or [PartialRequest], which
// resumes an incomplete one, or [LongRequest], which takes one in pieces) and
// writes replies with the Append functions, or with a [Reply], which knows the
// protocol version its client asked for. A client, a test or a load generator
// reads replies with [ReadValue] and writes requests with [AppendRequest].
//
// Readers take what has arrived so far and tell how much of it they used:
//
//	n > 0            one item was read; it took n bytes
//	n == 0, no error the item is incomplete; no verdict before want bytes
//	error            the bytes can never become an item: close the connection
//
// The outcome does not depend on how the bytes were cut into pieces. Readers
// keep nothing: what they return aliases their input, and is valid as long as
// that is. They never write to it. Only a LongRequest copies.
//
// The package does no I/O, starts no goroutines, knows no commands, and
// imports nothing but the standard library. Its functions may be called from
// any goroutine.
//
// The protocol is described at https://redis.io/docs/latest/develop/reference/protocol-spec/.
// Where that leaves a question open, Redis 7.0 is the reference, down to the
// text of its protocol errors.
package resp
