// Package rondo is an event-loop networking toolkit: servers with very many
// connections, for which a goroutine each is too dear in time or memory.
//
// An Engine runs loops. A Loop is one goroutine that serves all its connections
// in turns, so the code of a connection needs no locks, and costs about what the
// system calls cost. A Handler is given the bytes that arrived and says how many
// it is done with:
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
// # Who may call what
//
// A Conn, a Timer and a Loop belong to the loop's goroutine: handlers, timer
// functions and posted functions run there, and may use them without locks.
// Other goroutines hold a Ref, whose methods they may call at any time, or use
// Loop.Post. The race detector reports what breaks this rule.
//
// A handler that blocks stops its loop. Work that takes long belongs on another
// goroutine, which answers through a Ref, or whose answer a coroutine awaits.
//
// # What a connection may cost
//
// Memory is bounded whatever a peer does: MaxInput and MaxOutput cap what may
// wait for the handler and for the peer, and a peer that does not read its
// replies is not read either (HighWater). An idle connection holds no buffer.
//
// # What this package is not
//
// It is not a replacement for package net where connections are few or their
// code blocks; and it knows no protocol: see resp and redis.
//
// # The files
//
// To begin with:
//
//	rondo.go         Handler and its optional methods, errors, Serve, ParseAddress
//	engine.go        Engine: its fields, its start and its end; Socket; Listen
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
//	conn_ref.go      Ref: from other goroutines
//	conn_bridge.go   what coro, proactor, redis and rtls need and nobody else
//
// Where connections come from:
//
//	listener.go      Listener, and which loop serves
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
