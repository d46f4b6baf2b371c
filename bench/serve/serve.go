// Package serve holds the Go servers that the benchmark compares. For each
// library there is an echo server and, for most, a toy that knows Redis's GET
// and SET, written as the library's documentation suggests. The servers are for
// measuring only: they serve until they are killed.
package serve

import (
	"context"
	"slices"

	"github.com/lesismal/nbio"
	"github.com/panjf2000/gnet/v2"
)

// A Server serves on address, with so many event loops if the library has any. A proxy's
// address is ProxyAddress's.
// It returns only on an error.
type Server func(address string, loops int) error

// A Library is a way to write servers. To add one, add it to Libraries.
type Library struct {
	Name   string
	Module string            // its version is part of the results; "": part of Go or rondo
	Do     map[string]Server // by the family of workloads
}

// Libraries are all libraries, in the order of the tables.
var Libraries = slices.Concat(
	rondos(),
	[]Library{
		{Name: "rondo-proactor", Do: map[string]Server{"echo": proactorEcho, "completions": completions(proactorRing)}},
		{Name: "rondo-compat-gaio", Do: map[string]Server{"completions": completions(compatRing)}},
		{Name: "rondo-co", Do: map[string]Server{"echo": coroutineEcho}},
		{Name: "gnet", Module: "github.com/panjf2000/gnet/v2", Do: map[string]Server{"echo": gnetEcho(), "redis": gnetRedis, "udp": gnetUDP}},
		{Name: "nbio", Module: "github.com/lesismal/nbio", Do: map[string]Server{"echo": nbioEcho(nbio.Config{}), "redis": nbioRedis, "tls": nbioTLSEcho}},
		{Name: "gaio", Module: "github.com/xtaci/gaio", Do: map[string]Server{"echo": gaioEcho, "redis": gaioRedis, "completions": completions(peerRing)}},
		{Name: "evio", Module: "github.com/tidwall/evio", Do: map[string]Server{"echo": evioEcho, "redis": evioRedis}},
		{Name: "netpoll", Module: "github.com/cloudwego/netpoll", Do: map[string]Server{"echo": netpollEcho(nil)}},
		{Name: "redcon", Module: "github.com/tidwall/redcon", Do: map[string]Server{"redis": redconRedis}},
		{Name: "net", Do: map[string]Server{"echo": netEcho, "redis": netRedis, "tls": netTLSEcho, "udp": netUDP, "proxy": netProxy}},
	},
	httpServers(),
	webSockets(),
	// Options from the libraries' documentation, to see which help.
	[]Library{
		{Name: "gnet-edge", Do: map[string]Server{"echo": gnetEcho(gnet.WithEdgeTriggeredIO(true))}},
		{Name: "gnet-lock", Do: map[string]Server{"echo": gnetEcho(gnet.WithLockOSThread(true))}},
		{Name: "nbio-edge", Do: map[string]Server{"echo": nbioEcho(nbio.Config{EpollMod: nbio.EPOLLET})}},
		{Name: "nbio-lock", Do: map[string]Server{"echo": nbioEcho(nbio.Config{LockPoller: true})}},
		{Name: "gaio-own", Do: map[string]Server{"echo": gaioEchoOwn}},
		{Name: "netpoll-go", Do: map[string]Server{"echo": netpollEcho(func(_ context.Context, f func()) { go f() })}},
		{Name: "netpoll-inline", Do: map[string]Server{"echo": netpollEcho(func(_ context.Context, f func()) { f() })}},
	},
)
