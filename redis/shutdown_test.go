package redis

import (
	"context"
	"io"
	"testing"
	"time"

	"github.com/rondo-go/rondo"
	"github.com/rondo-go/rondo/resp"
	"github.com/rondo-go/rondo/rondotest"
)

func TestShutdownCommand(t *testing.T) {
	newBench(t, &Server{}).script(`
		SHUTDOWN => -ERR SHUTDOWN is not available: the program decides when the server ends
		SHUTDOWN SAVE => -ERR SHUTDOWN is not available: the program decides when the server ends
		SHUTDOWN NOSAVE x => -ERR syntax error
	`)
	asked := make(chan struct{}, 2)
	b := newBench(t, &Server{OnShutdown: func() { asked <- struct{}{} }})
	b.script(`
		SHUTDOWN x => -ERR syntax error
		SHUTDOWN SAVE NOSAVE => -ERR syntax error
		SHUTDOWN ABORT NOW => -ERR syntax error
		SHUTDOWN FORCE ABORT => -ERR syntax error
		SHUTDOWN ABORT => -ERR No shutdown in progress.
		SHUTDOWN SAVE => -ERR Errors trying to SHUTDOWN. Check logs.
		SHUTDOWN SAVE NOW => -ERR Errors trying to SHUTDOWN. Check logs.
		MULTI => +OK
		SHUTDOWN NOSAVE => -ERR Command not allowed inside a transaction
		EXEC => -EXECABORT Transaction discarded because of previous errors.
		EVAL "return redis.call('SHUTDOWN')" 0 => -ERR This Redis command is not allowed from script script: ...
		ACL SETUSER u on nopass +@all -@dangerous => +OK
		u: AUTH u x => +OK
		u: SHUTDOWN => -NOPERM this user has no permissions to run the 'shutdown' command
		COMMAND INFO SHUTDOWN => *1 *10 $8 shutdown :-1 *6 +admin +noscript +loading +stale +no_multi +allow_busy :0 :0 :0 *3 +@admin +@slow +@dangerous *0 *0 *0
	`)
	if len(asked) > 0 {
		t.Fatal("OnShutdown was called")
	}
	b.script(`
		SHUTDOWN now NoSave =>
		b: SHUTDOWN SAVE FORCE =>
		c: SHUTDOWN ABORT => -ERR The program has been told to end the server, which can't be aborted
		c: CLIENT UNBLOCK 1 => :0
		c: GET k => $-1
		a? =>
		b? =>
	`)
	<-asked
	if b.s.blocking.count != 2 || len(asked) > 0 {
		t.Errorf("%d clients are blocked, want 2; OnShutdown was called again: %v", b.s.blocking.count, len(asked) > 0)
	}
	b.s.clients.end((*client).close)
	if a := b.connect("a"); !a.closed || len(a.out) > 0 || b.s.blocking.count != 0 {
		t.Errorf("the client is closed: %v, with the reply %q; %d are blocked", a.closed, a.out, b.s.blocking.count)
	}
}

// While a script is busy only SHUTDOWN NOSAVE ends the server, which ends the script.
func TestShutdownCommandBesideABusyScript(t *testing.T) {
	asked := make(chan struct{}, 1)
	b := newBench(t, &Server{OnShutdown: func() { asked <- struct{}{} }})
	b.s.config.busyReply = 1
	b.do("a", "EVAL", "redis.call('SET', 'k', 'v') "+endless, "0")
	const busy = "-BUSY Redis is busy running a script. You can only call SCRIPT KILL or SHUTDOWN NOSAVE."
	b.script(`
		b: SHUTDOWN => ` + busy + `
		b: SHUTDOWN SAVE => ` + busy + `
		b: SHUTDOWN FORCE NOW => ` + busy + `
		b: SHUTDOWN ABORT => -ERR No shutdown in progress.
		b: SHUTDOWN NOSAVE =>
	`)
	<-asked
	b.s.clients.end((*client).close)
	b.s.scripts.end()
	if b.s.scripts.busy || b.s.blocking.count != 0 {
		t.Errorf("the script runs: %v; %d clients are blocked", b.s.scripts.busy, b.s.blocking.count)
	}
}

// A client that calls SHUTDOWN gets the replies to its earlier commands, and its connection's end.
func TestNetworkShutdownCommand(t *testing.T) {
	seeds(t, 20, func(t *testing.T, net *rondotest.Network, loops int) {
		asked := make(chan struct{}, 1)
		s := &Server{OnShutdown: func() { asked <- struct{}{} }}
		serve(t, net, loops, s)
		c, blocked, idle := dial(t, net), dial(t, net), dial(t, net)
		blocked.request("BLPOP list 0")
		idle.do("PING", "+PONG")
		var requests []byte
		for _, r := range [][]string{{"SET", "k", "v"}, {"SHUTDOWN"}, {"GET", "k"}} {
			requests = resp.AppendRequest(requests, r...)
		}
		c.Send(string(requests))
		net.Until(func() bool { return s.blocking.count == 2 })
		<-asked
		var err error
		net.Await(func() { err = s.Shutdown(net.Timeout(time.Minute)) })
		if err != nil {
			t.Errorf("seed %d: Shutdown: %v", net.Seed(), err)
		}
		for p, want := range map[peer]string{c: "+OK\r\n", blocked: "", idle: ""} {
			if got, err := io.ReadAll(p); err != nil || string(got) != want {
				t.Errorf("seed %d: the client gets %q, %v, want %q", net.Seed(), got, err, want)
			}
		}
	})
}

// Within the program SHUTDOWN waits, too, unless it is called on the loop.
func TestClientShutdown(t *testing.T) {
	seeds(t, 4, func(t *testing.T, net *rondotest.Network, loops int) {
		asked := make(chan struct{}, 1)
		s := &Server{OnShutdown: func() { asked <- struct{}{} }}
		serve(t, net, loops, s)
		c, onLoop := newClient(t, net, s), newClient(t, net, s)
		var replies []string
		net.Await(func() {
			done := make(chan struct{})
			s.loop.Post(func() {
				replies = append(replies, ask(onLoop, context.Background(), "SHUTDOWN"), ask(onLoop, context.Background(), "SHUTDOWN NOW"))
				close(done)
			})
			<-done
		})
		<-asked
		ended := make(chan string, 1)
		go func() { ended <- ask(c, context.Background(), "SHUTDOWN NOSAVE") }()
		net.Until(func() bool { return s.blocking.count == 1 })
		net.Await(func() { s.Close() })
		replies = append(replies, <-ended)
		for i, want := range []string{"-ERR SHUTDOWN without NOW or ABORT isn't allowed for DENY BLOCKING client", "OK", rondo.ErrClosed.Error()} {
			if replies[i] != want {
				t.Errorf("seed %d: reply %d is %q, want %q", net.Seed(), i, replies[i], want)
			}
		}
	})
}
