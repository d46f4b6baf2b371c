// Package netconn gives ordinary goroutines a blocking net.Conn over a connection that a
// loop serves, and a net.Listener and a dialer of such connections:
//
//	ln, err := netconn.Listen(engine, "tcp", ":80", netconn.Options{})
//	http.Serve(ln, handler)
//
//	d := netconn.Dialer{Engine: engine}
//	client := http.Client{Transport: &http.Transport{DialContext: d.DialContext}}
//
// It is for libraries that want a net.Conn and block in it (net/http, net/rpc, ssh, a
// database driver), in a program whose other connections are served by callbacks or
// coroutines. Both kinds share loops, listeners, filters, limits and shutdown. An idle
// connection has no goroutine of this package's and holds no buffer.
//
// # A byte's way
//
// In: the loop receives into its own buffer and copies from there into the memory of the
// Read that waits. Bytes that no Read waits for are copied into pooled memory, up to
// Options.ReadAhead. Beyond that the loop stops reading the socket: the peer is held up by
// TCP. From then on a Read receives from the socket by itself, into the caller's memory,
// without the loop and without a copy, until it finds the socket empty.
//
// Out: a Write gives the bytes to the system by itself, from the caller's memory. What the
// system does not take is copied, in pieces, and sent by the loop; when that is done the
// Write goes on by itself.
//
// A connection with filters (TLS by package rtls, for instance), and every connection on
// backends that have no system call for one direction of one connection ("uring", "std"
// and the simulator), leaves sending and receiving to the loop. There a Write copies into
// pooled memory, and the loop writes from that to the rondo.Conn.
//
// Engine.Stats, Engine.Trace and Conn.SetIdle know only of what loops send and receive.
//
// In the steady state neither Read nor Write allocates.
//
// # Backpressure
//
// A Write waits while output is full: while the system takes no more, and, where the loop
// sends, while the connection's output is full by the engine's own measure (HighWater; it
// goes on at LowWater). Up to 128 KiB may wait beside that, so that short Writes do not have
// to wait for the loop. Full output does not stop the reading: the two directions are
// independent, as they are for package net.
//
// # Goroutines
//
// A Conn, a Listener and a Dialer may be used by any goroutines at the same time. The
// exception is a loop's own goroutine, in a callback or a coroutine, where a call that waits
// would wait for its caller: Read, Write, Accept and Dial panic there. On another loop of the
// connection's engine than its own, Read and Write panic only if they have to wait. Use
// rondo.Conn's own methods on a loop, or begin a goroutine. Close and the deadlines never
// wait and may be called on loops.
//
// # The end
//
// Close returns at once. Output that a Write has accepted is still delivered, for up to the
// engine's Linger; then the connection is reset. Input that nobody read does not endanger
// it, as it does with package net, where it makes the kernel reset the connection.
//
// Engine.Close resets every connection. Engine.Shutdown closes every connection as Close
// does: Reads return what was received before, and then, like Writes, net.ErrClosed. When
// the engine closes a connection (Shutdown, Ref.Close, an idle timeout) whose accepted output
// does not fit into the rondo.Conn at that moment, it is reset instead, so a peer never takes
// a part of a stream for all of it. Listeners stop
// accepting at once, and Accept returns net.ErrClosed when the engine has closed.
//
// # What this package is not
//
// It is not faster than package net: a byte that a Read waits for goes from the loop's
// goroutine to the reader's. Where a Handler or a coroutine can serve a protocol it costs
// less.
package netconn
