// Package httpd serves net/http's handlers over HTTP/1 on the loops of an engine:
//
//	srv := &http.Server{Handler: mux, IdleTimeout: time.Minute}
//	ln, err := net.Listen("tcp", ":80")
//	...
//	err = httpd.Serve(srv, ln)
//
// It is for servers with many connections of which most are idle, and for handlers that do
// not block: [OnLoop] runs these without a goroutine. A connection without a request in
// progress has no goroutine and no buffer. All other handlers run on goroutines, which
// are used again; there are as many as requests in progress.
//
// # The same as net/http
//
// An *http.Server is the configuration: Handler, ReadTimeout, ReadHeaderTimeout,
// WriteTimeout, IdleTimeout, MaxHeaderBytes, TLSConfig (with [ServeTLS]), ConnState,
// ErrorLog, BaseContext, ConnContext and DisableGeneralOptionsHandler. Its Shutdown, Close
// and RegisterOnShutdown work. Handlers find what they expect of net/http's server: Flusher,
// Hijacker, CloseNotifier, io.ReaderFrom, http.ResponseController, the context's values and
// its end when the client goes, trailers, 1xx answers, 100-continue at the first read of the
// body, sniffed types, the choice between Content-Length and chunks, keep-alive of HTTP/1.0,
// pipelining. The tests compare answers with net/http's, byte for byte, and net/http's own
// tests of its server pass on httpd, but three about SetKeepAlivesEnabled.
//
// # Not the same
//
//   - Requests are read by package http1, which refuses more: a Content-Length beside
//     Transfer-Encoding, continued lines, hosts that are none. Rules.BareLF and
//     Rules.NonASCII are set, as old clients need them.
//   - There is no HTTP/2. A handler gets its preface as a request, as with net/http, and may
//     hijack the connection.
//   - SetKeepAlivesEnabled has no effect, and Shutdown does not wait for connections on which
//     no byte has arrived.
//   - The net.Conn that ConnState and ConnContext get is for its addresses and for Close.
//     Serve replaces the hooks of the http.Server by others that call them.
//   - http.MaxBytesReader does not close the connection behind the answer by itself; a
//     body of more than 256 KiB that was not read does.
//
// # Bodies
//
// A body is received while the handler reads it, and up to 64 KiB ahead. One that nobody reads
// is not received, but for what comes with the head. Write waits while the client does not
// read: at most the engine's HighWater, and 256 KiB of one Write, are under way.
package httpd
