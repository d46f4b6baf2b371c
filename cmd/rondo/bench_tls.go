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
	// tlsSilence is how long a server may say nothing to a TLS client before it is
	// suspected not to speak TLS.
	tlsSilence = 200 * time.Millisecond
	// plainPatience is how long it may take to connect, or to get an answer without TLS.
	plainPatience = time.Second
)

// checkTLS tells whether a server that should speak TLS does not. Often that shows by
// no error: the server takes the beginning of the handshake for a request that is not
// complete, and waits for the rest. So a server that says nothing, or nothing that TLS
// knows, is sent a request without TLS. If it answers that, it speaks no TLS.
//
// Whatever else is wrong the load finds, and tells with more words.
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
			// Its place among the server's clients must be free when the load comes.
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

// answersPlain reports whether the server answers a request without TLS otherwise than
// by an alert of TLS.
func (b *bench) answersPlain() bool {
	const alert = 21 // the first byte of one (RFC 8446, 5.1)
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
	return fmt.Errorf("%s does not speak TLS, which --tls asks for", b.addr)
}
