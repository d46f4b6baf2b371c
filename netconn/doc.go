// Package netconn gives ordinary goroutines a blocking net.Conn over a connection that a
// loop serves, and a net.Listener and a dialer of such connections:
//
//	ln, err := netconn.Listen(engine, "tcp", ":80", netconn.Options{})
//	http.Serve(ln, handler)
//
//	d := netconn.Dialer{Engine: engine}
//	client := http.Client{Transport: &http.Transport{DialContext: d.DialContext}}
//
// This package is for libraries that want a net.Conn and block in it (net/http, net/rpc,
// ssh, a database driver), in a program whose other connections are served by callbacks
// or coroutines. Both kinds of connection share loops, listeners, filters, limits and
// shutdown. An idle connection costs no goroutine here and holds no buffer.
//
// # The path of a byte
//
// In: the loop receives into its buffer and copies from there to the memory of a waiting
// Read. If no Read waits, it copies into pooled memory, up to Options.ReadAhead. Beyond
// that the loop stops reading the socket, and TCP holds the peer back. From then on a
// Read receives from the socket directly, into the caller's memory, without the loop and
// without a copy, until it finds the socket empty.
//
// Out: a Write passes the bytes from the caller's memory to the system directly. What the
// system does not take is copied in pieces, and the loop sends it. After that the Write
// goes on directly.
//
// A connection with filters (TLS by package rtls, for instance) leaves sending and
// receiving to the loop. So does every connection on backends without a system call for
// one direction of one connection ("uring", "std" and the simulator). There a Write
// copies into pooled memory, and the loop writes from that to the rondo.Conn.
//
// Engine.Stats, Engine.Trace and Conn.SetIdle see only what loops send and receive.
//
// In the steady state neither Read nor Write allocates.
//
// # Backpressure
//
// A Write waits while output is full. Output is full while the system takes no more, and,
// where the loop sends, while the connection's output is full by the engine's measure
// (from HighWater until LowWater). Up to 128 KiB more may wait, so that short Writes need
// not wait for the loop. Full output does not stop reading: as in package net, the two
// directions are independent.
//
// # Goroutines
//
// Any goroutines may use a Conn, a Listener and a Dialer at the same time, except a
// loop's goroutine, in a callback or a coroutine. There a call that waits would wait for
// its own caller, so Read, Write, Accept and Dial panic. On another loop of the same
// engine Read and Write panic only if they have to wait. On a loop, use rondo.Conn's
// methods, or start a goroutine. Close and the deadlines never wait and may be called on
// loops.
//
// # The end
//
// Close returns at once. Accepted output is still delivered, for up to the engine's
// Linger; then the connection is reset. Unread input does no harm here; with package net
// it makes the kernel reset the connection.
//
// When the peer has reset the connection, Writes fail. Reads still return the bytes that
// the peer had sent, as in package net; where the loop sends, for up to the engine's
// Linger.
//
// Engine.Close resets every connection. Engine.Shutdown closes every connection as Close
// does: Reads return the input received before, then net.ErrClosed, as Writes do at once.
// When the engine closes a connection (Shutdown, Ref.Close, an idle timeout), accepted
// output may not fit into the rondo.Conn at that moment. Then the connection is reset, so
// that the peer never takes a part of a stream for all of it. Listeners stop accepting at
// once, and Accept returns net.ErrClosed when the engine has closed.
//
// # What this package is not
//
// It is not faster than package net: a byte for a waiting Read passes from the loop's
// goroutine to the reader's. A Handler or a coroutine costs less, where it can serve the
// protocol.
package netconn
