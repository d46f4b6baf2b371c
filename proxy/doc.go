// Package proxy passes connections on to other servers: a proxy and load balancer for TCP and
// unix sockets, on the loops of an engine. The command "rondo proxy" is this package with
// flags and a file.
//
//	s := proxy.Server{AccessLog: slog.Default()}
//	err := s.Apply(proxy.Config{
//		Listeners: []proxy.Listener{{Network: "tcp", Address: ":443"}},
//		Pools: []proxy.Pool{{Targets: []proxy.Target{
//			{Network: "tcp", Address: "10.0.0.7:443"},
//			{Network: "tcp", Address: "10.0.0.8:443", Weight: 2},
//		}}},
//	})
//
// A Listener accepts clients. For each one its Pool chooses a Target, and the client's loop
// connects to it. If that fails, it tries another one, before a byte of the client was passed
// on. From then on package relay passes the bytes, with backpressure in each direction, and
// says what an end or a failure of one side means for the other.
//
// HandOver and TakeOver replace a process by a new one, which goes on with its connections.
//
// A client that cannot be served is reset, so that it does not take the end of its stream for
// an answer.
package proxy
