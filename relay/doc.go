// Package relay joins two connections: the input of each is the output of the other. It is
// the middle of a proxy.
//
//	e.Listen("tcp", ":443", rondo.SocketOptions{}, func(client *rondo.Conn) rondo.Handler {
//		return relay.Dial(client, "tcp", "10.0.0.7:443", rondo.SocketOptions{}, relay.Options{})
//	})
//
// Dial serves a client by a connection to a server. Join joins any two connections of one
// loop. Both work with every backend and with Filters, so either side may be TLS (package
// rtls).
//
// # The two directions
//
// Each direction works independently. While a peer does not read, the relay does not read the
// other peer, but still passes on what the first one sends. When a peer ends its stream, the
// other one reads the end of the stream behind the last byte, and can still send. When both
// streams have ended and all bytes are sent, both connections close.
//
// On Linux, with the backends "epoll" and "poll", long streams pass from one TCP or unix socket to
// the other within the kernel (splice(2)), unless there are Filters or write hooks of
// Trace.
//
// # Failures
//
// A peer reads an end of the stream only if the other peer has ended its stream. All other
// ends of a pair are resets, for both peers: after a reset, an error of the system, a time
// limit, or the end of the engine. So no peer takes a part of a stream for the whole. Bytes
// that were received before a failure are sent first, for at most the engine's Linger time.
// There is one exception: if the program calls Conn.Close for one of the connections, the
// relay calls Conn.Close for the other one.
//
// The relay does not read a connection whose bytes the other peer does not take. It then does
// not notice a reset of that connection either, so set Options.Idle.
//
// # Shutdown
//
// Engine.Shutdown waits until the pairs have ended, or for Options.Drain.
//
// # Another process
//
// Pair.Detach takes a live pair from its loop in the middle of its streams, and Detached.Join
// makes it a pair again: on another loop, or in the process that replaces this one, to which
// package fdpass sends the connections. No byte is lost, and the peers notice nothing.
// PairOf finds the pairs among Loop.Conns.
//
// # Memory
//
// A direction whose receiver does not read holds at most 128 KB: 64 KiB of output, and the
// rest of the last receive. A longer input that the previous Handler did not consume comes in
// addition, and so does what Filters hold. A pair at rest holds no buffer.
package relay
