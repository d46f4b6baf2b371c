package nettest_test

import (
	"bytes"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/tls"
	"fmt"
	"io"
	"net"
	"net/http"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/rondo-go/rondo"
	"github.com/rondo-go/rondo/internal/pick"
	"github.com/rondo-go/rondo/internal/testcert"
	"github.com/rondo-go/rondo/netconn"
	"github.com/rondo-go/rondo/rtls"
	"golang.org/x/crypto/ssh"
	"golang.org/x/net/http2"
	"golang.org/x/net/nettest"
)

const host = "server.test"

var authority = sync.OnceValue(func() *testcert.Authority { return testcert.New("rondo test CA") })

var serverConfig = sync.OnceValue(func() *tls.Config {
	return &tls.Config{Certificates: []tls.Certificate{authority().Issue(testcert.ECDSA, host)}}
})

var clientConfig = sync.OnceValue(func() *tls.Config {
	return &tls.Config{RootCAs: authority().Pool(), ServerName: host}
})

// A way is how a net.Conn is made of a connection on a loop.
type way struct {
	name           string
	server, client []rondo.FilterOpenFunc
	above          bool // crypto/tls on top
}

func pass(*rondo.Conn) rondo.Filter { return rondo.PassThrough{} }

var ways = sync.OnceValue(func() []way {
	return []way{
		{name: "plain"},
		{name: "filter", server: []rondo.FilterOpenFunc{pass}, client: []rondo.FilterOpenFunc{pass}},
		{name: "rtls", server: []rondo.FilterOpenFunc{rtls.Server(serverConfig())}, client: []rondo.FilterOpenFunc{rtls.Client(clientConfig())}},
		{name: "crypto-tls", above: true},
	}
})

// onEach runs a test on every backend, with every way to have a net.Conn.
func onEach(t *testing.T, f func(t *testing.T, backend string, w way)) {
	for _, backend := range pick.Names() {
		for _, w := range ways() {
			t.Run(backend+"/"+w.name, func(t *testing.T) { f(t, backend, w) })
		}
	}
}

// makeNetconns connects two net.Conns on an engine of their own.
func makeNetconns(backend string, w way) (c1, c2 net.Conn, stop func(), err error) {
	e := &rondo.Engine{NumLoops: 2, Backend: backend, HighWater: 64 << 10, LowWater: 16 << 10}
	stop = func() {
		if c1 != nil {
			c1.Close()
		}
		if c2 != nil {
			c2.Close()
		}
		e.Close()
	}
	ln, err := netconn.Listen(e, "tcp", "127.0.0.1:0", netconn.Options{Filters: w.server})
	if err != nil {
		return nil, nil, stop, err
	}
	accepted := make(chan net.Conn, 1)
	go func() {
		c, err := ln.Accept()
		if err == nil && w.above {
			s := tls.Server(c, serverConfig())
			c, err = s, s.Handshake()
		}
		if err != nil {
			c = nil
		}
		accepted <- c
	}()
	d := netconn.Dialer{Engine: e, Options: netconn.Options{Filters: w.client}}
	c1, err = d.Dial("tcp", ln.Addr().String())
	if err == nil && w.above {
		c := tls.Client(c1, clientConfig())
		c1, err = c, c.Handshake()
	}
	if c2 = <-accepted; c2 == nil && err == nil {
		err = fmt.Errorf("nothing was accepted")
	}
	return c1, c2, stop, err
}

func pair(t *testing.T, backend string, w way) (client, server net.Conn) {
	t.Helper()
	c1, c2, stop, err := makeNetconns(backend, w)
	t.Cleanup(stop)
	if err != nil {
		t.Fatal(err)
	}
	deadline := time.Now().Add(time.Minute)
	c1.SetDeadline(deadline)
	c2.SetDeadline(deadline)
	return c1, c2
}

// TestNetconn: a netconn.Conn is what nettest says that a net.Conn is. A *tls.Conn is not,
// over package net either: a Write that a deadline ends breaks it.
func TestNetconn(t *testing.T) {
	onEach(t, func(t *testing.T, backend string, w way) {
		if w.above {
			return // see above
		}
		nettest.TestConn(t, func() (c1, c2 net.Conn, stop func(), err error) { return makeNetconns(backend, w) })
	})
}

