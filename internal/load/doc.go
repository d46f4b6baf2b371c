// Package load is a load generator on rondo's own loops. Its connections send
// requests to a server, verify every byte of the replies (of HTTP: status and
// body), and measure the latencies.
//
// It is not a test of the server: one request more or less proves nothing here.
// It does not measure how fast connections are made: all of them are open
// before the first request.
//
// # Closed loop and open loop
//
// In a closed loop each connection keeps Pipeline requests in flight: a reply
// makes room for the next request. So the server decides the rate, and a server
// that stalls gets no requests meanwhile. The latencies are those of the
// requests that were sent. Users who arrive at times of their own choice would
// see longer ones.
//
// In an open loop (Rate) requests are due at times fixed in advance, and their
// latencies count from these times. If its connection already has Pipeline
// requests in flight, a request waits in the generator, and that wait is a part
// of its latency: nothing is omitted because of how the server treated earlier
// requests. Only the number of waiting requests is stored, so a server that
// falls behind costs no memory.
//
// # What a latency is
//
// A latency ends when the connection's handler gets the last byte of the reply.
// The clock is read once for each run of received bytes; replies of one run
// have the same end. The loop's time of the turn would be wrong by up to the
// length of a turn.
//
// In a closed loop a latency begins before the request goes to the system, at
// the reading of the clock that ended the latency of the previous reply. So it
// contains the generator's own work in between, a microsecond or two. It also
// contains the time that a reply waits in the generator while other connections
// of the turn are served. If that matters, the generator is the bottleneck: use
// more loops.
//
// Only requests sent (in an open loop: due) after the warm-up count, including
// those answered after the end.
package load
