// Package wsframe encodes and decodes the WebSocket protocol, version 13 (RFC 6455), and
// the parameters of permessage-deflate (RFC 7692). It consists of pure functions on bytes.
//
// A [Reader] reads what a peer sends. It checks each frame and the order of frames, and
// removes the mask. The Append functions write frames. [UTF8] checks texts in pieces,
// [ReadClose] and [AppendClose] are for the payload of a Close frame, [AcceptKey] and
// [ParseExtensions] for the handshake, [Deflate] for the negotiation of compression.
//
// Readers take the bytes that have arrived so far, and return how many they used:
//
//	n > 0            a piece was read; it took n bytes
//	n == 0, no error nothing can be read yet: call again with at least want bytes
//	error            the peer violates the protocol: close the connection
//
// The outcome does not depend on how the bytes were cut into pieces. A Reader keeps no
// payload: results alias the input. A payload is unmasked where it lies, so a Reader
// changes bytes of its input, but only bytes that it uses.
//
// An error is a [*ProtocolError], whose Code belongs into the Close frame that answers it.
//
// The package does no I/O and no compression, starts no goroutines, and imports only the
// standard library. Its functions may be called from any goroutine.
package wsframe
