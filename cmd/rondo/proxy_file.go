package main

import (
	"crypto/tls"
	"errors"
	"fmt"
	"io/fs"
	"path/filepath"
	"strings"
	"time"

	"github.com/BurntSushi/toml"

	"github.com/rondo-go/rondo/filter"
	"github.com/rondo-go/rondo/proxy"
)

// A proxyFile is the content of --config. docs/proxy.md explains it.
type proxyFile struct {
	Listeners []fileListener `toml:"listener"`
	Pools     []filePool     `toml:"pool"`
}

type fileListener struct {
	Address      string      `toml:"address"`
	Pool         string      `toml:"pool"`
	MaxConns     int         `toml:"max-conns"`
	TLS          *fileTLS    `toml:"tls"`
	Routes       []fileRoute `toml:"route"`
	HelloTimeout duration    `toml:"hello-timeout"`
	AcceptProxy  []string    `toml:"accept-proxy"`
}

type fileRoute struct {
	Names []string `toml:"names"`
	Pool  string   `toml:"pool"`
	TLS   *fileTLS `toml:"tls"`
}

// fileTLS ends clients' TLS.
type fileTLS struct {
	Cert        string   `toml:"cert"`
	Key         string   `toml:"key"`
	CA          string   `toml:"ca"`
	AuthClients string   `toml:"auth-clients"`
	ALPN        []string `toml:"alpn"`
}

type filePool struct {
	Name           string         `toml:"name"`
	Targets        []fileTarget   `toml:"target"`
	Choose         string         `toml:"choose"`
	ConnectTimeout duration       `toml:"connect-timeout"`
	Tries          int            `toml:"tries"`
	EjectAfter     *int           `toml:"eject-after"`
	EjectTime      duration       `toml:"eject-time"`
	Resolve        *duration      `toml:"resolve"`
	SlowStart      duration       `toml:"slow-start"`
	Queue          int            `toml:"queue"`
	QueueTime      duration       `toml:"queue-time"`
	Idle           duration       `toml:"idle"`
	Limit          duration       `toml:"limit"`
	SendProxy      int            `toml:"send-proxy"`
	TLS            *fileClientTLS `toml:"tls"`
	Health         fileHealth     `toml:"health"`
}

// fileClientTLS begins TLS to targets.
type fileClientTLS struct {
	CA       string `toml:"ca"`
	Name     string `toml:"name"`
	Insecure bool   `toml:"insecure"`
	Cert     string `toml:"cert"`
	Key      string `toml:"key"`
}

type fileHealth struct {
	Check    string   `toml:"check"`
	Interval duration `toml:"interval"`
	Timeout  duration `toml:"timeout"`
	Rise     int      `toml:"rise"`
	Fall     int      `toml:"fall"`
	Path     string   `toml:"path"`
	Host     string   `toml:"host"`
	Status   int      `toml:"status"`
}

type fileTarget struct {
	Address  string `toml:"address"`
	Weight   *int   `toml:"weight"`
	MaxConns int    `toml:"max-conns"`
	Drain    bool   `toml:"drain"`
}

// readProxyFile reads --config, and the files of certificates that it names.
func readProxyFile(name string) (c proxy.Config, err error) {
	var f proxyFile
	text, err := toml.DecodeFile(name, &f)
	switch {
	case errors.As(err, new(*fs.PathError)):
		return c, fmt.Errorf("--config: %w", err)
	case err != nil:
		return c, fmt.Errorf("%s: %s", name, strings.TrimPrefix(err.Error(), "toml: "))
	}
	if unknown := text.Undecoded(); len(unknown) > 0 {
		return c, fmt.Errorf("%s: there is no setting %s", name, unknown[0])
	}
	if c, err = f.config(filepath.Dir(name)); err == nil {
		err = c.Check()
	}
	if err != nil {
		return c, fmt.Errorf("%s: %s", name, strings.TrimPrefix(inWordsOf(fileWords, err).Error(), "proxy: "))
	}
	if len(c.Listeners) == 0 {
		return c, fmt.Errorf("%s: there is no [[listener]]", name)
	}
	return c, nil
}

// config is the configuration. Names of files are relative to dir.
func (f *proxyFile) config(dir string) (c proxy.Config, err error) {
	for i := range f.Listeners {
		l, err := f.Listeners[i].listener(dir)
		if err != nil {
			return c, fmt.Errorf("listener %s: %w", f.Listeners[i].Address, err)
		}
		c.Listeners = append(c.Listeners, l)
	}
	for i := range f.Pools {
		p, err := f.Pools[i].pool(dir)
		if err != nil {
			return c, fmt.Errorf("pool %q: %w", f.Pools[i].Name, err)
		}
		c.Pools = append(c.Pools, p)
	}
	return c, nil
}

func (f *fileListener) listener(dir string) (l proxy.Listener, err error) {
	l = proxy.Listener{Pool: f.Pool, MaxConns: f.MaxConns, HelloTimeout: time.Duration(f.HelloTimeout)}
	switch {
	case f.HelloTimeout != 0 && len(f.Routes) == 0:
		return l, errors.New("hello-timeout is for routes, and there are none")
	case f.AcceptProxy != nil && len(f.AcceptProxy) == 0:
		return l, errors.New(`accept-proxy is empty: want networks, or "any"; leave it out if there are no PROXY headers`)
	}
	if l.Network, l.Address, err = parseStream("address", f.Address); err != nil {
		return l, err
	}
	if l.TLS, err = f.TLS.config(dir); err != nil {
		return l, err
	}
	for i := range f.Routes {
		r := &f.Routes[i]
		config, err := r.TLS.config(dir)
		if err != nil {
			return l, fmt.Errorf("route %s: %w", strings.Join(r.Names, ", "), err)
		}
		l.Routes = append(l.Routes, proxy.Route{Names: r.Names, Pool: r.Pool, TLS: config})
	}
	if len(f.AcceptProxy) > 0 {
		l.AcceptProxy = new(filter.AcceptProxy)
		l.AcceptProxy.Trust, err = trusted("accept-proxy", f.AcceptProxy)
	}
	return l, err
}

