// Package filter provides Filters for rondo's connections: the PROXY protocol, in both
// directions, and a count of bytes. Package rtls provides TLS.
//
// With the PROXY protocol, a proxy names its client to the server, in a header before all
// other bytes. See https://www.haproxy.org/download/3.0/doc/proxy-protocol.txt
//
//	proxy := filter.AcceptProxy{Trust: fromBalancer}
//	engine.Listen("tcp", ":443", rondo.SocketOptions{}, rondo.Filtered(open, proxy.Filter, rtls.Server(config)))
//
// This package is not a proxy: it forwards nothing.
package filter