// TestSSH: a server and a client of golang.org/x/crypto/ssh, with a session, a command and
// more data than fits a window, in both directions.
func TestSSH(t *testing.T) {
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	signer, err := ssh.NewSignerFromKey(key)
	if err != nil {
		t.Fatal(err)
	}
	config := &ssh.ServerConfig{PasswordCallback: func(_ ssh.ConnMetadata, password []byte) (*ssh.Permissions, error) {
		if string(password) != "secret" {
			return nil, fmt.Errorf("wrong password")
		}
		return nil, nil
	}}
	config.AddHostKey(signer)
	onEach(t, func(t *testing.T, backend string, w way) {
		c, s := pair(t, backend, w)
		served := make(chan error, 1)
		go func() { served <- serveSSH(s, config) }()
		conn, channels, requests, err := ssh.NewClientConn(c, host, &ssh.ClientConfig{
			User: "user", Auth: []ssh.AuthMethod{ssh.Password("secret")}, HostKeyCallback: ssh.FixedHostKey(signer.PublicKey()),
		})
		if err != nil {
			t.Fatal(err)
		}
		client := ssh.NewClient(conn, channels, requests)
		session, err := client.NewSession()
		if err != nil {
			t.Fatal(err)
		}
		want := bytes.Repeat([]byte("0123456789abcdef"), 256<<10)
		session.Stdin = bytes.NewReader(want)
		got, err := session.Output("cat")
		if err != nil || !bytes.Equal(got, want) {
			t.Errorf("%d bytes of %d came back: %v", len(got), len(want), err)
		}
		client.Close()
		if err := <-served; err != nil {
			t.Error(err)
		}
	})
}

// serveSSH serves sessions whose commands send back what they read.
func serveSSH(c net.Conn, config *ssh.ServerConfig) error {
	_, channels, requests, err := ssh.NewServerConn(c, config)
	if err != nil {
		return err
	}
	go ssh.DiscardRequests(requests)
	for channel := range channels {
		session, requests, err := channel.Accept()
		if err != nil {
			return err
		}
		go func() {
			for r := range requests {
				r.Reply(r.Type == "exec", nil)
				if r.Type == "exec" {
					go func() {
						io.Copy(session, session)
						session.SendRequest("exit-status", false, []byte{0, 0, 0, 0})
						session.Close()
					}()
				}
			}
		}()
	}
	return nil
}

// TestHTTP2: golang.org/x/net/http2's server and client, with many streams at once, some of
// which are given up.
func TestHTTP2(t *testing.T) {
	onEach(t, func(t *testing.T, backend string, w way) {
		c, s := pair(t, backend, w)
		served := make(chan struct{})
		go func() {
			defer close(served)
			new(http2.Server).ServeConn(s, &http2.ServeConnOpts{Handler: http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
				io.Copy(w, r.Body)
			})})
		}()
		transport := &http2.Transport{AllowHTTP: true}
		client, err := transport.NewClientConn(c)
		if err != nil {
			t.Fatal(err)
		}
		var streams sync.WaitGroup
		for i := range 50 {
			streams.Add(1)
			go func() {
				defer streams.Done()
				want := strings.Repeat(fmt.Sprint(i), 10_000*(i%5))
				r, err := http.NewRequest("POST", "http://"+host+"/", strings.NewReader(want))
				if err != nil {
					t.Error(err)
					return
				}
				answer, err := client.RoundTrip(r)
				if err != nil {
					t.Error(err)
					return
				}
				defer answer.Body.Close()
				if i%7 == 0 {
					return // given up
				}
				got, err := io.ReadAll(answer.Body)
				if err != nil || string(got) != want {
					t.Errorf("stream %d: %d bytes of %d, %v", i, len(got), len(want), err)
				}
			}()
		}
		streams.Wait()
		client.Close()
		<-served
	})
}

// TestHTTPS: net/http's server and client with HTTP/2 negotiated by crypto/tls on top of
// netconn's listener and dialer.
func TestHTTPS(t *testing.T) {
	for _, backend := range pick.Names() {
		t.Run(backend, func(t *testing.T) {
			e := &rondo.Engine{NumLoops: 2, Backend: backend}
			defer e.Close()
			ln, err := netconn.Listen(e, "tcp", "127.0.0.1:0", netconn.Options{})
			if err != nil {
				t.Fatal(err)
			}
			server := &http.Server{
				TLSConfig: serverConfig().Clone(),
				Handler:   http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) { fmt.Fprint(w, r.Proto) }),
			}
			served := make(chan error, 1)
			go func() { served <- server.ServeTLS(ln, "", "") }()
			d := netconn.Dialer{Engine: e}
			transport := &http.Transport{DialContext: d.DialContext, TLSClientConfig: clientConfig().Clone(), ForceAttemptHTTP2: true}
			client := &http.Client{Transport: transport, Timeout: time.Minute}
			for range 5 {
				r, err := client.Get("https://" + ln.Addr().String())
				if err != nil {
					t.Fatal(err)
				}
				body, err := io.ReadAll(r.Body)
				r.Body.Close()
				if string(body) != "HTTP/2.0" || err != nil {
					t.Errorf("%q, %v", body, err)
				}
			}
			transport.CloseIdleConnections()
			server.Close()
			<-served
		})
	}
}