// config is the configuration of a TLS server; nil for a nil f.
func (f *fileTLS) config(dir string) (*tls.Config, error) {
	if f == nil {
		return nil, nil
	}
	flags := tlsFlags{TLSCert: in(dir, f.Cert), TLSKey: in(dir, f.Key), TLSCA: in(dir, f.CA), TLSAuthClients: f.AuthClients}
	if flags.TLSAuthClients == "" {
		flags.TLSAuthClients = "no"
		if f.CA != "" {
			flags.TLSAuthClients = "yes"
		}
	}
	_, known := clientAuths[flags.TLSAuthClients]
	switch {
	case !flags.on():
		return nil, errors.New("tls: there is no cert")
	case !known:
		return nil, fmt.Errorf("tls: auth-clients is %q: want yes, no or optional", f.AuthClients)
	case f.CA == "" && flags.TLSAuthClients != "no":
		return nil, fmt.Errorf("tls: auth-clients is %q, and there is no ca that signs the clients' certificates", f.AuthClients)
	}
	config, err := flags.load()
	if err != nil {
		return nil, fmt.Errorf("tls: %w", err)
	}
	config.NextProtos = f.ALPN
	return config, nil
}

// in returns the name of a file that is relative to dir.
func in(dir, name string) string {
	if name == "" || filepath.IsAbs(name) {
		return name
	}
	return filepath.Join(dir, name)
}

func (f *filePool) pool(dir string) (p proxy.Pool, err error) {
	p = proxy.Pool{
		Name:           f.Name,
		ConnectTimeout: time.Duration(f.ConnectTimeout),
		Tries:          f.Tries,
		EjectTime:      time.Duration(f.EjectTime),
		Idle:           time.Duration(f.Idle),
		Limit:          time.Duration(f.Limit),
		SendProxy:      f.SendProxy,
		SlowStart:      time.Duration(f.SlowStart),
		Queue:          f.Queue,
		QueueTime:      time.Duration(f.QueueTime),
	}
	switch {
	case f.QueueTime != 0 && f.Queue == 0:
		return p, errors.New("queue-time is for clients that wait, and there is no queue")
	case f.EjectTime != 0 && f.EjectAfter != nil && *f.EjectAfter <= 0:
		return p, errors.New("eject-time is for targets that fail, and eject-after is 0")
	}
	ok := true
	if p.Balance, ok = chooses[f.Choose]; !ok && f.Choose != "" {
		return p, fmt.Errorf("choose is %q: want roundrobin, leastconns or sourcehash", f.Choose)
	}
	if p.Check, err = f.Health.check(); err != nil {
		return p, err
	}
	if f.EjectAfter != nil {
		if p.EjectAfter = *f.EjectAfter; p.EjectAfter <= 0 {
			p.EjectAfter = -1
		}
	}
	if f.Resolve != nil {
		if p.Resolve = time.Duration(*f.Resolve); p.Resolve == 0 {
			p.Resolve = -1
		}
	}
	if f.TLS != nil {
		flags := tlsClientFlags{TLS: true, TLSCA: in(dir, f.TLS.CA), TLSName: f.TLS.Name, Insecure: f.TLS.Insecure,
			TLSCert: in(dir, f.TLS.Cert), TLSKey: in(dir, f.TLS.Key)}
		// Any host will do here: package proxy takes that of each target.
		if p.TLS, err = flags.config("host"); err != nil {
			return p, fmt.Errorf("tls: %w", err)
		}
		p.TLS.ServerName = f.TLS.Name
		p.TLS.ClientSessionCache = tls.NewLRUClientSessionCache(0)
	}
	for _, target := range f.Targets {
		t := proxy.Target{MaxConns: target.MaxConns, Drain: target.Drain}
		if target.Weight != nil {
			if t.Weight = *target.Weight; t.Weight == 0 {
				return p, fmt.Errorf("target %s: weight is 0: want 1 or more; drain = true gives a target no connections", target.Address)
			}
		}
		if t.Network, t.Address, err = parseStream("address", target.Address); err != nil {
			return p, fmt.Errorf("target: %w", err)
		}
		p.Targets = append(p.Targets, t)
	}
	return p, nil
}

func (f *fileHealth) check() (proxy.Check, error) {
	kind, ok := checkKinds[f.Check]
	switch {
	case !ok && f.Check != "":
		return proxy.Check{}, fmt.Errorf("health: check is %q: want off, tcp, tls, http or redis", f.Check)
	case f.Check == "" && *f != fileHealth{}:
		return proxy.Check{}, errors.New("health: there is no check: want tcp, tls, http or redis")
	case f.Check != "http" && f.Check != "off" && (f.Path != "" || f.Host != "" || f.Status != 0):
		return proxy.Check{}, fmt.Errorf("health: path, host and status are for requests, and check is %q: want http", f.Check)
	}
	return proxy.Check{
		Kind:     kind,
		Interval: time.Duration(f.Interval),
		Timeout:  time.Duration(f.Timeout),
		Rise:     f.Rise,
		Fall:     f.Fall,
		Path:     f.Path,
		Host:     f.Host,
		Status:   f.Status,
	}, nil
}
