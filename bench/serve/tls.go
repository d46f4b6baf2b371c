package serve

import (
	"crypto/tls"
	"net"

	forked "github.com/lesismal/llib/std/crypto/tls" // nbio's copy of crypto/tls
	"github.com/lesismal/nbio"
	nbiotls "github.com/lesismal/nbio/extension/tls"
	"github.com/rondo-go/rondo/internal/testcert"
	"github.com/rondo-go/rondo/rtls"
)

// certificate returns a server certificate of an unknown authority.
func certificate() tls.Certificate {
	return testcert.New("bench").Issue(testcert.ECDSA, "localhost")
}

func config() *tls.Config { return &tls.Config{Certificates: []tls.Certificate{certificate()}} }

// tlsEcho is the echo server over TLS.
func (r Rondo) tlsEcho(address string, loops int) error {
	return r.serve(address, loops, rtls.Server(config()))
}

// netTLSEcho is the echo server with crypto/tls and a goroutine for each
// connection.
func netTLSEcho(address string, _ int) error {
	c := config()
	return accept(address, func(raw net.Conn) {
		conn := tls.Server(raw, c)
		defer conn.Close() // sends close_notify
		echoAll(conn)
	})
}

// nbioTLSEcho is the echo server with nbio's TLS, as in its documentation.
func nbioTLSEcho(address string, loops int) error {
	mine := certificate()
	c := &forked.Config{Certificates: []forked.Certificate{{Certificate: mine.Certificate, PrivateKey: mine.PrivateKey}}}
	open := nbiotls.WrapOpen(c, false, nil)
	data := nbiotls.WrapData(func(_ *nbio.Conn, t *nbiotls.Conn, in []byte) { t.Write(in) })
	closed := nbiotls.WrapClose(func(_ *nbio.Conn, t *nbiotls.Conn, _ error) { t.Close() })
	return nbioServe(nbio.Config{}, address, loops, open, data, closed)
}
