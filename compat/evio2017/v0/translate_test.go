package evio

import (
	"bytes"
	"compress/flate"
	"crypto/tls"
	"errors"
	"fmt"
	"io"
	"math/rand/v2"
	"net"
	"runtime"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/rondo-go/rondo/internal/testcert"
)

var authority = sync.OnceValue(func() *testcert.Authority { return testcert.New("test CA") })

// configs makes the configurations of a server and of its clients. version 0: any.
func configs(version uint16) (server, client *tls.Config) {
	server = &tls.Config{Certificates: []tls.Certificate{authority().Issue(testcert.ECDSA, "localhost")}, MaxVersion: version}
	return server, &tls.Config{RootCAs: authority().Pool(), ServerName: "localhost"}
}

// secure is the README's translation.
func secure(config *tls.Config) func(int, io.ReadWriter) io.ReadWriter {
	return func(_ int, rw io.ReadWriter) io.ReadWriter { return tls.Server(NopConn(rw), config) }
}

// A xor is a translator without any state, but that of its peer.
type xor struct{ io.ReadWriter }

func (x xor) Read(p []byte) (int, error) {
	n, err := x.ReadWriter.Read(p)
	for i := range p[:n] {
		p[i] ^= 0x55
	}
	return n, err
}

func (x xor) Write(p []byte) (int, error) {
	q := bytes.Clone(p)
	for i := range q {
		q[i] ^= 0x55
	}
	return x.ReadWriter.Write(q)
}

// deflated is a translator that reads ahead, and while it is made.
type deflated struct {
	io.Reader
	w *flate.Writer
}

func newDeflated(rw io.ReadWriter) io.ReadWriter {
	w, _ := flate.NewWriter(rw, flate.BestSpeed)
	return &deflated{flate.NewReader(rw), w}
}

func (d *deflated) Write(p []byte) (int, error) {
	n, err := d.w.Write(p)
	return n, errors.Join(err, d.w.Flush())
}

// Translated connections echo, whatever the translation and however the peer's bytes are
// split; and those that should says no to are not translated.
func TestTranslate(t *testing.T) {
	server, client := configs(0)
	old, _ := configs(tls.VersionTLS12)
	through := func(_ int, rw io.ReadWriter) io.ReadWriter { return rw }
	overTLS := func(c net.Conn) io.ReadWriter { return tls.Client(c, client) }
	for name, test := range map[string]struct {
		server []func(int, io.ReadWriter) io.ReadWriter // from the wire
		client func(net.Conn) io.ReadWriter
	}{
		"nothing":  {[]func(int, io.ReadWriter) io.ReadWriter{through}, func(c net.Conn) io.ReadWriter { return c }},
		"xor":      {[]func(int, io.ReadWriter) io.ReadWriter{func(_ int, rw io.ReadWriter) io.ReadWriter { return xor{rw} }}, func(c net.Conn) io.ReadWriter { return xor{c} }},
		"deflate":  {[]func(int, io.ReadWriter) io.ReadWriter{func(_ int, rw io.ReadWriter) io.ReadWriter { return newDeflated(rw) }}, func(c net.Conn) io.ReadWriter { return newDeflated(c) }},
		"TLS 1.3":  {[]func(int, io.ReadWriter) io.ReadWriter{secure(server)}, overTLS},
		"TLS 1.2":  {[]func(int, io.ReadWriter) io.ReadWriter{secure(old)}, overTLS},
		"xor, TLS": {[]func(int, io.ReadWriter) io.ReadWriter{func(_ int, rw io.ReadWriter) io.ReadWriter { return xor{rw} }, secure(server)}, func(c net.Conn) io.ReadWriter { return tls.Client(NopConn(xor{c}), client) }},
		"TLS, deflate": {[]func(int, io.ReadWriter) io.ReadWriter{secure(server), func(_ int, rw io.ReadWriter) io.ReadWriter { return newDeflated(rw) }},
			func(c net.Conn) io.ReadWriter { return newDeflated(tls.Client(c, client)) }},
	} {
		for _, scheme := range []string{"tcp", "tcp-net"} {
			t.Run(name+"/"+scheme, func(t *testing.T) {
				events := Events{
					Opened: func(int, Info) ([]byte, Options, Action) { return []byte("sweetness\r\n"), Options{}, None },
					Data:   echo,
				}
				for i := len(test.server) - 1; i >= 0; i-- { // the last is next to the wire
					events = Translate(events, func(_ int, info Info) bool { return info.AddrIndex == 1 }, test.server[i])
				}
				w := serve(t, events, scheme+"://127.0.0.1:0", scheme+"://127.0.0.1:0")
				plain, nc := w.dial(0), w.dial(1)
				c := test.client(splits{nc})
				for _, c := range []io.ReadWriter{plain, c} {
					hear(t, c, "sweetness\r\n")
					for i := range 20 {
						line := fmt.Sprintf("hello %d\r\n", i)
						say(t, c, line)
						hear(t, c, line)
					}
				}
				big := make([]byte, 1<<20)
				for i := range big {
					big[i] = byte(rand.Uint32() >> (i >> 16 & 7)) // more and less compressible
				}
				go c.Write(big)
				got := make([]byte, len(big))
				if _, err := io.ReadFull(c, got); err != nil || !bytes.Equal(got, big) {
					t.Fatal("the long echo differs:", err)
				}
				nc.Close()
				w.await("closed ")
				for _, line := range w.events() {
					if strings.HasPrefix(line, "closed") && !strings.HasSuffix(line, ", <nil>") {
						t.Error(line)
					}
				}
			})
		}
	}
}

