// Package rtls is TLS for rondo's connections, as Filters over the unmodified crypto/tls.
// It uses the configuration, certificates, callbacks and errors of crypto/tls.
//
//	engine.Listen("tcp", ":443", rondo.SocketOptions{}, rondo.Filtered(open, rtls.Server(config)))
//
// The OpenFunc is called when the handshake is done; ConnectionState returns the result.
// A Handler reads and writes plain bytes. Its EOF is the peer's close_notify. A stream
// that ends without close_notify was cut off, perhaps by an attacker: Closed receives
// io.ErrUnexpectedEOF. CloseWrite and Close send close_notify.
//
// # How
//
// A handshake is the ordinary, blocking code of crypto/tls, in a coroutine on the loop's
// goroutine. While it waits for bytes the loop serves others, and resumes it when bytes
// have come. After the handshake nothing waits. So a connection costs no goroutine. See
// docs/tls.md.
//
// # What may block
//
// The configuration's callbacks, such as GetCertificate and VerifyConnection, run on the
// loop. So do the signatures of a handshake (1 ms with an RSA key of 2048 bits, 0.1 ms
// with ECDSA P-256). Options.OffLoop moves handshakes to other goroutines.
//
// # What this package is not
//
// It has no TLS code, and no means to reload certificates: use GetCertificate or
// GetConfigForClient.
package rtls
