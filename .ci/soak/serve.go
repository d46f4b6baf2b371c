package main

import (
	"context"
	"crypto/ecdsa"
	"crypto/elliptic"
	crand "crypto/rand"
	"crypto/tls"
	"crypto/x509"
	"crypto/x509/pkix"
	"io"
	"log/slog"
	"math/big"
	"net"
	"net/http"
	"os"
	"os/signal"
	"syscall"
	"time"

	"github.com/rondo-go/rondo"
	"github.com/rondo-go/rondo/admin"
	"github.com/rondo-go/rondo/httpd"
	"github.com/rondo-go/rondo/rtls"
	"github.com/rondo-go/rondo/watchdog"
	"github.com/rondo-go/rondo/websocket"
)

// large is the answer of /large.
var large = patternOf(1 << 20)

func patternOf(n int) []byte {
	p := make([]byte, n)
	for i := range p {
		p[i] = byte(i*7 + i>>8)
	}
	return p
}

// serveHTTP is the HTTP server: files, uploads and WebSockets, plain and by TLS with HTTP/2.
func serveHTTP() error {
	log := slog.New(slog.NewJSONHandler(os.Stderr, nil))
	slog.SetDefault(log)
	engine := &rondo.Engine{Backend: *backend, Logger: log, MaxBufferBytes: 64 << 20}
	config, err := certificate()
	if err != nil {
		return err
	}
	server := httpd.Server{HTTP: &http.Server{
		Handler: handlers(),
		// On a busy machine a client may have no CPU for seconds: its time is patience.
		ReadHeaderTimeout: patience,
		IdleTimeout:       2 * patience,
	}}
	plain, err := engine.Listen("tcp", "127.0.0.1:0", rondo.SocketOptions{}, server.Open)
	if err != nil {
		return err
	}
	secure, err := engine.Listen("tcp", "127.0.0.1:0", rondo.SocketOptions{}, rondo.Filtered(server.Open, rtls.Server(config)))
	if err != nil {
		return err
	}
	page := admin.New(engine, admin.Options{Name: "soak"})
	dog, err := watchdog.Watch(engine, watchdog.Options{Slow: slow})
	if err != nil {
		return err
	}
	defer dog.Stop()
	beside := &rondo.Engine{NumLoops: 1, Backend: *backend, Logger: log}
	shown, err := beside.Listen("tcp", "127.0.0.1:0", rondo.SocketOptions{}, (&httpd.Server{HTTP: &http.Server{Handler: page}}).Open)
	if err != nil {
		return err
	}
	log.Info("the page of --admin is shown", "address", shown.Addr().String())
	log.Info("soak is ready", "addresses", []string{plain.Addr().String(), secure.Addr().String()})
	signals := make(chan os.Signal, 1)
	signal.Notify(signals, syscall.SIGTERM)
	<-signals
	beside.Close()
	ctx, cancel := context.WithTimeout(context.Background(), 10*time.Second)
	defer cancel()
	return engine.Shutdown(ctx)
}

func handlers() http.Handler {
	mux := http.NewServeMux()
	mux.HandleFunc("/hello", func(w http.ResponseWriter, r *http.Request) { io.WriteString(w, "hello") })
	mux.HandleFunc("/large", func(w http.ResponseWriter, r *http.Request) { w.Write(large) })
	mux.HandleFunc("/echo", func(w http.ResponseWriter, r *http.Request) {
		http.NewResponseController(w).EnableFullDuplex()
		io.Copy(w, r.Body)
	})
	var sockets websocket.Server
	sockets.Open = func(*websocket.Conn, *http.Request) websocket.Handler {
		return websocket.HandlerFunc((*websocket.Conn).WriteMessage)
	}
	sockets.Compression = &websocket.Compression{}
	mux.Handle("/socket", &sockets)
	mux.HandleFunc("/stream", func(w http.ResponseWriter, r *http.Request) {
		s, err := sockets.UpgradeStream(w, r)
		if err != nil {
			return
		}
		defer s.CloseNow()
		for {
			op, p, err := s.Read(r.Context())
			if err != nil || s.Write(r.Context(), op, p) != nil {
				return
			}
		}
	})
	return mux
}

// certificate returns a configuration with a certificate that signs itself.
func certificate() (*tls.Config, error) {
	key, err := ecdsa.GenerateKey(elliptic.P256(), crand.Reader)
	if err != nil {
		return nil, err
	}
	t := &x509.Certificate{
		SerialNumber: big.NewInt(1),
		Subject:      pkix.Name{CommonName: "soak"},
		NotBefore:    time.Now().Add(-time.Hour),
		NotAfter:     time.Now().Add(30 * 24 * time.Hour),
		IPAddresses:  []net.IP{net.IPv4(127, 0, 0, 1)},
	}
	der, err := x509.CreateCertificate(crand.Reader, t, t, &key.PublicKey, key)
	if err != nil {
		return nil, err
	}
	return &tls.Config{
		Certificates: []tls.Certificate{{Certificate: [][]byte{der}, PrivateKey: key}},
		NextProtos:   []string{"h2", "http/1.1"},
	}, nil
}
