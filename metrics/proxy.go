package metrics

import (
	"github.com/prometheus/client_golang/prometheus"

	"github.com/rondo-go/rondo/proxy"
)

// Proxy returns a collector of a proxy's counters, for each listener, pool and target. Those of
// connections are complete once the connections have ended. What Server.Apply removes is no
// longer shown. Register the server's engine beside it, by Engine.
func Proxy(s *proxy.Server) prometheus.Collector { return proxies{s} }

type proxies struct{ *proxy.Server }

var (
	listenerOpen     = gauge("rondo_proxy_open_clients", "Clients of a listener now.", "listener")
	listenerAccepted = counter("rondo_proxy_accepted_clients_total", "Clients that a listener accepted.", "listener")
	listenerRefused  = counter("rondo_proxy_refused_clients_total", "Clients above a listener's limit, or with no way to a pool.", "listener")

	poolRetries = counter("rondo_proxy_pool_retries_total", "Dials of another target after a failure.", "pool")
	poolRefused = counter("rondo_proxy_pool_refused_clients_total", "Clients for which there was no target.", "pool")
	poolWaiting = gauge("rondo_proxy_pool_waiting_clients", "Clients in the queue now.", "pool")
	poolWaited  = counter("rondo_proxy_pool_queued_clients_total", "Clients that have been in the queue.", "pool")
	poolInVain  = counter("rondo_proxy_pool_expired_clients_total", "Clients in the queue for which no target came in time.", "pool")

	targetState        = gauge("rondo_proxy_target_state", "1 for the state that a target has, 0 for the others.", "pool", "target", "name", "state")
	targetOpen         = gauge("rondo_proxy_target_open_connections", "Connections to a target now, with those being dialed.", "pool", "target", "name")
	targetConns        = counter("rondo_proxy_target_connections_total", "Connections that a target has accepted.", "pool", "target", "name")
	targetDialsFailed  = counter("rondo_proxy_target_failed_dials_total", "Dials of a target that failed.", "pool", "target", "name")
	targetBroken       = counter("rondo_proxy_target_broken_connections_total", "Connections that a target broke before it sent anything.", "pool", "target", "name")
	targetEjections    = counter("rondo_proxy_target_ejections_total", "Times that a target got no clients for a while, because it failed.", "pool", "target", "name")
	targetSent         = counter("rondo_proxy_target_sent_bytes_total", "Bytes from clients to a target, of connections that have ended.", "pool", "target", "name")
	targetReceived     = counter("rondo_proxy_target_received_bytes_total", "Bytes from a target to clients, of connections that have ended.", "pool", "target", "name")
	targetChecks       = counter("rondo_proxy_target_checks_total", "Health checks of a target.", "pool", "target", "name")
	targetChecksFailed = counter("rondo_proxy_target_failed_checks_total", "Health checks of a target that failed.", "pool", "target", "name")
)

// targetStates are the values of proxy.TargetStats.State.
var targetStates = []string{"up", "down", "ejected", "draining", "removed"}

func (proxies) Describe(to chan<- *prometheus.Desc) {
	describe(to,
		listenerOpen, listenerAccepted, listenerRefused,
		poolRetries, poolRefused, poolWaiting, poolWaited, poolInVain,
		targetState, targetOpen, targetConns, targetDialsFailed, targetBroken, targetEjections,
		targetSent, targetReceived, targetChecks, targetChecksFailed)
}

func (p proxies) Collect(to chan<- prometheus.Metric) { sendProxy(to, p.Stats()) }

func sendProxy(to chan<- prometheus.Metric, stats proxy.Stats) {
	for _, l := range stats.Listeners {
		name := l.Network + "://" + l.Address
		listenerOpen.send(to, float64(l.Open), name)
		listenerAccepted.send(to, float64(l.Accepted), name)
		listenerRefused.send(to, float64(l.Refused), name)
	}
	for _, p := range stats.Pools {
		poolRetries.send(to, float64(p.Retries), p.Name)
		poolRefused.send(to, float64(p.Refused), p.Name)
		poolWaiting.send(to, float64(p.Waiting), p.Name)
		poolWaited.send(to, float64(p.Waited), p.Name)
		poolInVain.send(to, float64(p.InVain), p.Name)
		for _, t := range distinct(p.Targets) {
			sendTarget(to, p.Name, t)
		}
	}
}

func sendTarget(to chan<- prometheus.Metric, pool string, t proxy.TargetStats) {
	labels := []string{pool, t.Network + "://" + t.Address, t.Name}
	for _, state := range targetStates {
		has := 0.0
		if t.State == state {
			has = 1
		}
		targetState.send(to, has, append(labels, state)...)
	}
	targetOpen.send(to, float64(t.Open), labels...)
	targetConns.send(to, float64(t.Conns), labels...)
	targetDialsFailed.send(to, float64(t.DialsFailed), labels...)
	targetBroken.send(to, float64(t.Broken), labels...)
	targetEjections.send(to, float64(t.Ejections), labels...)
	targetSent.send(to, float64(t.FromClients), labels...)
	targetReceived.send(to, float64(t.FromTarget), labels...)
	targetChecks.send(to, float64(t.Checks), labels...)
	targetChecksFailed.send(to, float64(t.ChecksFailed), labels...)
}

// distinct adds the counts of targets with the same labels: an address may be in a pool twice,
// and an old target with the address of a new one may have its last connections. The first
// one's state counts.
func distinct(targets []proxy.TargetStats) (all []proxy.TargetStats) {
	type key struct{ network, address, name string }
	at := make(map[key]int)
	for _, t := range targets {
		k := key{t.Network, t.Address, t.Name}
		i, ok := at[k]
		if !ok {
			at[k] = len(all)
			all = append(all, t)
			continue
		}
		sum := &all[i]
		sum.Open += t.Open
		sum.Conns += t.Conns
		sum.DialsFailed += t.DialsFailed
		sum.Broken += t.Broken
		sum.Ejections += t.Ejections
		sum.FromClients += t.FromClients
		sum.FromTarget += t.FromTarget
		sum.Checks += t.Checks
		sum.ChecksFailed += t.ChecksFailed
	}
	return all
}
