package redis

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/rondo-go/rondo/rondotest"
)

// nobodyWaits checks that nothing is left of blocked clients.
func (b *bench) nobodyWaits() {
	b.t.Helper()
	for i := range b.s.space.dbs {
		if n := len(b.s.space.dbs[i].waiting); n > 0 {
			b.t.Errorf("clients wait for %d keys of database %d", n, i)
		}
	}
	if x := &b.s.blocking; x.count != 0 || x.timed != 0 || len(b.timers) > 0 || len(b.s.space.ready) > 0 {
		b.t.Errorf("%d clients are blocked, %d with a timeout, %d timers, %d ready keys", x.count, x.timed, len(b.timers), len(b.s.space.ready))
	}
}

func TestBlockedClientsAreServedInOrder(t *testing.T) {
	b := newBench(t, &Server{})
	b.script(`
		a: BLPOP k 0 =>
		b: BLPOP k j 0 =>
		c: BRPOP j k 0 =>
		d: RPUSH k 1 2 => :2
		a? => *2 $1 k $1 1
		b? => *2 $1 k $1 2
		c? =>
		d: RPUSH k 3 4 5 => :3
		c? => *2 $1 k $1 5
		d: LRANGE k 0 -1 => *2 $1 3 $1 4
		d: DEL k => :1
		a: BLMOVE k l LEFT RIGHT 0 =>
		b: BLMPOP 0 2 x l RIGHT COUNT 10 =>
		d: RPUSH k 1 => :1
		a? => $1 1
		b? => *2 $1 l *1 $1 1
		d: EXISTS k l => :0
	`)
	b.nobodyWaits()
	for name, conn := range b.clients {
		if want := map[string]int{"a": 2, "b": 2, "c": 1}[name]; conn.resumed != want {
			t.Errorf("client %s was resumed %d times, want %d", name, conn.resumed, want)
		}
	}
}

func TestBlockingTimeouts(t *testing.T) {
	b := newBench(t, &Server{})
	b.script(`
		a: BLPOP k 1.5 =>
		b: BLPOP k 1 =>
		c: BLPOP k 0 =>
		+999ms
		b? =>
		+1ms
		b? => *-1
		a? =>
		d: RPUSH k x => :1
		a? => *2 $1 k $1 x
		+1h
		a? =>
		a: HELLO 3 => %7...
		a: BLMOVE k l LEFT LEFT 0.25 =>
		+250ms
		a? => _
		c? =>
		c: PING =>
	`)
	b.s.clients.end((*client).close)
	b.nobodyWaits()
}

// The parts of the server that see blocked clients.
func TestBlockedClientsAreSeen(t *testing.T) {
	b := newBench(t, &Server{Timeout: 9 * time.Second})
	b.script(`
		a: CLIENT ID => :1
		a: BLPOP k 0 =>
		b: BLPOP k 100 =>
	`)
	if info := b.do("c", "INFO", "clients"); !strings.Contains(info, "blocked_clients:2") || !strings.Contains(info, "clients_in_timeout_table:1") {
		t.Error(info)
	}
	if list := b.do("c", "CLIENT", "LIST"); strings.Count(list, "flags=b ") != 2 || strings.Count(list, "cmd=blpop") != 2 {
		t.Error(list)
	}
	if got := b.clients["a"].idle; got != 0 {
		t.Errorf("a blocked client may be idle for %v", got)
	}
	b.script(`
		c: INFO commandstats => ...
		c: CLIENT UNBLOCK 99 => :0
		c: CLIENT UNBLOCK 3 => :0
		c: CLIENT UNBLOCK 1 ERROR => :1
		a? => -UNBLOCKED client unblocked via CLIENT UNBLOCK
		c: CLIENT UNBLOCK 1 ERROR => :0
		a: BLPOP k 0 =>
		c: CLIENT UNBLOCK 1 TIMEOUT => :1
		a? => *-1
		a: BLMOVE k l LEFT LEFT 0 =>
		c: CLIENT UNBLOCK 1 => :1
		a? => *-1
		a: BLPOP k 0 =>
		c: CLIENT KILL ID 1 => :1
		c: RPUSH k x => :1
		b? => *2 $1 k $1 x
		a? =>
	`)
	if got := b.clients["b"].idle; got != 9*time.Second {
		t.Errorf("a client that is blocked no more may be idle for %v", got)
	}
	b.nobodyWaits()
	blpop, blmove := b.s.commands.byName["blpop"].count, b.s.commands.byName["blmove"].count
	if blpop.calls != 3 || blpop.failed != 1 || blmove.calls != 1 {
		t.Errorf("BLPOP was called %d times, failed %d; BLMOVE was called %d times", blpop.calls, blpop.failed, blmove.calls)
	}
}

