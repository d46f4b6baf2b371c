package proxy

import (
	"crypto/tls"
	"errors"
	"fmt"
	"net"
	"slices"
	"time"

	"github.com/rondo-go/rondo"
	"github.com/rondo-go/rondo/filter"
)

// Defaults of fields of a Pool and a Listener.
const (
	DefaultConnectTimeout = 5 * time.Second
	DefaultTries          = 3
	DefaultEjectAfter     = 3
	DefaultEjectTime      = 10 * time.Second
	DefaultHelloTimeout   = 10 * time.Second
)

// maxWeight is the largest Target.Weight. Larger ones would only make sums overflow.
const maxWeight = 1000

// A Config says where a Server listens, and to which targets it connects.
type Config struct {
	Listeners []Listener
	Pools     []Pool
}

// A Listener is an address at which clients connect.
type Listener struct {
	// Network and Address are as for rondo.Engine.Listen.
	Network, Address string
	// Socket has the options of the socket and of accepted connections. Apply does not
	// change those of a Listener that it keeps.
	Socket rondo.SocketOptions
	// Pool is the name of the pool that serves the clients. "": the only one; but with
	// Routes, clients that no Route has are refused.
	Pool string
	// TLS ends the clients' TLS, as a server with this configuration. nil: the clients' bytes
	// pass as they are. It does not hold for Routes.
	TLS *tls.Config
	// Routes choose by the name that clients send in their TLS handshakes. The Listener reads
	// the beginning of the handshake for that, and consumes nothing. It then refuses clients
	// that begin with anything else.
	Routes []Route
	// HelloTimeout is how long that beginning may take to arrive. 0: DefaultHelloTimeout.
	HelloTimeout time.Duration
	// AcceptProxy expects a PROXY header from each client, before anything else. Its addresses
	// are then those of the client. nil: none.
	AcceptProxy *filter.AcceptProxy
	// MaxConns is how many clients the Listener serves at once; it resets more. 0: no limit.
	// The Engine's limits hold for all Listeners together.
	MaxConns int
}

func (l *Listener) key() string { return l.Network + "://" + l.Address }

// A Balance is how a Pool chooses the target of a connection.
type Balance uint8

const (
	// RoundRobin chooses the targets in turn, as often as their weights say. Each loop
	// counts for itself.
	RoundRobin Balance = iota
	// LeastConns chooses the target with the fewest connections for its weight.
	LeastConns
	// SourceHash chooses the same target for the same client address, in every process and
	// after every restart. An IPv6 client counts by its network of 64 bits. When a target
	// comes or goes, only the clients of that target change. Clients of unix sockets have
	// no address, and so all have one target.
	SourceHash
)

// A Pool is a group of targets that serve the same clients.
type Pool struct {
	// Name names the pool in Listeners, in the log and in Stats.
	Name string
	// Targets are the servers.
	Targets []Target
	// Balance chooses among them.
	Balance Balance

	// ConnectTimeout is how long a target may take to accept a connection. 0:
	// DefaultConnectTimeout.
	ConnectTimeout time.Duration
	// Tries is how many targets are tried for a client, each one once, until one accepts.
	// Then the client is reset. Bytes that the client has sent meanwhile are not lost. 0:
	// DefaultTries.
	Tries int
	// EjectAfter is after how many failures in a row a target gets no clients for EjectTime,
	// as long as other targets can serve them. A failure is a dial that failed, or a target
	// that broke a connection before it sent anything. Failures more than EjectTime apart do
	// not add up. 0: DefaultEjectAfter. Negative: never.
	EjectAfter int
	// EjectTime is described at EjectAfter. 0: DefaultEjectTime.
	EjectTime time.Duration
	// TLS begins TLS to the targets, as a client with this configuration. Without a ServerName
	// it is the host of the target's address. nil: the clients' bytes pass as they are.
	TLS *tls.Config
	// SendProxy sends the targets a PROXY header of version 1 or 2, with the client's
	// addresses. Version 2 also has the name that the client sent by TLS. 0: none. A client of
	// a unix socket has no addresses that version 1 could tell.
	SendProxy int
	// Check tells which targets can serve. Without one, only EjectAfter keeps clients from
	// targets that fail.
	Check Check

	// SlowStart is how long a target that comes back, or that Apply or a name adds, gets fewer
	// clients than its weight says: a tenth at first. 0: no time.
	SlowStart time.Duration
	// Queue is how many clients may wait when no target can serve them, because of MaxConns or
	// since all are down. 0: none: they are refused.
	Queue int
	// QueueTime is how long a client may wait. 0: DefaultQueueTime.
	QueueTime time.Duration

	// Resolve is how often the names of Targets are looked up. Each address of a name is a
	// target by itself, with the weight and the limits of the Target. If a name has addresses
	// of IPv4 and of IPv6, the former are taken; Network "tcp6" asks for the latter. A name
	// that cannot be looked up keeps its addresses. 0: DefaultResolve. Negative: only Apply
	// looks them up.
	Resolve time.Duration

	// Idle ends a connection in which no byte has moved for that time. 0: never. While
	// nothing is read from a peer, because the other one does not read, a reset is not
	// noticed: only Idle ends such connections.
	Idle time.Duration
	// Limit ends a connection that time after its target has accepted it. 0: never.
	Limit time.Duration
}

