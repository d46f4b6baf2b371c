// Package websocket serves WebSocket connections (RFC 6455, with permessage-deflate of RFC
// 7692) on rondo's loops. A connection costs no goroutine, and an idle one holds no
// buffer.
//
//	server := websocket.Server{
//		Open: func(*websocket.Conn, *http.Request) websocket.Handler {
//			return websocket.HandlerFunc((*websocket.Conn).WriteMessage) // echo
//		},
//	}
//	rondo.Serve("tcp://:8080", server.OpenFunc())
//
// A Handler gets whole messages. One that is a FragmentHandler too gets them in the pieces
// in which they arrive. Optional methods tell it of pings, pongs, the peer's Close frame
// and drained output. All of them run on the connection's loop, one at a time, and must
// not block.
//
// A Conn belongs to its loop; other goroutines use a Ref. Broadcast sends one message to
// many connections, and Prepare makes such a message once.
//
// Dial connects to a server. TLS is a filter: rondo.Filtered(server.OpenFunc(),
// rtls.Server(config)), and a URL of wss.
//
// # What a peer may cost
//
// A message is kept while it is incomplete, up to MaxMessage. Its buffer grows with the
// bytes that have arrived, not with the length that the peer has announced. Compressed
// messages are also bounded after decompression. Text is checked as it arrives, and the
// first invalid byte ends the connection. The engine's limits bound the output: a peer
// that does not read is not read either. The handshake and the closing handshake have time
// limits.
//
// With context takeover, compression keeps a window for each connection and direction: up
// to 32 KiB, or what the WindowBits say. Compressors and decompressors themselves are one
// for each loop. Without compression, or without context takeover, an idle connection has
// no memory but its Conn.
//
// # What this package is not
//
// It has no WebSocket over HTTP/2 (RFC 8441) and no other HTTP: Server.Other may answer
// ordinary requests. Messages are sent in one frame each. The codec is package wsframe.
package websocket
