// Package rtls is TLS for rondo's connections: Filters over the unmodified
// crypto/tls. Its configuration, its certificates, its callbacks and its errors
// are crypto/tls's.
//
//	engine.Listen("tcp", ":443", rondo.SocketOptions{}, rondo.Filtered(open, rtls.Server(config)))
//
// The OpenFunc is called when the handshake is done; ConnectionState tells how it
// went. A Handler reads and writes plain bytes. Its EOF is the peer's close_notify;
// a stream that ends without one was cut off, perhaps by an attacker, and Closed
// gets io.ErrUnexpectedEOF. CloseWrite and Close send close_notify.
//
// # How
//
// A handshake is crypto/tls's ordinary, blocking code in a coroutine on the loop's
// goroutine: where it waits for bytes the loop goes on, and comes back when there
// are some. Afterwards nothing waits. So a connection costs no goroutine. See
// docs/tls.md.
//
// # What may block
//
// Callbacks of the configuration, such as GetCertificate and VerifyConnection, run
// on the loop, and so do the signatures of a handshake (1 ms with an RSA key of
// 2048 bits, 0.1 ms with ECDSA P-256). Options.OffLoop has handshakes run on other
// goroutines.
//
// # What this package is not
//
// It has no TLS of its own, and no means to reload certificates: GetCertificate
// and GetConfigForClient are those.
package rtls