// A Target is a server to which clients are passed on.
type Target struct {
	// Network and Address are as for rondo.Loop.Dial.
	Network, Address string
	// Weight is the target's share of the connections, to the weights of the others. 0: 1.
	// The most is 1000.
	Weight int
	// MaxConns is how many connections the target has at once. 0: no limit.
	MaxConns int
	// Drain gives the target no further connections. Those that it has go on.
	Drain bool
	// Socket has the options of connections to the target. DialTimeout is ignored: see
	// Pool.ConnectTimeout.
	Socket rondo.SocketOptions
}

func (t *Target) key() string { return t.Network + "://" + t.Address }

// host returns the host of the target's address; "" if it has none.
func (t *Target) host() string {
	if t.Network == "unix" {
		return ""
	}
	host, _, _ := net.SplitHostPort(t.Address)
	return host
}

// streams are the networks of listeners and targets.
var streams = []string{"tcp", "tcp4", "tcp6", "unix"}

// Check returns an error for a value without meaning, as Apply does. It opens nothing.
func (c *Config) Check() error {
	pools := make(map[string]bool)
	for i := range c.Pools {
		p := &c.Pools[i]
		if err := p.check(); err != nil {
			return fmt.Errorf("proxy: pool %q: %w", p.Name, err)
		}
		if pools[p.Name] {
			return fmt.Errorf("proxy: there are two pools %q: want a name for each", p.Name)
		}
		pools[p.Name] = true
	}
	keys := make(map[string]bool)
	for i := range c.Listeners {
		l := &c.Listeners[i]
		if err := l.check(pools); err != nil {
			return fmt.Errorf("proxy: listener %s: %w", l.key(), err)
		}
		if keys[l.key()] && !l.anyPort() {
			return fmt.Errorf("proxy: there are two listeners %s: want one", l.key())
		}
		keys[l.key()] = true
	}
	return nil
}

// anyPort reports whether the system chooses the port.
func (l *Listener) anyPort() bool {
	_, port, err := net.SplitHostPort(l.Address)
	return l.Network != "unix" && err == nil && port == "0"
}

func (l *Listener) check(pools map[string]bool) error {
	if err := checkNetwork(l.Network); err != nil {
		return err
	}
	if l.MaxConns < 0 {
		return fmt.Errorf("Listener.MaxConns is %d: want 0, for no limit, or more", l.MaxConns)
	}
	if l.HelloTimeout < 0 {
		return fmt.Errorf("Listener.HelloTimeout is %v: want 0, for the default, or more", l.HelloTimeout)
	}
	if l.AcceptProxy != nil && l.AcceptProxy.Timeout < 0 {
		return fmt.Errorf("AcceptProxy.Timeout is %v: want 0, for the default, or more", l.AcceptProxy.Timeout)
	}
	if err := checkTLS(l.TLS); err != nil {
		return fmt.Errorf("Listener.%w", err)
	}
	names := make(map[string]bool)
	for i := range l.Routes {
		if err := l.Routes[i].check(pools, names); err != nil {
			return err
		}
	}
	if l.Pool == "" && len(l.Routes) > 0 {
		if l.TLS != nil {
			return errors.New("Listener.TLS is for clients that no Route has, and they have no Pool: name one, or set Route.TLS")
		}
		return nil
	}
	return checkPool(l.Pool, pools)
}

