// Package redis is a server that Redis's clients talk to: the protocol, the
// replies and the error texts of Redis 7.0, on rondo's loops.
//
// A [Server] serves strings in 16 databases, with expiry, transactions,
// publish/subscribe, AUTH and the administrative commands that clients and
// redis-cli rely on. COMMAND LIST tells which. There is no persistence, no
// replication, no cluster and no scripting: a Server is a cache, or a
// stand-in for Redis in tests. It speaks to clients only; nothing here is a
// client.
//
// # One loop owns the keyspace
//
// All keys and all clients' state belong to the engine's first loop, and only
// code that runs on it touches them, so they need no lock. A
// connection that the first loop serves runs its commands at once, from the
// bytes as they were received. One that another loop serves hands its complete
// requests over as a batch, and gets the replies back; see transport.
//
// # Differences
//
// Replies and error texts are those of Redis 7.0.15, byte for byte, but for
// these:
//
//   - A key is deleted when it expires, in order, not when it is sampled.
//   - What a client publishes within a transaction to a channel it is itself
//     subscribed to, with RESP3, comes behind EXEC's reply, as in Redis 7.2; it
//     used to come in the middle of it.
//   - client-query-buffer-limit counts a whole request, and cuts a client off
//     as soon as the request announces that it will exceed it.
//   - maxmemory counts an estimate of what keys and values take. There is no
//     eviction.
//   - DEBUG has LOG, SLEEP and SET-ACTIVE-EXPIRE only; see [Server.Debug].
//   - CLIENT SETINFO, of Redis 7.2, is there, since the clients of today call
//     it.
//   - CONFIG knows the parameters that act here, and some that clients ask for
//     (save, appendonly), which have one value only. INFO leaves out what does
//     not exist here, and estimates usec of Commandstats from a sample.
//   - HELP texts and COMMAND DOCS are our own.
//
// # Bounds
//
// What one connection can make the server hold is bounded: requests by
// client-query-buffer-limit and proto-max-bulk-len (far lower before AUTH),
// output by stopping to run a client's commands while its replies are not
// read, published messages by client-output-buffer-limit, keys by maxmemory.
package redis
