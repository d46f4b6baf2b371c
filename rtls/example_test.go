package rtls_test

import (
	"bufio"
	"bytes"
	"context"
	"crypto/tls"
	"fmt"
	"io"
	"net"
	"sync/atomic"

	"github.com/rondo-go/rondo"
	"github.com/rondo-go/rondo/coro"
	"github.com/rondo-go/rondo/internal/testcert"
	"github.com/rondo-go/rondo/rtls"
)

// A server of TLS. What agrees on a protocol and shows its certificates is
// crypto/tls, and so is the client.
func ExampleServer() {
	cert := hostCert() // tls.LoadX509KeyPair("server.crt", "server.key")
	config := &tls.Config{Certificates: []tls.Certificate{cert}, NextProtos: []string{"shout"}}

	var e rondo.Engine
	defer e.Close()
	open := func(c *rondo.Conn) rondo.Handler { // when the handshake is done
		state, _ := rtls.ConnectionState(c)
		fmt.Printf("%s asks for %s\n", state.NegotiatedProtocol, state.ServerName)
		return rondo.HandlerFunc(func(c *rondo.Conn, in []byte) (int, error) {
			return c.Write(bytes.ToUpper(in))
		})
	}
	ln, err := e.Listen("tcp", "127.0.0.1:0", rondo.SocketOptions{}, rondo.Filtered(open, rtls.Server(config)))
	if err != nil {
		fmt.Println(err)
		return
	}

	c, err := tls.Dial("tcp", ln.Addr().String(), &tls.Config{
		RootCAs: authority().Pool(), ServerName: host, NextProtos: []string{"shout"},
	})
	if err != nil {
		fmt.Println(err)
		return
	}
	defer c.Close()
	fmt.Fprint(c, "hello\n")
	reply, _ := bufio.NewReader(c).ReadString('\n')
	fmt.Print(reply)
	// Output:
	// shout asks for server.test
	// HELLO
}

// A client that shows a certificate. Its OpenFunc is called when the handshake is
// done, or with the reason why there is no connection.
func ExampleClient() {
	server := serverConfig(0)
	server.ClientAuth = tls.RequireAndVerifyClientCert
	server.ClientCAs = authority().Pool()
	who := func(co *coro.Co, c net.Conn) error { // a coroutine, for a change
		state, _ := rtls.ConnectionState(co.Conn())
		_, err := fmt.Fprintf(c, "hello, %s\n", state.PeerCertificates[0].DNSNames[0])
		return err
	}
	var e rondo.Engine
	defer e.Close()
	ln, err := e.Listen("tcp", "127.0.0.1:0", rondo.SocketOptions{}, rondo.Filtered(coro.Handler(who), rtls.Server(server)))
	if err != nil {
		fmt.Println(err)
		return
	}

	config := &tls.Config{
		RootCAs:      authority().Pool(),
		ServerName:   host,
		Certificates: []tls.Certificate{authority().Issue(testcert.ECDSA, "alice.test")},
	}
	done := make(chan bool)
	for l := range e.Loops() {
		l.Post(func() {
			l.Dial("tcp", ln.Addr().String(), rondo.SocketOptions{}, rondo.FilteredDial(func(c *rondo.Conn, err error) rondo.Handler {
				if err != nil {
					fmt.Println(err)
					close(done)
					return nil
				}
				return rondo.HandlerFunc(func(c *rondo.Conn, in []byte) (int, error) {
					fmt.Printf("%s", in)
					close(done)
					return len(in), nil
				})
			}, rtls.Client(config)))
		})
		break
	}
	<-done
	// Output: hello, alice.test
}

// New connections get the certificate of the moment. A program would store
// another one upon SIGHUP, as rondo redis does. Connections that there are go on.
func ExampleServer_reload() {
	var current atomic.Pointer[tls.Certificate]
	use := func(name string) {
		cert := authority().Issue(testcert.ECDSA, host, name) // or read it from a file
		current.Store(&cert)
	}
	use("first.test")
	config := &tls.Config{GetCertificate: func(*tls.ClientHelloInfo) (*tls.Certificate, error) {
		return current.Load(), nil
	}}

	var e rondo.Engine
	defer e.Close()
	ln, err := e.Listen("tcp", "127.0.0.1:0", rondo.SocketOptions{}, rondo.Filtered(echo, rtls.Server(config)))
	if err != nil {
		fmt.Println(err)
		return
	}
	connect := func() *tls.Conn {
		c, err := tls.Dial("tcp", ln.Addr().String(), clientConfig())
		if err != nil {
			panic(err)
		}
		fmt.Println(c.ConnectionState().PeerCertificates[0].DNSNames[1])
		return c
	}
	old := connect()
	defer old.Close()
	use("second.test")
	connect().Close()
	fmt.Fprint(old, "still here\n")
	reply, _ := bufio.NewReader(old).ReadString('\n')
	fmt.Print(reply)
	// Output:
	// first.test
	// second.test
	// still here
}

// A callback that asks somebody would stop the loop. With OffLoop it runs on
// another goroutine, and ends with its connection.
func ExampleOptions() {
	options := &rtls.Options{OffLoop: 8} // handshakes at once
	config := &tls.Config{GetCertificate: func(hello *tls.ClientHelloInfo) (*tls.Certificate, error) {
		return certificateOf(hello.Context(), hello.ServerName)
	}}
	var e rondo.Engine
	defer e.Close()
	ln, err := e.Listen("tcp", "127.0.0.1:0", rondo.SocketOptions{}, rondo.Filtered(echo, options.Server(config)))
	if err != nil {
		fmt.Println(err)
		return
	}
	c, err := tls.Dial("tcp", ln.Addr().String(), clientConfig())
	if err != nil {
		fmt.Println(err)
		return
	}
	defer c.Close()
	fmt.Println("connected to", c.ConnectionState().ServerName)
	// Output: connected to server.test
}

// certificateOf asks a service for a certificate, let us say.
func certificateOf(ctx context.Context, name string) (*tls.Certificate, error) {
	if name != host {
		return nil, fmt.Errorf("no certificate for %q", name)
	}
	cert := hostCert()
	return &cert, ctx.Err()
}

// TLS that begins in the middle of a connection: what Data leaves goes to the
// filter, and the OpenFunc makes the handler of what is encrypted.
func Example_startTLS() {
	var e rondo.Engine
	defer e.Close()
	ln, err := e.Listen("tcp", "127.0.0.1:0", rondo.SocketOptions{}, func(*rondo.Conn) rondo.Handler {
		return rondo.HandlerFunc(func(c *rondo.Conn, in []byte) (n int, err error) {
			for line := range bytes.Lines(in) {
				if line[len(line)-1] != '\n' {
					break
				}
				n += len(line)
				if string(line) == "STARTTLS\n" {
					fmt.Fprint(c, "go ahead\n") // in plain text still
					c.Use(echo, rtls.Server(serverConfig(0)))
					break // what follows goes to TLS
				}
			}
			return n, nil
		})
	})
	if err != nil {
		fmt.Println(err)
		return
	}

	plain, err := net.Dial("tcp", ln.Addr().String())
	if err != nil {
		fmt.Println(err)
		return
	}
	defer plain.Close()
	fmt.Fprint(plain, "STARTTLS\n")
	reply := make([]byte, len("go ahead\n"))
	io.ReadFull(plain, reply)
	fmt.Printf("%s", reply)
	secret := tls.Client(plain, clientConfig())
	fmt.Fprint(secret, "hush\n")
	io.ReadFull(secret, reply[:5])
	fmt.Printf("%s", reply[:5])
	// Output:
	// go ahead
	// hush
}
