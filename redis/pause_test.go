package redis

import (
	"context"
	"testing"
	"time"

	"github.com/rondo-go/rondo/rondotest"
)

func TestClientPause(t *testing.T) {
	newBench(t, &Server{}).script(`
		CLIENT PAUSE x => -ERR timeout is not an integer or out of range
		CLIENT PAUSE -1 => -ERR timeout is negative
		CLIENT PAUSE 1 x => -ERR CLIENT PAUSE mode must be WRITE or ALL
		CLIENT PAUSE 1 WRITE x => -ERR unknown subcommand or wrong number of arguments for 'PAUSE'. Try CLIENT HELP.
		CLIENT UNPAUSE => +OK
		CLIENT PAUSE 0 => +OK
		SET k v => +OK
		CLIENT PAUSE 1000 WRITE => +OK
		GET k => $1 v
		b: SET k w =>
		b: GET k =>
		c: MULTI => +OK
		c: SET k x =>
		d: MULTI => +OK
		d: GET k => +QUEUED
		d: EXEC => *1 $1 v
		e: PUBLISH c m =>
		f: SET k => -ERR wrong number of arguments for 'set' command
		CLIENT UNBLOCK 2 => :0
		CLIENT INFO => ...
		+999ms
		b? =>
		+1ms
		+0ms
		b? => +OK
		c? => +QUEUED
		c: EXEC => *1 +OK
		e? => :0
		GET k => $1 x
		CLIENT PAUSE 500 WRITE => +OK
		CLIENT PAUSE 1000 => +OK
		CLIENT PAUSE 1 WRITE =>
		g: PING =>
		+600ms
		g? =>
		+400ms
		+0ms
		g? => +PONG
		a? => +OK
		+1ms
		CLIENT PAUSE 1000 WRITE => +OK
		h: SET k h =>
		CLIENT UNPAUSE => +OK
		+0ms
		h? => +OK
		GET k => $1 h
		MULTI => +OK
		CLIENT PAUSE 1000 => +QUEUED
		SET k i => +QUEUED
		EXEC => *2 +OK +OK
		GET k =>
		+1000ms
		+0ms
		a? => $1 i
	`)
}

// Pipelines go on after a pause, in order, on each transport.
func TestNetworkClientPause(t *testing.T) {
	seeds(t, 20, func(t *testing.T, net *rondotest.Network, loops int) {
		s := &Server{}
		serve(t, net, loops, s)
		a, b := dial(t, net), dial(t, net)
		a.do("CLIENT PAUSE 1000 WRITE", "+OK")
		b.Send("SET k 1\r\nINCR k\r\nGET k\r\nCLIENT UNPAUSE\r\n")
		began := net.Now()
		b.expect("+OK :2 $1 2 +OK")
		if d := net.Now().Sub(began); d < 990*time.Millisecond || d > 1100*time.Millisecond {
			t.Errorf("seed %d: the pause took %v", net.Seed(), d)
		}
		c := newClient(t, net, s)
		a.do("CLIENT PAUSE 1000", "+OK")
		net.Await(func() {
			if got := ask(c, context.Background(), "GET k"); got != "2" {
				t.Errorf("seed %d: %s", net.Seed(), got)
			}
		})
		a.do("CLIENT PAUSE 1000", "+OK")
		b.request("GET k")
		net.Run()
		b.Close()
		net.Advance(2 * time.Second)
		if n := len(s.pause.waiting); n != 0 {
			t.Errorf("seed %d: %d clients wait", net.Seed(), n)
		}
	})
}
