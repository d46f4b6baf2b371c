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
// code that runs on it touches them: there is no lock in this package. A
// connection that the first loop serves runs its commands at once, from the
// bytes as they were received. One that another loop serves hands its complete
// requests over as a batch, and gets the replies back; see transport.
//
// # Bounds
//
// What one connection can make the server hold is bounded: requests by
// client-query-buffer-limit and proto-max-bulk-len (far lower before AUTH),
// output by stopping to run a client's commands while its replies are not
// read, published messages by client-output-buffer-limit, keys by maxmemory.
package redis