// splits writes in pieces of random sizes.
type splits struct{ net.Conn }

func (s splits) Write(p []byte) (n int, err error) {
	for n < len(p) && err == nil {
		var k int
		k, err = s.Conn.Write(p[n:min(len(p), n+1+rand.IntN(1+rand.IntN(20000)))])
		n += k
	}
	return n, err
}

// A TLS server's idle connections have no goroutine, nor a coroutine.
func TestTranslatedConnectionsHaveNoGoroutine(t *testing.T) {
	for _, version := range []uint16{tls.VersionTLS12, tls.VersionTLS13} {
		server, client := configs(version)
		w := serve(t, Translate(Events{Data: echo}, nil, secure(server)), "tcp://127.0.0.1:0")
		before := runtime.NumGoroutine()
		for range 50 {
			c := tls.Client(w.dial(0), client)
			say(t, c, "hello")
			hear(t, c, "hello")
		}
		if n := runtime.NumGoroutine() - before; n > 10 {
			t.Errorf("%s: %d goroutines for 50 connections", tls.VersionName(version), n)
		}
	}
}

// Coroutines end with their connections, and with the server.
func TestTranslatorsEnd(t *testing.T) {
	before := runtime.NumGoroutine()
	server, _ := configs(0)
	for _, translate := range []func(int, io.ReadWriter) io.ReadWriter{
		secure(server), // whose handshake does not begin
		func(_ int, rw io.ReadWriter) io.ReadWriter { return xor{rw} },
		func(_ int, rw io.ReadWriter) io.ReadWriter { io.ReadFull(rw, make([]byte, 1000)); return rw },
	} {
		w := serve(t, Translate(Events{Data: echo}, nil, translate), "tcp://127.0.0.1:0")
		var open []net.Conn
		for range 10 {
			w.dial(0).Close()
			open = append(open, w.dial(0))
		}
		w.await("opened 20")
		w.stop.Store(true)
		w.end()
		for _, c := range open {
			c.Close() // otherwise the server lingers
		}
		w.wantPairs()
		for _, line := range w.events() {
			if strings.HasPrefix(line, "closed") && !strings.HasSuffix(line, ", <nil>") {
				t.Error(line)
			}
		}
	}
	for begin := time.Now(); runtime.NumGoroutine() > before+3; time.Sleep(10 * time.Millisecond) {
		if time.Since(begin) > patience {
			b := make([]byte, 1<<20)
			t.Fatalf("%d goroutines, %d before:\n%s", runtime.NumGoroutine(), before, b[:runtime.Stack(b, true)])
		}
	}
}

// Wake calls Data of a translated connection, before its handshake too.
func TestWakeTranslated(t *testing.T) {
	serverSide, client := configs(0)
	var srv Server
	w := serve(t, Translate(Events{
		Serving: func(s Server) Action { srv = s; return None },
		Opened:  func(id int, _ Info) ([]byte, Options, Action) { srv.Wake(id); return nil, Options{}, None },
		Data: func(id int, in []byte) ([]byte, Action) {
			if in == nil {
				return []byte("awake"), None
			}
			srv.Wake(id)
			return in, None
		},
	}, nil, secure(serverSide)), "tcp://127.0.0.1:0")
	nc := w.dial(0)
	w.await("opened 1")
	c := tls.Client(nc, client)
	hear(t, c, "awake")
	say(t, c, "hello")
	hear(t, c, "helloawake")
}

// A failed handshake closes the connection, with its error.
func TestTranslateFails(t *testing.T) {
	server, _ := configs(0)
	var failed error
	w := serve(t, Translate(Events{
		Closed: func(_ int, err error) Action { failed = err; return Shutdown },
	}, nil, secure(server)), "tcp://127.0.0.1:0")
	c := w.dial(0)
	say(t, c, "GET / HTTP/1.1\r\n\r\n")
	io.Copy(io.Discard, c) // an alert
	w.end()
	var header tls.RecordHeaderError
	if !errors.As(failed, &header) {
		t.Errorf("Closed gets %v (%T)", failed, failed)
	}
}

