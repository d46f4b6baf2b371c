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
// Where a protocol is a dialogue, Coroutine serves with straight-line code:
//
//	rondo.Serve("tcp://:5000", rondo.Coroutine(func(co *rondo.Co, c net.Conn) error {
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
package rondo
