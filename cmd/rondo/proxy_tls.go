package main

import (
	"bytes"
	"crypto/tls"
	"log/slog"
	"net"
	"net/netip"
	"os"
	"os/signal"
	"slices"
	"syscall"

	"github.com/rondo-go/rondo/filter"
	"github.com/rondo-go/rondo/proxy"
)

// checkTLS returns an error for flags of TLS that do not go together.
func (p *proxyCommand) checkTLS(authGiven bool) error {
	switch {
	case !p.on() && authGiven:
		return usagef("--tls-auth-clients needs a certificate: give it with --tls-cert")
	case !p.on() && len(p.TLSALPN) > 0:
		return usagef("--tls-alpn needs a certificate: give it with --tls-cert")
	case !p.ToTLS && (p.ToTLSCA != "" || p.ToTLSName != "" || p.ToTLSInsecure):
		return usagef("--to-tls-ca, --to-tls-name and --to-tls-insecure are for TLS: give --to-tls too")
	}
	return p.tlsFlags.check()
}

// serverTLS is the configuration that ends the clients' TLS; nil: it is not ended.
func (p *proxyCommand) serverTLS() (*tls.Config, error) {
	if !p.on() {
		return nil, nil
	}
	config, err := p.load()
	if err == nil {
		config.NextProtos = p.TLSALPN
	}
	return config, err
}

// clientTLS is the configuration that begins TLS to the targets; nil: there is none.
func (p *proxyCommand) clientTLS() (*tls.Config, error) {
	if !p.ToTLS {
		return nil, nil
	}
	config := &tls.Config{
		ServerName:         p.ToTLSName,
		InsecureSkipVerify: p.ToTLSInsecure,
		ClientSessionCache: tls.NewLRUClientSessionCache(0),
	}
	var err error
	if p.ToTLSCA != "" {
		config.RootCAs, err = loadCA(p.ToTLSCA)
	}
	return config, err
}

// keepTickets makes the new configuration keep the TLS configurations of the old one that are the
// same, and with them the keys of session tickets: so a reload costs the clients no handshakes.
func keepTickets(old, now *proxy.Config) {
	had := serverTLSOf(old)
	for _, c := range serverTLSOf(now) {
		for _, o := range had {
			if isSameTLS(*o, *c) {
				*c = *o
				break
			}
		}
	}
}

// serverTLSOf returns where a configuration has those of TLS servers.
func serverTLSOf(c *proxy.Config) (all []**tls.Config) {
	for i := range c.Listeners {
		l := &c.Listeners[i]
		if l.TLS != nil {
			all = append(all, &l.TLS)
		}
		for j := range l.Routes {
			if r := &l.Routes[j]; r.TLS != nil {
				all = append(all, &r.TLS)
			}
		}
	}
	return all
}

// isSameTLS reports whether two configurations that tlsFlags.load has made are equal. A client
// that has proved who it is to one may then resume its session with the other.
func isSameTLS(a, b *tls.Config) bool {
	same := func(x, y []byte) bool { return bytes.Equal(x, y) }
	return slices.EqualFunc(a.Certificates[0].Certificate, b.Certificates[0].Certificate, same) &&
		a.ClientAuth == b.ClientAuth && slices.Equal(a.NextProtos, b.NextProtos) &&
		(a.ClientCAs == nil) == (b.ClientCAs == nil) && (a.ClientCAs == nil || a.ClientCAs.Equal(b.ClientCAs))
}

// acceptProxy is what --accept-proxy asks for; nil: nothing.
func (p *proxyCommand) acceptProxy() (*filter.AcceptProxy, error) {
	if len(p.AcceptProxy) == 0 {
		return nil, nil
	}
	a := new(filter.AcceptProxy)
	trust, err := trusted("--accept-proxy", p.AcceptProxy)
	a.Trust = trust
	return a, err
}

// trusted returns a function that reports whether an address is in one of the networks; nil:
// all are.
func trusted(flag string, networks []string) (func(net.Addr) bool, error) {
	var all []netip.Prefix
	for _, text := range networks {
		if text == "any" {
			return nil, nil
		}
		prefix, err := netip.ParsePrefix(text)
		if ip, ipErr := netip.ParseAddr(text); ipErr == nil {
			prefix, err = ip.Prefix(ip.BitLen())
		}
		if err != nil {
			return nil, usagef("%s %s: want a network, as in 10.0.0.0/8, or an address, or any", flag, text)
		}
		all = append(all, prefix)
	}
	return func(a net.Addr) bool {
		t, ok := a.(*net.TCPAddr)
		if !ok {
			return true // who may open a unix socket is decided by its file
		}
		ip := t.AddrPort().Addr().Unmap().WithZone("")
		for _, p := range all {
			if p.Contains(ip) {
				return true
			}
		}
		return false
	}, nil
}

// reload applies the configuration again at each SIGHUP, with the present content of the
// files.
func (p *proxyCommand) reload(s *proxy.Server, hangups <-chan os.Signal, log *slog.Logger) {
	for range hangups {
		systemd.reload(func() {
			config, err := p.config()
			if err == nil {
				err = s.Apply(config)
			}
			if err == nil {
				p.serving = config
			}
			if err != nil {
				log.Error("cannot apply the new configuration: the old one goes on", "error", err)
			} else {
				log.Info("the configuration was applied again")
			}
		})
	}
}

// notifyHangup begins to catch SIGHUP.
func notifyHangup() <-chan os.Signal {
	hangups := make(chan os.Signal, 1)
	signal.Notify(hangups, syscall.SIGHUP)
	return hangups
}
