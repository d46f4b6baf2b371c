// Package rondo is an event-loop networking toolkit, for servers with so many connections
// that a goroutine for each costs too much.
//
// An Engine runs loops. A Loop is one goroutine that serves many connections, in turns.
// A Handler gets the bytes that have arrived and returns how many it consumed:
//
//	rondo.Serve("tcp://:5000", func(*rondo.Conn) rondo.Handler {
//		return rondo.HandlerFunc(func(c *rondo.Conn, in []byte) (int, error) {
//			return c.Write(in)
//		})
//	})
//
// For a protocol that is a dialogue, package coro lets you write straight-line code:
//
//	rondo.Serve("tcp://:5000", coro.Handler(func(co *coro.Co, c net.Conn) error {
//		_, err := io.Copy(c, c)
//		return err
//	}))
//
// # Shared state
//
// Serve, and an Engine whose NumLoops is 0, run one loop per processor, all at the same
// time. All callbacks of a connection run on one loop, one after the other, so the
// fields of its Handler need no lock. Variables that several connections share do need
// one, unless the engine has one loop (NumLoops: 1), or each loop has its own value
// (LoopLocal). See Serve.
//
// # Who may call what
//
// A Conn, a Timer and a Loop belong to the loop's goroutine: handlers, timer functions
// and posted functions run there and use them without locks. Other goroutines use a
// Ref or Loop.Post. The race detector reports calls from wrong goroutines; with
// Engine.Check, or RONDO_CHECK=1 in the environment, they panic in any build.
//
// # Half-close
//
// When the peer ends its stream, the engine sends the output written so far and closes the
// connection. A Handler that answers later implements EOFHandler; then the connection
// stays open until the Handler closes it.
//
// # What blocks a loop
//
// While a callback runs, all other connections of its loop wait. Code that sleeps, reads a
// file, queries a database, looks up a name, or waits for a channel, a mutex or a
// WaitGroup belongs on another goroutine (but Conn.SendFile sends a file, and waits only while
// the system reads it from the disk): package workers runs it and returns its
// answers in order, coro.Await waits for it in a coroutine, and any goroutine can answer
// through a Ref. The methods of a Conn, a Loop and a Ref never wait. Engine.Wait, Dial
// and Attach do, and panic on a loop.
//
// Package watchdog tells of a callback or a coroutine that takes longer than 100 ms while it
// runs: with its stack, its connection, and what to do instead. By itself the engine does not
// measure how long a callback takes; package loopstats makes it. Package coro logs a coroutine that waits a second for
// anything but its loop.
//
// # What a connection may cost
//
// Memory is bounded whatever a peer does: MaxInput and MaxOutput cap the bytes that
// wait for the handler and for the peer. If a peer does not read its
// replies, the loop stops reading from it (HighWater). An idle connection holds no buffer.
//
// # What this package is not
//
// It does not replace package net where connections are few, or where their code blocks
// (package netconn serves such code), and it knows no protocol: see redis, http1 and
// websocket.
//
// # The files
//
// Start here:
//
//	rondo.go         Handler and its optional methods, errors, Serve, ParseAddress
//	engine.go        Engine: fields, start and end; SocketOptions; Listen
//	engine_fields.go values that Start, Listen and Dial refuse
//	stats.go         Stats, Trace's hooks, and what packages watchdog and loopstats see
//
// The loop:
//
//	loop.go          Loop: a turn, from the posted functions to the wait; LoopLocal
//	loop_end.go      how a loop ends; OnClose; connections that Move brings
//	memory.go        the limit of all buffers: Engine.MaxBufferBytes; refusals and their log
//	door.go          every call of users' code, and what a panic ends
//	calling.go       which goroutine calls; Engine.Check; threads, processors, spinning
//	timers.go        Timer; a connection's deadlines and idle time
//	poll.go          Poll: readiness of any descriptor; a Listener's sockets for another process
//
// A connection:
//
//	conn.go          Conn: its states, its handler, its limits
//	conn_in.go       input: receive, offer, keep; Pause and Resume
//	conn_out.go      output: Write, Flush, Send
//	conn_outbox.go   the loop's outbox, which gathers the output of a turn; SendFile
//	conn_end.go      Close, Abort; Detach and Move
//	conn_ref.go      Ref and Broadcast: writes from other goroutines
//	conn_bridge.go   methods that only rondo's other packages use
//
// Where connections come from:
//
//	listener.go      Listener, the choice of a loop, Adopt, and limits of connections
//	dial.go          Engine.Dial, Loop.Dial
//	dial_try.go      addresses: lookup, and the order of attempts
//	attach.go        Attach; PrefixConn; how connections pass to another process
//
// Filters:
//
//	filter.go        Filter, Filtered, Use
//	filter_port.go   FilterPort: what a filter may do
//	filter_in.go     the way up, to the handler
//	filter_out.go    the way down, to the wire
//
// Datagrams:
//
//	packet.go        PacketConn: listen and dial; groups
//	packet_in.go     receive and handle; close; PacketRef
//	packet_out.go    write and send
package rondo
