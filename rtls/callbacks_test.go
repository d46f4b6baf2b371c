package rtls_test

import (
	"context"
	"crypto/tls"
	"crypto/x509"
	"errors"
	"io"
	"log/slog"
	"net"
	"runtime"
	"sync/atomic"
	"testing"
	"time"

	"github.com/rondo-go/rondo"
	"github.com/rondo-go/rondo/internal/pick"
	"github.com/rondo-go/rondo/rtls"
)

// everywhere runs a test on every backend, with handshakes on the loop and off it.
func everywhere(t *testing.T, f func(t *testing.T, backend string, o *rtls.Options)) {
	for _, backend := range pick.Available() {
		t.Run(backend, func(t *testing.T) {
			t.Run("on the loop", func(t *testing.T) { f(t, backend, &rtls.Options{}) })
			t.Run("off the loop", func(t *testing.T) { f(t, backend, &rtls.Options{OffLoop: 1}) })
		})
	}
}

// quiet is an Engine of one loop that logs nothing.
func quiet(backend string) *rondo.Engine {
	return &rondo.Engine{Backend: backend, NumLoops: 1, Logger: slog.New(slog.DiscardHandler)}
}

// receive takes what must come.
func receive[T any](t *testing.T, what string, from <-chan T) (v T) {
	t.Helper()
	select {
	case v = <-from:
	case <-time.After(60 * time.Second):
		b := make([]byte, 1<<20)
		t.Fatalf("waited in vain for %s:\n%s", what, b[:runtime.Stack(b, true)])
	}
	return v
}

// A saboteur does something in one of a tls.Config's callbacks, once.
type saboteur struct {
	place string
	deed  func(c *rondo.Conn)
	conn  *rondo.Conn
	calls atomic.Int32
}

func (s *saboteur) at(place string) {
	if place == s.place && s.calls.Add(1) == 1 {
		s.deed(s.conn)
	}
}

var (
	ofServers = []string{"GetConfigForClient", "GetCertificate", "WrapSession", "VerifyPeerCertificate", "VerifyConnection", "KeyLogWriter"}
	ofClients = []string{"GetClientCertificate", "ClientSessionCache.Get", "ClientSessionCache.Put", "VerifyPeerCertificate", "VerifyConnection", "KeyLogWriter"}
)

// plant puts s into every callback of config.
func (s *saboteur) plant(config *tls.Config) *tls.Config {
	config.GetConfigForClient = func(*tls.ClientHelloInfo) (*tls.Config, error) { s.at("GetConfigForClient"); return nil, nil }
	config.GetCertificate = func(*tls.ClientHelloInfo) (*tls.Certificate, error) {
		s.at("GetCertificate")
		cert := hostCert()
		return &cert, nil
	}
	config.Certificates = nil
	config.WrapSession = func(cs tls.ConnectionState, ss *tls.SessionState) ([]byte, error) {
		s.at("WrapSession")
		return config.EncryptTicket(cs, ss)
	}
	config.GetClientCertificate = func(*tls.CertificateRequestInfo) (*tls.Certificate, error) {
		s.at("GetClientCertificate")
		cert := hostCert()
		return &cert, nil
	}
	config.VerifyPeerCertificate = func([][]byte, [][]*x509.Certificate) error { s.at("VerifyPeerCertificate"); return nil }
	config.VerifyConnection = func(tls.ConnectionState) error { s.at("VerifyConnection"); return nil }
	config.KeyLogWriter = keyLog(func() { s.at("KeyLogWriter") })
	config.ClientSessionCache = cache{s, tls.NewLRUClientSessionCache(0)}
	return config
}

type keyLog func()

func (f keyLog) Write(p []byte) (int, error) { f(); return len(p), nil }

type cache struct {
	s *saboteur
	tls.ClientSessionCache
}

func (c cache) Get(key string) (*tls.ClientSessionState, bool) {
	c.s.at("ClientSessionCache.Get")
	return c.ClientSessionCache.Get(key)
}

func (c cache) Put(key string, state *tls.ClientSessionState) {
	c.s.at("ClientSessionCache.Put")
	c.ClientSessionCache.Put(key, state)
}

// watched echoes, and tells of its end.
type watched chan<- error

