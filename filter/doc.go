// Package filter has Filters for rondo's connections: the PROXY protocol, in both
// directions, and the counting of bytes. Package rtls has TLS.
//
// The PROXY protocol tells a server behind a proxy who the proxy's client is, in a
// header before everything else. See
// https://www.haproxy.org/download/3.0/doc/proxy-protocol.txt
//
//	proxy := filter.AcceptProxy{Trust: fromBalancer}
//	engine.Listen("tcp", ":443", rondo.SocketOptions{}, rondo.Filtered(open, proxy.Filter, rtls.Server(config)))
//
// This package does not choose connections to be proxied, and is no proxy.
package filter