// checkPool returns an error if name is no pool's.
func checkPool(name string, pools map[string]bool) error {
	switch {
	case pools[name], name == "" && len(pools) == 1:
		return nil
	case name == "":
		return fmt.Errorf("there are %d pools: want the name of one", len(pools))
	}
	return fmt.Errorf("there is no pool %q", name)
}

func checkNetwork(network string) error {
	if !slices.Contains(streams, network) {
		return fmt.Errorf("the network is %q: want tcp, tcp4, tcp6 or unix", network)
	}
	return nil
}

func (p *Pool) check() error {
	for _, field := range []struct {
		name  string
		value time.Duration
		zero  string
	}{
		{"Pool.ConnectTimeout", p.ConnectTimeout, "the default"},
		{"Pool.EjectTime", p.EjectTime, "the default"},
		{"Pool.SlowStart", p.SlowStart, "no time"},
		{"Pool.QueueTime", p.QueueTime, "the default"},
		{"Pool.Idle", p.Idle, "no limit"},
		{"Pool.Limit", p.Limit, "no limit"},
	} {
		if field.value < 0 {
			return fmt.Errorf("%s is %v: want 0, for %s, or more", field.name, field.value, field.zero)
		}
	}
	switch {
	case len(p.Targets) == 0:
		return errors.New("it has no targets")
	case p.Balance > SourceHash:
		return fmt.Errorf("Pool.Balance is %d: want RoundRobin, LeastConns or SourceHash", p.Balance)
	case p.SendProxy < 0 || p.SendProxy > 2:
		return fmt.Errorf("Pool.SendProxy is %d: want 1 or 2 for that version, or 0 for no header", p.SendProxy)
	case p.Queue < 0:
		return fmt.Errorf("Pool.Queue is %d: want 0, for no queue, or more", p.Queue)
	case p.Tries < 0:
		return fmt.Errorf("Pool.Tries is %d: want 0, for the default, or more", p.Tries)
	}
	if err := p.Check.check(); err != nil {
		return err
	}
	keys := make(map[string]bool)
	for i := range p.Targets {
		t := &p.Targets[i]
		if err := t.check(p.TLS); err != nil {
			return fmt.Errorf("target %s: %w", t.key(), err)
		}
		if keys[t.key()] {
			return fmt.Errorf("target %s is there twice: give it a weight instead", t.key())
		}
		keys[t.key()] = true
	}
	return nil
}

func (t *Target) check(secure *tls.Config) error {
	if err := checkNetwork(t.Network); err != nil {
		return err
	}
	if t.Network == "unix" && t.Address == "" {
		return errors.New("there is no path")
	}
	if t.Network != "unix" {
		if _, port, err := net.SplitHostPort(t.Address); err != nil || port == "" {
			return errors.New("want host:port")
		}
	}
	switch {
	case secure != nil && secure.ServerName == "" && !secure.InsecureSkipVerify && t.host() == "":
		return errors.New("its address has no name for the certificate: want Pool.TLS.ServerName")
	case t.Weight < 0 || t.Weight > maxWeight:
		return fmt.Errorf("Target.Weight is %d: want 0, for 1, to %d", t.Weight, maxWeight)
	case t.MaxConns < 0:
		return fmt.Errorf("Target.MaxConns is %d: want 0, for no limit, or more", t.MaxConns)
	}
	return nil
}

// clone copies what Apply keeps.
func (c *Config) clone() Config {
	n := Config{Listeners: slices.Clone(c.Listeners), Pools: slices.Clone(c.Pools)}
	for i := range n.Listeners {
		l := &n.Listeners[i]
		l.Routes = slices.Clone(l.Routes)
		for j := range l.Routes {
			l.Routes[j].Names = slices.Clone(l.Routes[j].Names)
		}
	}
	for i := range n.Pools {
		n.Pools[i].Targets = slices.Clone(n.Pools[i].Targets)
	}
	return n
}

func orDefault[T int | time.Duration](v, d T) T {
	if v == 0 {
		return d
	}
	return v
}
