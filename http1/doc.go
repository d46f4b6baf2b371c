// Package http1 encodes and decodes HTTP/1.0 and HTTP/1.1 messages (RFC 9110, RFC 9112).
// It consists of pure functions on bytes.
//
// A server reads the head of a request with [Request.Parse], or with a [Partial], which
// resumes an incomplete head. It reads the body with [Request.Body] and [Body.Next], and
// writes the answer with the Append functions. [Request.ToHTTP] makes the *http.Request
// that net/http's server would make. A client or a proxy reads answers with
// [Response.Parse].
//
// Readers take the bytes that have arrived so far, and return how many they used:
//
//	n > 0            one head was read, or a part of a body; it took n bytes
//	n == 0, no error the head or the part is incomplete: call again with more bytes
//	error            an *Error: answer with its Status, and close the connection
//
// The outcome does not depend on how the bytes were cut into pieces. Results alias the
// input and are valid as long as the input is. Readers never write to the input. Parsing
// into a Request that has been used before allocates nothing.
//
// # What is refused
//
// Everything that net/http's server refuses, and also whatever two programs may read in
// two ways: Transfer-Encoding beside Content-Length or in HTTP/1.0, several
// Content-Lengths, lines that end in LF alone, continued lines, a target with a fragment,
// a Host that is not a host, chunk lines that the grammar does not have. [Rules] holds
// the limits, and two exceptions for old clients. The package's tests list more than 200
// cases with their clauses.
//
// The package does no I/O, starts no goroutines, and imports only the standard library.
// Its functions may be called from any goroutine; a Request, Response, Partial, Body or
// Date is used by one at a time.
package http1