func (h watched) open(*rondo.Conn) rondo.Handler             { return h }
func (h watched) Data(c *rondo.Conn, in []byte) (int, error) { return c.Write(in) }
func (h watched) EOF(c *rondo.Conn)                          { c.Close() }
func (h watched) Closed(_ *rondo.Conn, err error)            { h <- err }
func (h watched) filtered(f rondo.FilterOpenFunc) rondo.OpenFunc {
	return func(c *rondo.Conn) rondo.Handler { c.Use(h.open, f); return h }
}

// ofConns are deeds that concern the connection. Off the loop another goroutine does them.
var ofConns = map[string]func(c *rondo.Conn){
	"panic":     func(*rondo.Conn) { panic("a goat") },
	"Goexit":    func(*rondo.Conn) { runtime.Goexit() },
	"Close":     (*rondo.Conn).Close,
	"CloseWith": func(c *rondo.Conn) { c.CloseWith(io.ErrShortWrite) },
	"Abort":     func(c *rondo.Conn) { c.Abort(nil) },
	"CloseWrite": func(c *rondo.Conn) {
		c.Write([]byte("early"))
		c.CloseWrite()
	},
	"Flush": func(c *rondo.Conn) {
		c.Write([]byte("early"))
		c.Flush()
	},
	"Pause": func(c *rondo.Conn) { c.Pause(); c.Loop().AfterFunc(0, c.Resume) },
	"Engine.Attach": func(c *rondo.Conn) {
		near, far := net.Pipe()
		defer far.Close()
		defer near.Close()
		c.Ref().Loop().Engine().Attach(near, func(*rondo.Conn) rondo.Handler { return nil }) // panics on a loop
	},
	"Engine.Listen": func(c *rondo.Conn) {
		if ln, err := c.Ref().Loop().Engine().Listen("tcp", "127.0.0.1:0", rondo.SocketOptions{}, echo); err == nil {
			ln.Close()
		}
	},
}

// offLoop are those deeds that another goroutine may do, or has the loop do.
func offLoop(name string, deed func(*rondo.Conn)) func(*rondo.Conn) {
	switch name {
	case "panic", "Goexit", "Engine.Attach", "Engine.Listen":
		return deed
	}
	return func(c *rondo.Conn) { c.Ref().Do(deed) }
}

// ofEngines are deeds that end the engine.
var ofEngines = map[string]func(e *rondo.Engine){
	"Engine.Close":    func(e *rondo.Engine) { e.Close() },
	"Engine.Shutdown": func(e *rondo.Engine) { e.Shutdown(canceled) },
}

var canceled = func() context.Context {
	ctx, cancel := context.WithCancel(context.Background())
	cancel()
	return ctx
}()

// A callback of a server's configuration may do anything: that costs its connection at
// most, of which Closed is told once, and nothing hangs.
func TestServersCallbacks(t *testing.T) {
	everywhere(t, func(t *testing.T, backend string, o *rtls.Options) {
		before := runtime.NumGoroutine()
		for _, place := range ofServers {
			e := quiet(backend)
			bystander := bystands(t, e)
			for name, deed := range ofConns {
				if o.OffLoop > 0 {
					deed = offLoop(name, deed)
				}
				s := &saboteur{place: place, deed: deed}
				serveSaboteur(t, e, s, o)
				if n := s.calls.Load(); n == 0 {
					t.Errorf("%s in %s: the callback was not called", name, place)
				}
				roundTrip(t, bystander, name)
			}
			e.Close()
			for name, end := range ofEngines {
				e := quiet(backend)
				s := &saboteur{place: place, deed: func(*rondo.Conn) { end(e) }}
				serveSaboteur(t, e, s, o)
				e.Wait()
				if s.calls.Load() == 0 {
					t.Errorf("%s in %s: the callback was not called", name, place)
				}
			}
		}
		settles(t, "afterwards", before)
	})
}

// bystands is a client of e's, beside the others.
func bystands(t *testing.T, e *rondo.Engine) net.Conn {
	t.Helper()
	c, ok := <-connect(t, listen(t, e, rondo.Filtered(echo, rtls.Server(serverConfig(0)))), clientConfig())
	if !ok {
		t.Fatal("no connection")
	}
	return c
}

