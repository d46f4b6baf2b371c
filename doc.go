// Package rondo is an event-loop networking toolkit, for servers with so many connections
// that a goroutine for each costs too much.
//
// An Engine runs loops. A Loop is one goroutine that serves all its connections in turns.
// A Handler gets the bytes that have arrived and returns how many it has consumed:
//
//	rondo.Serve("tcp://:5000", func(*rondo.Conn) rondo.Handler {
//		return rondo.HandlerFunc(func(c *rondo.Conn, in []byte) (int, error) {
//			return c.Write(in)
//		})
//	})
//
// Where a protocol is a dialogue, package coro serves with straight-line code:
//
//	rondo.Serve("tcp://:5000", coro.Handler(func(co *coro.Co, c net.Conn) error {
//		_, err := io.Copy(c, c)
//		return err
//	}))
//
// # Shared state
//
// Serve, and an Engine whose NumLoops is 0, run one loop for each processor, at the same
// time. All callbacks of one connection run on one loop, one after the other, so the
// fields of its Handler need no lock. Variables that several connections use do need
// one, unless the engine has one loop (NumLoops: 1), or each loop has its own value
// (LoopLocal). See Serve.
//
// # Who may call what
//
// A Conn, a Timer and a Loop belong to the loop's goroutine: handlers, timer functions
// and posted functions run there, and may use them without locks. Other goroutines use a
// Ref, or Loop.Post. The race detector reports calls from wrong goroutines; with
// Engine.Check, or RONDO_CHECK=1 in the environment, they panic in any build.
//
// # Half-close
//
// When the peer ends its stream, the engine sends what was written so far and closes the
// connection. A Handler that answers later implements EOFHandler; then the connection
// stays open until the Handler closes it.
//
// # What blocks a loop
//
// While a callback runs, all other connections of its loop wait. What sleeps, reads a
// file, queries a database, looks up a name, or waits for a channel, a mutex or a
// WaitGroup belongs on another goroutine: package workers runs it and returns the
// answers in order, coro.Await waits for it in a coroutine, and any goroutine can answer
// through a Ref. The methods of a Conn, a Loop and a Ref never wait. Engine.Wait, Dial
// and Attach do, and panic on a loop.
//
// The engine does not measure how long a callback takes. To notice one that takes long,
// post a function to each loop and measure when it runs: docs/operators.md has the code.
// Package coro logs a coroutine that waits for anything else than its loop for a second.
//
// # What a connection may cost
//
// Memory is bounded whatever a peer does: MaxInput and MaxOutput cap what may
// wait for the handler and for the peer, and a peer that does not read its
// replies is not read either (HighWater). An idle connection holds no buffer.
//
// # What this package is not
//
// It does not replace package net where connections are few or their code blocks
// (package netconn serves such code), and it knows no protocol: see resp and redis.
//
// # The files
//
// To begin with:
//
//	rondo.go         Handler and its optional methods, errors, Serve, ParseAddress
//	engine.go        Engine: its fields, its start and its end; SocketOptions; Listen
//	engine_fields.go what Start, Listen and Dial refuse
//	stats.go         what is counted, and Trace's hooks
//
// The loop:
//
//	loop.go          Loop: a turn, from what was posted to the wait; LoopLocal
//	loop_end.go      how it ends; OnClose
//	loop_thread.go   threads, processors, spinning
//	door.go          every call of users' code, and what a panic costs
//	calling.go       which goroutine calls; Engine.Check
//	timers.go        Timer; a connection's deadlines and idle time
//	poll.go          Poll: any descriptor
//
// A connection:
//
//	conn.go          Conn: its states, its handler, its limits
//	conn_in.go       input: received, offered, kept; Pause and Resume
//	conn_out.go      output: Write, Flush, Send
//	conn_outbox.go   the loop's outbox, where the output of a turn is gathered
//	conn_end.go      Close, Abort; Detach and Move
//	conn_ref.go      Ref and Broadcast: from other goroutines
//	conn_bridge.go   what coro, proactor, redis and rtls need and nobody else
//
// Where connections come from:
//
//	listener.go      Listener, which loop serves, and limits of connections
//	dial.go          Engine.Dial, Loop.Dial
//	dial_try.go      addresses: looked up, and tried in turns
//	attach.go        Attach, AttachListener's connections, Adopt; PrefixConn
//
// Filters:
//
//	filter.go        Filter, Filtered, Use
//	filter_stage.go  FilterPort: what a filter may do
//	filter_in.go     the way up, to the handler
//	filter_out.go    the way down, to the wire
//
// Datagrams:
//
//	packet.go        PacketConn: its making; groups
//	packet_in.go     received and handled; its end; PacketRef
//	packet_out.go    written and sent
package rondo
