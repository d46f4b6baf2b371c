package serve

import (
	"io"
	"net"
	"strings"
)

// ProxyAddress splits the address of a proxy, "ADDRESS,BACKEND": where it listens, and the
// server to which it passes connections on.
func ProxyAddress(address string) (own, backend string) {
	own, backend, _ = strings.Cut(address, ",")
	return own, backend
}

// netProxy is a proxy with two goroutines for each connection, by io.Copy.
func netProxy(address string, _ int) error {
	own, backend := ProxyAddress(address)
	return accept(own, func(client net.Conn) {
		target, err := net.Dial("tcp", backend)
		if err != nil {
			return
		}
		defer target.Close()
		ended := make(chan struct{})
		go func() {
			copyAll(target, client)
			close(ended)
		}()
		copyAll(client, target)
		<-ended
	})
}

// copyAll passes a stream on, and its end.
func copyAll(to, from net.Conn) {
	io.Copy(to, from)
	to.(*net.TCPConn).CloseWrite()
}
