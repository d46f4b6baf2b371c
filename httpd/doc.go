// Package httpd serves net/http's handlers over HTTP on the loops of an engine:
//
//	srv := &http.Server{Handler: mux, IdleTimeout: time.Minute}
//	ln, err := net.Listen("tcp", ":80")
//	...
//	err = httpd.Serve(srv, ln)
//
// It is for servers with many connections of which most are idle, and for handlers that do
// not block: [OnLoop] runs these as coroutines of the loop. A connection without a request in
// progress has no goroutine and no buffer. All other handlers run on goroutines, which
// are used again; there are at most as many as requests in progress. They send short answers
// past the loop, which LoopStats do not count, unless hooks of rondo.Trace or Conn.SetIdle
// need to see them. Leave Engine.SpareProcessor false for them: it makes Go's scheduler wake
// another thread for each request that comes alone. An Engine.Spin of 20 µs, as Serve's engines
// have, is for servers with few clients at a time: they wait less, and the processor does not
// fall asleep between two requests.
//
// # The same as net/http
//
// An *http.Server is the configuration: Handler, ReadTimeout, ReadHeaderTimeout,
// WriteTimeout, IdleTimeout, MaxHeaderBytes, TLSConfig (with [ServeTLS]), ConnState,
// ErrorLog, BaseContext, ConnContext, Protocols, HTTP2 and DisableGeneralOptionsHandler. Its
// Shutdown, Close and RegisterOnShutdown work. Handlers find what they expect of net/http's server: Flusher,
// Hijacker, CloseNotifier, io.ReaderFrom, http.ResponseController, the context's values and
// its end when the client goes, trailers, 1xx answers, 100-continue at the first read of the
// body, sniffed types, the choice between Content-Length and chunks, keep-alive of HTTP/1.0,
// pipelining. The tests compare answers with net/http's, byte for byte, and net/http's own
// tests of its server pass on httpd over HTTP/1, TLS and HTTP/2, but three about
// SetKeepAlivesEnabled.
//
// # Not the same
//
//   - Requests are read by package http1, which refuses more: a Content-Length beside
//     Transfer-Encoding, continued lines, hosts that are none. Rules.BareLF and
//     Rules.NonASCII are set, as old clients need them.
//   - TLSNextProto is for HTTP/2 alone, as http2.ConfigureServer of golang.org/x/net sets it:
//     there is no *tls.Conn for other functions. A connection that chooses such a protocol
//     ends behind its handshake.
//   - SetKeepAlivesEnabled has no effect, and Shutdown does not wait for connections on which
//     no byte has arrived.
//   - The net.Conn that ConnState and ConnContext get is for its addresses and for Close.
//     Serve replaces the hooks of the http.Server by others that call them, and allows it
//     HTTP/1 for its own use.
//   - http.MaxBytesReader does not close the connection behind the answer by itself; a
//     body of more than 256 KiB that was not read does.
//   - A handler that returns while another goroutine is in a method of its ResponseWriter, on a
//     goroutine, waits for that method. Later calls fail and do no harm.
//   - Behind the last answer of a connection, and behind one to a request that is refused, up to
//     256 KiB of input are read and dropped, for half a second; net/http waits without reading.
//
// # HTTP/2
//
// net/http serves HTTP/2 itself, on goroutines: an http.Server with the same configuration
// gets each connection that chose HTTP/2 in its TLS handshake, or began with its preface if
// Protocols has UnencryptedHTTP2, as a blocking net.Conn over the loop. Until the preface is
// complete the connection has no goroutine. [ServeTLS] offers HTTP/2 as net/http does. For a
// Server, put "h2" before "http/1.1" in NextProtos of the tls.Config.
//
// # Bodies
//
// A body is received while the handler reads it, and up to 64 KiB ahead. One that nobody reads
// is not received, but for what comes with the head. Write waits while the client does not
// read: at most the engine's HighWater, and 256 KiB of one Write, are under way.
//
// # Hostile clients
//
// Set the limits of time: they hold for clients that send or read slowly, as with net/http. In
// heap and stacks a connection takes less than 1 KiB without a request (with TLS 8 KiB), 40 KiB
// with a body that comes slowly, and 256 KiB with a body that comes faster than it is read. With
// an answer that is not read it takes 384 KiB, and 512 KiB if the client goes on to send requests:
// most of that is output, which the engine's HighWater bounds (256 KiB by default). What the
// handler takes comes on top. A head takes as much as MaxHeaderBytes allows. Tests hold to that,
// with hundreds of connections whose answers are not read and with thousands of the others.
//
// # Files
//
// io.Copy from an *os.File, http.ServeContent and http.ServeFile send the file by the system
// (sendfile) unless the answer is chunked; with TLS, and on backends without sendfile, in
// pieces. A handler on a goroutine waits until the file is sent. A handler on the loop
// does not: the connection sends a duplicate of the file. Reading the file's first 512 bytes,
// and the disk, then hold up the loop.
package httpd