// Nothing is given to a client that is about to be cut off, or whose key has expired.
func TestBlockedClientsAreNotServed(t *testing.T) {
	b := newBench(t, &Server{})
	b.script(`
		a: BLPOP k 0 =>
		b: BLPOP k 0 =>
	`)
	b.clients["a"].client.closing = true
	b.script(`
		c: RPUSH k x => :1
		b? => *2 $1 k $1 x
		a? =>
		b: BLPOP k 0 =>
		c: MULTI => +OK
		c: RPUSH k x => +QUEUED
		c: PEXPIRE k 0 => +QUEUED
		c: EXEC => *2 :1 :1
		c: SET k string => +OK
		c: SELECT 1 => +OK
		c: RPUSH k x => :1
		c: FLUSHALL => +OK
		b? =>
	`)
	b.clients["a"].client.closing = false
}

// A client may wait for many keys, and take much at once.
func TestBlockingOnManyKeys(t *testing.T) {
	b := newBench(t, &Server{})
	keys := []string{"BLMPOP", "0", "1000"}
	for i := range 1000 {
		keys = append(keys, fmt.Sprint("k", i))
	}
	b.do("a", append(keys, "LEFT", "COUNT", "1000")...)
	push, want := []string{"RPUSH", "k999"}, "*2 $4 k999 *1000"
	for range 1000 {
		push = append(push, strings.Repeat("x", 200))
		want += " $200 " + push[2]
	}
	b.do("b", push...)
	if got := b.clients["a"].take(); got != want {
		t.Errorf("got %.100s of %d bytes, want %d", got, len(got), len(want))
	}
	b.nobodyWaits()
}

// Requests behind a blocked one wait, on whichever loop the connection is.
func TestNetworkRequestsBehindABlockedOne(t *testing.T) {
	seeds(t, 60, func(t *testing.T, net *rondotest.Network, loops int) {
		s := &Server{}
		serve(t, net, loops, s)
		a, b := dial(t, net), dial(t, net)
		a.Send("PING\r\nBLPOP k 0\r\nECHO x\r\nBLPOP k 0\r\nECHO y\r\n")
		a.expect("+PONG")
		net.Until(func() bool { return s.blocking.count == 1 })
		b.do("RPUSH k 1", ":1")
		a.expect("*2 $1 k $1 1 $1 x")
		net.Until(func() bool { return s.blocking.count == 1 })
		a.Send("ECHO z\r\nPI")
		net.Run()
		a.Send("NG\r\n")
		net.Run()
		b.do("RPUSH k 2", ":1")
		a.expect("*2 $1 k $1 2 $1 y $1 z +PONG")
		a.Send("BLPOP k 0.5\r\nPING\r\n")
		net.Advance(time.Second)
		a.expect("*-1 +PONG")
		a.request("BLPOP " + strings.Repeat("k", 100_000) + " 0.5") // is copied as it arrives
		a.Send("PING\r\n")
		net.Advance(time.Second)
		a.expect("*-1 +PONG")
	})
}

// A blocked client that goes takes nothing with it.
func TestNetworkBlockedClientGoes(t *testing.T) {
	for _, how := range []string{"CloseWrite", "Reset", "CloseWrite with input"} {
		seeds(t, 15, func(t *testing.T, net *rondotest.Network, loops int) {
			s := &Server{}
			serve(t, net, loops, s)
			a, b := dial(t, net), dial(t, net)
			a.Send("BLPOP k 0\r\n")
			net.Until(func() bool { return s.blocking.count == 1 })
			switch how {
			case "CloseWrite with input":
				a.Send("RPUSH k lost\r\n")
				a.CloseWrite()
			case "CloseWrite":
				a.CloseWrite()
			default:
				a.Reset()
			}
			net.Until(func() bool { return s.blocking.count == 0 })
			b.do("RPUSH k x", ":1")
			b.do("LRANGE k 0 -1", "*1 $1 x")
		})
	}
}

// Input behind a blocked request has the same limit as any other.
func TestNetworkBlockedClientSendsTooMuch(t *testing.T) {
	seeds(t, 6, func(t *testing.T, net *rondotest.Network, loops int) {
		s := &Server{}
		serve(t, net, loops, s)
		a, b := dial(t, net), dial(t, net)
		b.do("CONFIG SET client-query-buffer-limit 1mb", "+OK")
		a.do("PING", "+PONG")
		a.Send("BLPOP k 0\r\n")
		net.Until(func() bool { return s.blocking.count == 1 })
		for range 40 {
			a.Write([]byte(strings.Repeat("PING\r\n", 10_000))) // an error: the server has closed
		}
		net.Until(func() bool { return len(s.clients.list) == 1 })
		b.do("RPUSH k x", ":1")
	})
}