// Opened is the first event, and Closed the last, of a connection whose translation fails at
// once, and of one whose peer leaves in the handshake: for that Closed gets nil.
func TestTranslateFailsEarly(t *testing.T) {
	server, _ := configs(0)
	for want, translate := range map[string]func(int, io.ReadWriter) io.ReadWriter{
		"closed 1, no":    func(_ int, rw io.ReadWriter) io.ReadWriter { return refusing{rw} },
		"closed 1, <nil>": secure(server),
	} {
		for _, greeting := range []string{"", "hello"} {
			for _, scheme := range []string{"tcp", "tcp-net"} {
				w := serve(t, Translate(Events{
					Opened: func(int, Info) ([]byte, Options, Action) { return []byte(greeting), Options{}, None },
				}, nil, translate), at(t, scheme))
				c := w.dial(0)
				w.await("opened 1 at 0")
				c.(*net.TCPConn).CloseWrite()
				w.await("closed 1")
				w.stop.Store(true)
				w.end()
				w.wantLog("opened 1 at 0", want)
			}
		}
	}
}

// refusing is a translation whose handshake fails.
type refusing struct{ io.ReadWriter }

func (refusing) Handshake() error { return errors.New("no") }

// Close ends a TLS connection with close_notify, and Detach gives away the wire.
func TestTranslatedActions(t *testing.T) {
	server, client := configs(0)
	w := serve(t, Translate(Events{
		Data: func(_ int, in []byte) ([]byte, Action) {
			if string(in) == "close" {
				return []byte("bye"), Close
			}
			return []byte("away"), Detach
		},
		Detached: func(_ int, rwc io.ReadWriteCloser) Action {
			go func() {
				defer rwc.Close()
				io.WriteString(rwc, "plain")
				io.Copy(rwc, rwc)
			}()
			return None
		},
	}, nil, secure(server)), "tcp://127.0.0.1:0")
	c := tls.Client(w.dial(0), client)
	say(t, c, "close")
	hear(t, c, "bye")
	hearEnd(t, c) // otherwise io.ErrUnexpectedEOF
	w.await("closed 1, <nil>")

	nc := w.dial(0)
	c = tls.Client(exactly{nc}, client)
	say(t, c, "detach")
	hear(t, c, "away")
	hear(t, nc, "plain")
	say(t, nc, "echo")
	hear(t, nc, "echo")
	nc.(*net.TCPConn).CloseWrite()
	hearEnd(t, nc)
	w.await("detached 2")
	w.wantPairs()
}

// exactly reads a byte at a time, so that crypto/tls has no bytes that follow.
type exactly struct{ net.Conn }

func (e exactly) Read(p []byte) (int, error) { return e.Conn.Read(p[:min(1, len(p))]) }

// A connection of Dial is translated too: here a client of TLS, of both versions.
func TestTranslateDial(t *testing.T) {
	for _, version := range []uint16{tls.VersionTLS12, tls.VersionTLS13} {
		server, client := configs(version)
		there := serve(t, Translate(Events{Data: echo}, nil, secure(server)), "tcp://127.0.0.1:0")
		got := make(chan string, 1)
		text := ""
		w := serve(t, Translate(Events{
			Opened: func(_ int, info Info) ([]byte, Options, Action) {
				if info.Closing {
					return []byte("ignored"), Options{}, Detach
				}
				return []byte("question"), Options{}, None
			},
			Data: func(_ int, in []byte) ([]byte, Action) {
				if text += string(in); text == "question" {
					got <- text
					return nil, Close
				}
				return nil, None
			},
		}, func(_ int, info Info) bool { return info.AddrIndex == -1 }, func(_ int, rw io.ReadWriter) io.ReadWriter {
			return tls.Client(NopConn(rw), client)
		}))
		w.server.Dial("tcp://"+there.server.Addrs[0].String(), 0)
		select {
		case <-got:
		case <-time.After(patience):
			t.Fatal("no answer")
		}
		w.await("closed 1, <nil>")
		w.server.Dial("tcp://127.0.0.1:1", 0)
		w.await("closed 2, connection refused")
		w.wantPairs()
		there.await("closed 1, <nil>")
	}
}

// reads is a translator whose Write reads.
type reads struct{ io.ReadWriter }

func (r reads) Write(p []byte) (int, error) {
	if _, err := io.ReadFull(r.ReadWriter, make([]byte, 1)); err != nil {
		return 0, err
	}
	return r.ReadWriter.Write(p)
}

// A Write that reads is an error that says so, and hangs nothing.
func TestWriteThatReads(t *testing.T) {
	w := serve(t, Translate(Events{Data: echo}, nil, func(_ int, rw io.ReadWriter) io.ReadWriter { return reads{rw} }), "tcp://127.0.0.1:0")
	c := w.dial(0)
	say(t, c, "hello")
	w.await("closed 1, " + errWriteReads.Error())
	w.dial(0)
	w.await("opened 2")
}

// NopConn's methods but Read and Write do nothing.
func TestNopConn(t *testing.T) {
	var b bytes.Buffer
	c := NopConn(&b)
	say(t, c, "hello")
	hear(t, c, "hello")
	now := time.Now()
	for _, err := range []error{c.SetDeadline(now), c.SetReadDeadline(now), c.SetWriteDeadline(now), c.Close()} {
		if err != nil {
			t.Error(err)
		}
	}
	if c.LocalAddr() != nil || c.RemoteAddr() != nil {
		t.Error("it has addresses")
	}
}
