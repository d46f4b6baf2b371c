package main

import (
	"crypto/tls"

	"github.com/rondo-go/rondo"
	"github.com/rondo-go/rondo/rtls"
)

// secured has open called when a connection's TLS handshake is done.
func secured(open rondo.OpenFunc, certFile, keyFile string) (rondo.OpenFunc, error) {
	cert, err := tls.LoadX509KeyPair(certFile, keyFile)
	if err != nil {
		return nil, err
	}
	config := &tls.Config{Certificates: []tls.Certificate{cert}}
	return rondo.Filtered(open, rtls.Server(config)), nil
}
