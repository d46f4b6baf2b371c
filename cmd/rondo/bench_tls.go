package main

import (
	"context"
	"crypto/tls"
	"fmt"
	"io"
	"net"
	"time"
)

const (
	// tlsSilence is how long a server may send nothing to a TLS client before
	// checkTLS suspects that it does not speak TLS.
	tlsSilence = 200 * time.Millisecond
	// plainPatience is the timeout for connecting, and for an answer without
	// TLS.
	plainPatience = time.Second
)

// checkTLS returns an error if the server does not speak TLS but should. Often
// there is no other error: the server takes the start of the handshake for an
// incomplete request and waits for the rest. So if the server sends nothing, or
// nothing that is TLS, checkTLS sends it a request without TLS. A server that
// answers it does not speak TLS.
//
// The load finds all other errors, and reports them in more detail.
func (b *bench) checkTLS() error {
	if b.tls == nil {
		return nil
	}
	conn, err := b.dial()
	if err != nil {
		return nil
	}
	defer conn.Close()
	shaken := make(chan error, 1)
	client := tls.Client(conn, b.tls)
	go func() { shaken <- client.HandshakeContext(b.ctx) }()
	silent := time.NewTimer(tlsSilence)
	defer silent.Stop()
	select {
	case err := <-shaken:
		if err == nil {
			// Wait for the server to close, so that this connection does not count as a
			// client when the load begins.
			client.CloseWrite()
			conn.SetDeadline(time.Now().Add(tlsSilence))
			io.Copy(io.Discard, conn)
			return nil
		}
	case <-silent.C:
	}
	if b.answersPlain() {
		return b.withoutTLS()
	}
	return nil
}

func (b *bench) dial() (net.Conn, error) {
	d := net.Dialer{Timeout: plainPatience}
	return d.DialContext(b.ctx, b.network, b.address)
}

// answersPlain reports whether the server answers a request without TLS with
// anything but a TLS alert.
func (b *bench) answersPlain() bool {
	const alert = 21 // the first byte of an alert (RFC 8446, 5.1)
	conn, err := b.dial()
	if err != nil {
		return false
	}
	defer conn.Close()
	defer context.AfterFunc(b.ctx, func() { conn.Close() })()
	conn.SetDeadline(time.Now().Add(plainPatience))
	if _, err := io.WriteString(conn, "PING\r\n"); err != nil {
		return false
	}
	var first [1]byte
	_, err = io.ReadFull(conn, first[:])
	return err == nil && first[0] != alert
}

func (b *bench) withoutTLS() error {
	return fmt.Errorf("%s does not speak TLS: leave out --tls, or give another address with --addr", b.addr)
}