// serveSaboteur has e serve a client, and waits for the connection's end.
func serveSaboteur(t *testing.T, e *rondo.Engine, s *saboteur, o *rtls.Options) {
	t.Helper()
	ended := make(chan error, 2)
	serverSide, clientSide := mutual(0)
	clientSide.ClientSessionCache = tls.NewLRUClientSessionCache(0)
	address := listen(t, e, watched(ended).filtered(func(c *rondo.Conn) rondo.Filter {
		s.conn = c
		return o.Server(s.plant(serverSide))(c)
	}))
	raw, err := net.Dial("tcp", address)
	if err != nil {
		t.Fatal(err)
	}
	visit(tls.Client(raw, clientSide))
	if receive(t, "Closed", ended); len(ended) > 0 {
		t.Error("Closed was called again")
	}
}

// visit talks to an echo, if it gets so far, and closes.
func visit(c *tls.Conn) {
	defer c.Close()
	defer c.NetConn().Close() // first: close_notify may have to wait
	c.SetDeadline(time.Now().Add(60 * time.Second))
	if c.Handshake() == nil {
		io.WriteString(c, "hello")
		c.CloseWrite()
		io.Copy(io.Discard, c)
	}
}

// Nor does it matter what a callback of a client's does.
func TestClientsCallbacks(t *testing.T) {
	everywhere(t, func(t *testing.T, backend string, o *rtls.Options) {
		before := runtime.NumGoroutine()
		server := newServer(t)
		for _, place := range ofClients {
			e := quiet(backend)
			bystander := bystands(t, e)
			for name, deed := range ofConns {
				if o.OffLoop > 0 && place != "ClientSessionCache.Put" {
					deed = offLoop(name, deed)
				}
				s := &saboteur{place: place, deed: deed}
				dialSaboteur(t, e, server.address, s, o)
				roundTrip(t, bystander, name)
				if s.calls.Load() == 0 {
					t.Errorf("%s in %s: the callback was not called", name, place)
				}
			}
			e.Close()
			for name, end := range ofEngines {
				e := quiet(backend)
				s := &saboteur{place: place, deed: func(*rondo.Conn) { end(e) }}
				dialSaboteur(t, e, server.address, s, o)
				e.Wait()
				if s.calls.Load() == 0 {
					t.Errorf("%s in %s: the callback was not called", name, place)
				}
			}
		}
		server.close()
		settles(t, "afterwards", before)
	})
}

// server is Go's own, and echoes.
type server struct {
	address string
	close   func()
}

func newServer(t *testing.T) server {
	config, _ := mutual(tls.VersionTLS13)
	ln, err := tls.Listen("tcp", "127.0.0.1:0", config)
	if err != nil {
		t.Fatal(err)
	}
	done := make(chan bool)
	go func() {
		defer close(done)
		for {
			c, err := ln.Accept()
			if errors.Is(err, net.ErrClosed) {
				return
			} else if err != nil {
				continue // Wine gives the reset of a connection that nobody has accepted yet
			}
			c.SetDeadline(time.Now().Add(60 * time.Second))
			io.Copy(c, c)
			c.Close()
		}
	}()
	return server{ln.Addr().String(), func() { ln.Close(); <-done }}
}

// dialSaboteur has e dial a server, says hello, and waits for the connection's end.
func dialSaboteur(t *testing.T, e *rondo.Engine, address string, s *saboteur, o *rtls.Options) {
	t.Helper()
	if err := e.Start(); err != nil {
		t.Fatal(err)
	}
	_, clientSide := mutual(tls.VersionTLS13)
	ended := make(chan error, 2)
	for l := range e.Loops() {
		l.Post(func() {
			l.Dial("tcp", address, rondo.SocketOptions{}, func(c *rondo.Conn, err error) rondo.Handler {
				if err != nil {
					ended <- err
					return nil
				}
				s.conn = c
				h := guest(ended)
				c.Use(h.open, func(c *rondo.Conn) rondo.Filter { return o.Client(s.plant(clientSide))(c) })
				return h
			})
		})
	}
	if receive(t, "Closed", ended); len(ended) > 0 {
		t.Error("Closed was called again")
	}
}

// guest says hello to an echo, and closes when it has the answer.
type guest chan<- error

func (h guest) open(c *rondo.Conn) rondo.Handler {
	io.WriteString(c, "hello")
	return h
}

func (h guest) Data(c *rondo.Conn, in []byte) (int, error) {
	if len(in) < len("hello") {
		return 0, nil
	}
	c.Close()
	return len(in), nil
}

func (h guest) Closed(_ *rondo.Conn, err error) { h <- err }
