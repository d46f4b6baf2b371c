// Package load is a load generator: connections on rondo's own loops, which
// send requests to a server, verify every byte that comes back, and measure how
// long it took.
//
// It is not a server's test (one request more or less proves nothing here), nor
// does it measure how fast connections are made: they are all open before the
// first request is sent.
//
// # Closed loop and open loop
//
// In a closed loop each connection keeps Pipeline requests in flight: a reply
// makes room for the next request. So the server decides the rate, and a server
// that stalls is asked nothing meanwhile: the latencies are those of the requests
// that were sent, not those that users who come when they like would see.
//
// In an open loop (Rate) requests are due at times that are fixed beforehand,
// and their latencies count from then. A request whose connection has Pipeline
// requests in flight already waits in the generator, and that time is part of
// its latency: nothing is omitted because of what the server did to the requests
// before it. What waits is a number, not bytes, so that a server that falls
// behind by any amount costs no memory.
//
// # What a latency is
//
// It ends when the reply's last byte was handed to the connection's handler. The
// clock is read once for every run of bytes received; replies that came in one
// run have the same end. It is not the loop's time of the turn, which would be
// wrong by up to a turn's length.
//
// In a closed loop it begins before the request is handed to the system, with
// the reading that ended the latency of the reply that made room for it: so it
// contains the generator's own work between the two, a microsecond or two. What
// a reply waits in the generator while others of the same turn are served is
// part of its latency too. If that matters, the generator is the bottleneck:
// more loops.
//
// Only requests that were sent (open loop: were due) after the warm-up count,
// and all of those, also the ones that are answered after the end.
package load
