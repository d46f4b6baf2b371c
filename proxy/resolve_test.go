package proxy_test

import (
	"context"
	"errors"
	"net/netip"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/rondo-go/rondo"
	"github.com/rondo-go/rondo/proxy"
	"github.com/rondo-go/rondo/rondotest"
)

// names is a Resolver whose answers change.
type names struct {
	mu   sync.Mutex
	all  map[string]string // addresses, separated by spaces; "": none can be looked up
	asks int
}

func (n *names) LookupNetIP(_ context.Context, network, host string) (ips []netip.Addr, err error) {
	n.mu.Lock()
	defer n.mu.Unlock()
	n.asks++
	for _, text := range strings.Fields(n.all[host]) {
		if ip := netip.MustParseAddr(text); network == "ip" || network == "ip6" == ip.Is6() {
			ips = append(ips, ip)
		}
	}
	if n.all[host] == "panic" {
		panic("no names today")
	}
	if len(ips) == 0 {
		return nil, errors.New("no such name")
	}
	return ips, nil
}

func (n *names) set(host, ips string) {
	n.mu.Lock()
	defer n.mu.Unlock()
	n.all[host] = ips
}

// addresses returns the addresses of the only pool's targets, without those that have left.
func (w *world) addresses() string {
	var all []string
	for _, t := range w.pool().Targets {
		if t.State != "removed" {
			all = append(all, t.Address)
		}
	}
	return strings.Join(all, " ")
}

// Names are looked up again: addresses come and go, and connections go on.
func TestResolve(t *testing.T) {
	w := newWorld(t, rondotest.Options{})
	n := &names{all: map[string]string{"web.test": "127.0.0.1 ::1"}}
	w.proxy.Engine.Resolver = n
	w.serve(2)
	web := proxy.Target{Network: "tcp", Address: "web.test:2"}
	p := proxy.Pool{Name: "web", Targets: []proxy.Target{web}, Resolve: time.Minute, Check: proxy.Check{Kind: proxy.CheckTCP}}
	w.apply(p)
	c := w.client(2)
	if got := w.addresses(); got != "127.0.0.1:2" || w.pool().Targets[0].Name != "web.test:2" {
		t.Errorf("the addresses are %s, want only IPv4's", got)
	}
	n.set("web.test", "127.0.0.3 127.0.0.2 127.0.0.2")
	w.Advance(50 * time.Second)
	if got := w.addresses(); got != "127.0.0.1:2" {
		t.Errorf("before Resolve the addresses are %s", got)
	}
	w.Advance(15 * time.Second)
	if got := w.addresses(); got != "127.0.0.2:2 127.0.0.3:2" {
		t.Errorf("after Resolve the addresses are %s", got)
	}
	n.set("web.test", "")
	w.Advance(2 * time.Minute)
	n.set("web.test", "panic")
	w.Advance(2 * time.Minute)
	if got := w.addresses(); got != "127.0.0.2:2 127.0.0.3:2" {
		t.Errorf("without an answer the addresses are %s", got)
	}
	n.set("web.test", "127.0.0.1")
	w.Advance(10 * time.Second) // after a failure it is soon asked again
	if got := w.addresses(); got != "127.0.0.1:2" {
		t.Errorf("later the addresses are %s", got)
	}
	c.Send("still there")
	c.Expect("still there")
	c.Close()
	w.client(2).Close()
	if log := w.events.String(); !strings.Contains(log, "addresses of a target have changed") || !strings.Contains(log, "cannot look up the name") {
		t.Errorf("the log is %s", log)
	}
	// The same address twice is one target; a name that has none yet comes later.
	n.set("later.test", "")
	p.Targets = []proxy.Target{web, {Network: "tcp", Address: "127.0.0.1:2"}, {Network: "tcp", Address: "later.test:2"}}
	w.apply(p)
	if got := w.addresses(); got != "127.0.0.1:2" {
		t.Errorf("the addresses are %s", got)
	}
	n.set("later.test", "127.0.0.9")
	w.Advance(time.Minute)
	if got := w.addresses(); got != "127.0.0.1:2 127.0.0.9:2" {
		t.Errorf("the addresses are %s", got)
	}
	p.Targets = to(2)
	w.apply(p)
	w.Advance(2 * time.Minute)
	before := n.asks
	w.Advance(time.Hour)
	if n.asks != before {
		t.Error("names are looked up that no target has")
	}
	p.Targets, p.Resolve = []proxy.Target{web}, -1
	w.apply(p)
	w.Advance(time.Hour)
	if n.asks != before+1 {
		t.Errorf("%d lookups, want one", n.asks-before)
	}
	w.Await(func() { w.proxy.Close() })
	w.Advance(time.Minute)
	w.idle()
}

// slow is a Resolver that waits, once it is asked to.
type slow struct {
	names
	wait chan struct{} // nil: it does not
}

func (s *slow) LookupNetIP(ctx context.Context, network, host string) ([]netip.Addr, error) {
	s.mu.Lock()
	wait := s.wait
	s.mu.Unlock()
	if wait != nil {
		<-wait
	}
	return s.names.LookupNetIP(ctx, network, host)
}

// A lookup ends after its pool has gone: nobody checks the addresses that it finds.
func TestResolveOfPoolThatIsGone(t *testing.T) {
	w := newWorld(t, rondotest.Options{})
	r := &slow{names: names{all: map[string]string{"web.test": "127.0.0.1"}}}
	w.proxy.Engine.Resolver = r
	w.serve(2)
	checks := 0
	w.Listen(new(rondo.Engine), "tcp", "127.0.0.2:2", func(*rondo.Conn) rondo.Handler { checks++; return nil })
	w.apply(proxy.Pool{Name: "a", Targets: []proxy.Target{{Network: "tcp", Address: "web.test:2"}}, Resolve: time.Minute, Check: proxy.Check{Kind: proxy.CheckTCP}})
	r.set("web.test", "127.0.0.2")
	release := make(chan struct{})
	r.mu.Lock()
	r.wait = release
	r.mu.Unlock()
	w.Advance(61 * time.Second)
	w.apply(proxy.Pool{Name: "b", Targets: to(2)})
	close(release)
	for range 50 {
		time.Sleep(time.Millisecond)
		w.Run()
	}
	if w.Advance(time.Minute); checks > 0 {
		t.Errorf("%d checks", checks)
	}
	w.idle()
}
