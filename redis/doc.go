// Package redis is a Redis server on rondo's loops. It speaks the protocol, and
// sends the replies and error texts, of Redis 7.0.
//
// A [Server] serves strings, lists, hashes, sets, sorted sets and geo in 16 databases,
// with expiry, transactions, publish/subscribe, AUTH and the administrative
// commands that clients and redis-cli rely on. COMMAND LIST returns their names.
// There are no streams, and no persistence, replication, cluster or scripting: a
// Server is a cache, or a stand-in for Redis in tests. The package contains no
// client.
//
// # One loop owns the keyspace
//
// All keys and all clients' state belong to the engine's first loop. Only code
// on that loop touches them, so they need no lock. A connection of the first
// loop runs its commands at once, straight from the received bytes. A
// connection of another loop posts its complete requests to the first loop as a
// batch, and gets the replies back; see transport.
//
// # Differences
//
// Replies and error texts are those of Redis 7.0.15, byte for byte, with these
// exceptions:
//
//   - The server deletes keys in the order they expire, each when its time
//     comes. It does not sample.
//   - A client may publish, within a transaction, to a channel it subscribes
//     to. With RESP3 that message follows EXEC's reply, as in Redis 7.2. Redis
//     7.0 puts it in the middle of the reply.
//   - client-query-buffer-limit counts a whole request, and cuts a client off
//     as soon as the request announces that it will exceed the limit.
//   - maxmemory counts the memory of keys and values in the store, and what the
//     program used when it started.
//   - DEBUG has LOG, SLEEP, SET-ACTIVE-EXPIRE and QUICKLIST-PACKED-THRESHOLD only;
//     see [Server.Debug].
//   - Lists are not compressed: list-compress-depth is accepted and has no effect.
//   - CLIENT SETINFO comes from Redis 7.2, since current clients call it.
//   - CONFIG knows the parameters that have an effect here. It also knows some
//     that clients ask for (save, appendonly); they accept one value only. INFO
//     leaves out what does not exist here. It estimates usec of Commandstats
//     from a sample.
//   - HELP texts and COMMAND DOCS are our own.
//   - Distances that GEOSEARCHSTORE and GEORADIUS store may have another last
//     bit: C's sines are not always the nearest.
//
// # Bounds
//
// The memory that one connection can make the server hold is bounded:
//
//   - client-query-buffer-limit and proto-max-bulk-len bound requests, with far
//     lower limits before AUTH.
//   - The server stops running a client's commands while the client does not
//     read its replies.
//   - client-output-buffer-limit bounds published messages.
//   - maxmemory bounds keys and values.
package redis
