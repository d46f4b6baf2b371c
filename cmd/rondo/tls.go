package main

import (
	"cmp"
	"crypto/tls"
	"crypto/x509"
	"fmt"
	"log/slog"
	"os"
	"os/signal"
	"sync/atomic"
	"syscall"

	"github.com/rondo-go/rondo"
	"github.com/rondo-go/rondo/rtls"
)

// tlsFlags are the TLS flags of all servers. They correspond to redis.conf's
// tls-cert-file, tls-key-file, tls-ca-cert-file and tls-auth-clients.
type tlsFlags struct {
	TLSCert        string `name:"tls-cert" help:"Serve TLS 1.2 and 1.3 on all TCP addresses, with the certificate in this file (PEM), followed by those up to its authority. SIGHUP reloads the files; existing connections are not affected." placeholder:"FILE"`
	TLSKey         string `name:"tls-key" help:"The certificate's key (PEM). Default: in the certificate's file." placeholder:"FILE"`
	TLSCA          string `name:"tls-ca" help:"Certificates of the authorities that may sign clients' certificates (PEM)." placeholder:"FILE"`
	TLSAuthClients string `name:"tls-auth-clients" help:"Whether clients need a certificate: yes, no (the server asks for none) or optional (a client's certificate must be valid)." enum:"yes,no,optional" default:"${authclients}" placeholder:"WHETHER"`

	tlsMin, tlsMax uint16 // versions; 0: crypto/tls's
}

var clientAuths = map[string]tls.ClientAuthType{
	"yes":      tls.RequireAndVerifyClientCert,
	"no":       tls.NoClientCert,
	"optional": tls.VerifyClientCertIfGiven,
}

// on reports whether TLS is on.
func (f *tlsFlags) on() bool { return f.TLSCert != "" }

// check returns an error for a meaningless combination of flags.
func (f *tlsFlags) check() error {
	switch {
	case !f.on() && (f.TLSKey != "" || f.TLSCA != ""):
		return usagef("--tls-key and --tls-ca need a certificate: give it with --tls-cert")
	case f.on() && f.TLSCA == "" && f.TLSAuthClients != "no":
		return usagef("--tls-auth-clients %s needs the clients' authorities: give them with --tls-ca, or set --tls-auth-clients no", f.TLSAuthClients)
	}
	return nil
}

// load reads the files.
func (f *tlsFlags) load() (*tls.Config, error) {
	key := f.TLSKey
	if key == "" {
		key = f.TLSCert
	}
	cert, err := tls.LoadX509KeyPair(f.TLSCert, key)
	if err != nil {
		return nil, fmt.Errorf("--tls-cert and --tls-key: %w", err)
	}
	config := &tls.Config{Certificates: []tls.Certificate{cert}, ClientAuth: clientAuths[f.TLSAuthClients],
		MinVersion: f.tlsMin, MaxVersion: f.tlsMax}
	if f.TLSCA != "" && config.ClientAuth != tls.NoClientCert {
		if config.ClientCAs, err = loadCA(f.TLSCA); err != nil {
			return nil, err
		}
	}
	return config, nil
}

func loadCA(file string) (*x509.CertPool, error) {
	text, err := os.ReadFile(file)
	if err != nil {
		return nil, fmt.Errorf("--tls-ca: %w", err)
	}
	pool := x509.NewCertPool()
	if !pool.AppendCertsFromPEM(text) {
		return nil, fmt.Errorf("--tls-ca: %s contains no certificate: want PEM, as in -----BEGIN CERTIFICATE-----", file)
	}
	return pool, nil
}

// filters returns the filters of connections to TCP addresses: none, or TLS
// with the files' current content, which offers the protocols by ALPN. From now
// on SIGHUP reloads the files.
func (f *tlsFlags) filters(log *slog.Logger, protocols ...string) ([]rondo.FilterOpenFunc, error) {
	if err := f.check(); err != nil || !f.on() {
		return nil, err
	}
	load := func() (*tls.Config, error) {
		config, err := f.load()
		if err == nil {
			config.NextProtos = protocols
		}
		return config, err
	}
	first, err := load()
	if err != nil {
		return nil, err
	}
	var current atomic.Pointer[tls.Config]
	current.Store(first)
	hangups := make(chan os.Signal, 1)
	signal.Notify(hangups, syscall.SIGHUP)
	go func() {
		for range hangups {
			systemd.reload(func() {
				if config, err := load(); err != nil {
					log.Error("cannot load the TLS files: keeping the old certificate", "error", err)
				} else {
					current.Store(config)
					log.Info("loaded the TLS files: new connections get the new certificate", "subject", config.Certificates[0].Leaf.Subject, "until", config.Certificates[0].Leaf.NotAfter)
				}
			})
		}
	}()
	config := &tls.Config{GetConfigForClient: func(*tls.ClientHelloInfo) (*tls.Config, error) { return current.Load(), nil }}
	return []rondo.FilterOpenFunc{rtls.Server(config)}, nil
}

// filtersFor returns the filters of a network's connections. As in Redis, unix
// sockets have none.
func filtersFor(network string, filters []rondo.FilterOpenFunc) []rondo.FilterOpenFunc {
	if network == "unix" {
		return nil
	}
	return filters
}

// logFailures makes the engine log, at level debug, why handshakes fail.
func logFailures(e *rondo.Engine, log *slog.Logger) {
	e.Trace = &rondo.Trace{FilterFailed: func(c *rondo.Conn, _ rondo.Filter, err error) {
		log.Debug("TLS connection failed", "remote", c.RemoteAddr(), "error", err)
	}}
}

// tlsClientFlags are the TLS flags of loads.
type tlsClientFlags struct {
	TLS      bool   `name:"tls" help:"Connect with TLS."`
	TLSCA    string `name:"tls-ca" help:"Certificates of the authorities that may sign the server's certificate (PEM). Default: the system's." placeholder:"FILE"`
	TLSCert  string `name:"tls-cert" help:"Certificate to show to the server (PEM)." placeholder:"FILE"`
	TLSKey   string `name:"tls-key" help:"Its key (PEM). Default: in the certificate's file." placeholder:"FILE"`
	TLSName  string `name:"tls-name" help:"Name that the server's certificate must be for. Default: the host of the address." placeholder:"NAME"`
	Insecure bool   `help:"Do not verify the server's certificate."`
}

// config returns the TLS configuration for connections to host. It returns nil if
// --tls is off.
func (f *tlsClientFlags) config(host string) (*tls.Config, error) {
	if !f.TLS {
		if f.TLSCA != "" || f.TLSCert != "" || f.TLSKey != "" || f.TLSName != "" || f.Insecure {
			return nil, usagef("--tls-ca, --tls-cert, --tls-key, --tls-name and --insecure are for TLS: give --tls too")
		}
		return nil, nil
	}
	config := &tls.Config{ServerName: cmp.Or(f.TLSName, host), InsecureSkipVerify: f.Insecure}
	if config.ServerName == "" && !f.Insecure {
		return nil, usagef("--tls needs the name in the server's certificate, and the address has none: give it with --tls-name, or set --insecure")
	}
	if f.TLSCA != "" {
		var err error
		if config.RootCAs, err = loadCA(f.TLSCA); err != nil {
			return nil, err
		}
	}
	if f.TLSCert != "" || f.TLSKey != "" {
		files := tlsFlags{TLSCert: f.TLSCert, TLSKey: f.TLSKey, TLSAuthClients: "no"}
		if err := files.check(); err != nil {
			return nil, err
		}
		mine, err := files.load()
		if err != nil {
			return nil, err
		}
		config.Certificates = mine.Certificates
	}
	return config, nil
}
