// Package redis is a Redis server on rondo's loops. It speaks the protocol, and
// sends the replies and error texts, of Redis 7.0.
//
// A [Server] serves strings, bits, lists, hashes, sets, sorted sets, streams, geo and
// HyperLogLogs in 16 databases, with expiry, transactions, publish/subscribe, events of keys, DUMP and
// RESTORE, users with permissions (ACL) and the administrative commands that clients and redis-cli rely on.
// COMMAND LIST returns their names. Scripts and functions are in Lua. There is no
// persistence, replication or cluster: a Server is a cache, or a stand-in for Redis in tests.
// The package contains no client for other servers.
//
// [LoadConfig] reads a redis.conf for [Server.Config].
//
// # Within a program
//
// A [Client] calls commands without a connection; a server that nobody has called
// Listen on serves its Clients only. A [Command] adds a command of the program's
// own. On a network of package rondotest a server has a clock that jumps, and
// Server.Seed decides what is random, so a test of expiry or of blocking commands
// takes no time and always does the same.
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
//   - Likewise, a client that subscribes with RESP3 to events of keys gets those of its
//     own commands behind their replies.
//   - RESTORE checks all of a payload, whatever sanitize-dump-payload says.
//   - SORT compares texts by their bytes, in every locale. It leaves a small sorted set a
//     listpack, which Redis converts.
//   - client-query-buffer-limit counts a whole request, and cuts a client off
//     as soon as the request announces that it will exceed the limit.
//   - maxmemory counts the memory of keys and values in the store, what clients held at the
//     last count, some 10 ms ago, and what the server used when it started, 4 MiB at most.
//   - What ACL LIST shows can always be read back: a blank in a rule such as "+select|0 1" is an
//     error, patterns with quotes are quoted between parentheses, and %RW~* is not shown as ~*.
//     Entries of ACL LOG keep 4 KiB of a name. INFO has Redis 7.2's acl_access_denied_*.
//   - SHUTDOWN ends the server if [Server.OnShutdown] does. SAVE is refused without FORCE, since
//     nothing is saved. ABORT finds nothing to abort: no replicas are waited for.
//   - DEBUG has CONFIG-REWRITE-FORCE-ALL, DIGEST, DIGEST-VALUE, ERROR, LOG, OBJECT, PROTOCOL, RELOAD, SLEEP,
//     SET-ACTIVE-EXPIRE, QUICKLIST-PACKED-THRESHOLD, REPLYBUFFER and PAUSE-CRON only; see
//     [Server.Debug]. The last three have no effect. OBJECT's serializedlength is the size in
//     memory. RELOAD writes no file.
//   - A connection holds no buffers while it waits: CLIENT LIST has 0 for qbuf-free and rbs.
//   - client-output-buffer-limit with a hard limit above 1 MiB counts what the system has
//     not taken. Up to 1 MiB it counts all output of a batch, as in Redis.
//   - Lists are not compressed: list-compress-depth is accepted and has no effect.
//   - CLIENT SETINFO and CLIENT NO-TOUCH come from Redis 7.2: current clients call the first.
//   - Client side caching: SWAPDB tells clients that all keys are invalid, and those with
//     NOLOOP are told of keys that were evicted, or fell out of the table, during their own
//     commands: Redis tells them nothing, and what they keep is wrong. A null for all
//     keys is of the version of RESP of the connection that gets it. Prefixes that overlap get
//     an error and no further reply. The table is bounded by its size, too: 512 bytes for each key
//     of tracking-table-max-keys, 64 MiB at least. It forgets clients that have gone
//     sooner, so tracking_total_items may be smaller.
//   - CONFIG knows all parameters. Those of persistence, replication and C's allocator
//     are checked and kept without an effect, or accept one value only, as appendonly does:
//     docs/redis-conf.md has a table. activedefrag is yes from the start.
//   - INFO has the fields of Redis; those of what does not exist here are 0. It
//     estimates usec of Commandstats and the histograms of commands that take
//     little time from a sample.
//   - SLOWLOG and LATENCY measure brief commands of a pipeline in groups of up to
//     16. A group that takes too long is logged as its last command. With
//     slowlog-log-slower-than or latency-monitor-threshold below 1 ms each command
//     is measured.
//   - Clients that wait for a list or a sorted set get it also from a command that overwrites
//     the key with its result, SORT with STORE, say. Redis lets them wait.
//   - RANDOMKEY during CLIENT PAUSE replies with null if hardly any key is left that has
//     not expired. Redis searches on, for ever if there is none.
//   - maxmemory-clients counts the clients' memory at the end of a batch, less
//     often if there are thousands of clients.
//   - Scripts run in gopher-lua; see package script. The keys of a table come in the order they
//     were added, so cjson.encode may order an object's members otherwise. Errors of Lua's own,
//     such as of a call of nil, do not name the variable, and those of the syntax have other
//     texts. The length operator calls __len of tables, too, and goto is a statement. A text of
//     more than 4096 bytes is no number, and redis.log logs 64 KiB of a text.
//   - The scripts that only EVAL has brought are forgotten beyond 500, the least recently used
//     first, as in Redis 7.4. SCRIPT DEBUG accepts NO only. SCRIPT FLUSH keeps the settings of
//     cjson. INFO does not count what the interpreter takes.
//   - A script within a command that the program has added, or in a Client's Do on the loop,
//     ends after busy-reply-threshold, since the program's code can't wait.
//   - HELP texts, the reports of LATENCY DOCTOR and MEMORY DOCTOR, and the texts of
//     COMMAND DOCS are our own. COMMAND DOCS has no history.
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
//   - client-output-buffer-limit bounds published messages, and what MONITOR shows; replies
//     too, once it is set for normal clients.
//   - maxmemory-clients bounds what all clients hold, once it is set.
//   - tracking-table-max-keys bounds what the server notes for client side caching.
//   - maxmemory bounds keys, values and what clients hold.
//   - While a script runs the heap may grow by 256 MiB; then the script fails. Beyond
//     busy-reply-threshold other clients get BUSY, and may end it.
package redis
