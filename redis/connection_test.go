package redis

import (
	"log/slog"
	"net"
	"strings"
	"testing"
	"time"
)

func TestConnection(t *testing.T) {
	newBench(t, &Server{}).script(`
		PING => +PONG
		PING "a b" => $3 a b
		PING a b => -ERR wrong number of arguments for 'ping' command
		ECHO x => $1 x
		ECHO => -ERR wrong number of arguments for 'echo' command
		bogus => -ERR unknown command 'bogus', with args beginning with:
		bogus a "b c" => -ERR unknown command 'bogus', with args beginning with: 'a' 'b c'
		"b\r\nb" "x\ny" => -ERR unknown command 'b  b', with args beginning with: 'x y'
		CLIENT => -ERR wrong number of arguments for 'client' command
		CONFIG nope x => -ERR unknown subcommand 'nope'. Try CONFIG HELP.
		AUTH x => -ERR AUTH <password> called without any password configured for the default user. Are you sure your configuration is correct?
		AUTH default x => +OK
		AUTH other x => -WRONGPASS invalid username-password pair or user is disabled.
		AUTH a b c => -ERR syntax error
		HELLO => *14 $6 server $5 redis $7 version $6 7.0.15 $5 proto :2 $2 id :1 $4 mode $10 standalone $4 role $6 master $7 modules *0
		HELLO 3 => %7 $6 server $5 redis $7 version $6 7.0.15 $5 proto :3 $2 id :1 $4 mode $10 standalone $4 role $6 master $7 modules *0
		GET none => _
		HELLO 2 => *14...
		GET none => $-1
		HELLO 1 => -NOPROTO unsupported protocol version
		HELLO 4 => -NOPROTO unsupported protocol version
		HELLO x => -ERR Protocol version is not an integer or out of range
		HELLO 3 bogus => -ERR Syntax error in HELLO option 'bogus'
		HELLO 3 SETNAME => -ERR Syntax error in HELLO option 'SETNAME'
		HELLO 3 SETNAME "a b" => -ERR Client names cannot contain spaces, newlines or special characters.
		HELLO 3 AUTH default => -ERR Syntax error in HELLO option 'AUTH'
		HELLO 3 AUTH other x => -WRONGPASS invalid username-password pair or user is disabled.
		GET none => $-1
		HELLO 3 SETNAME me AUTH default x => %7...
		CLIENT GETNAME => $2 me
		RESET => +RESET
		CLIENT GETNAME => $-1
	`)
}

func TestLongUnknownCommandIsCut(t *testing.T) {
	b := newBench(t, &Server{})
	long := strings.Repeat("x", 300)
	want := "-ERR unknown command '" + long[:128] + "', with args beginning with: '" + long[:128] + "'"
	if got := b.do("a", long, long, long); got != want {
		t.Errorf("got %s", got)
	}
	want = "-ERR unknown command 'c', with args beginning with: '" + long[:100] + "' '" + long[:25] + "'"
	if got := b.do("a", "c", long[:100], long, "y"); got != want {
		t.Errorf("got %s", got)
	}
}

func TestPassword(t *testing.T) {
	b := newBench(t, &Server{Password: "secret"})
	b.script(`
		PING => -NOAUTH Authentication required.
		GET => -ERR wrong number of arguments for 'get' command
		bogus => -ERR unknown command 'bogus', with args beginning with:
		HELLO 3 => -NOAUTH HELLO must be called with the client already authenticated, otherwise the HELLO AUTH <user> <pass> option can be used to authenticate the client and select the RESP protocol version at the same time
		AUTH wrong => -WRONGPASS invalid username-password pair or user is disabled.
		AUTH other secret => -WRONGPASS invalid username-password pair or user is disabled.
		MULTI => -NOAUTH Authentication required.
		AUTH secret => +OK
		PING => +PONG
		RESET => +RESET
		PING => -NOAUTH Authentication required.
		AUTH default secret => +OK
		b: HELLO 3 AUTH default secret => %7...
		b: PING => +PONG
		c: QUIT => +OK
		d: PING => -NOAUTH Authentication required.
		CONFIG SET requirepass "" => +OK
		d: PING => +PONG
		e: PING => +PONG
		CONFIG SET requirepass new => +OK
		e: PING => +PONG
		f: PING => -NOAUTH Authentication required.
		f: AUTH new => +OK
	`)
}

func TestQuitDropsWhatFollows(t *testing.T) {
	b := newBench(t, &Server{})
	f := b.connect("a")
	b.send(f, []byte("PING\r\nQUIT\r\nSET k v\r\n"))
	if got := f.take(); got != "+PONG +OK" || !f.closed || b.s.space.dbs[0].len() != 0 {
		t.Errorf("got %q, closed %v", got, f.closed)
	}
}

func TestHTTPIsCutOff(t *testing.T) {
	for _, request := range []string{"POST / HTTP/1.1\r\n", "Host: localhost\r\n"} {
		b := newBench(t, &Server{})
		var log strings.Builder
		b.s.Logger = slog.New(slog.NewTextHandler(&log, nil))
		f := b.connect("a")
		b.send(f, []byte(request+"SET k v\r\n"))
		if got := f.take(); got != "" || !f.closed || b.s.space.dbs[0].len() != 0 {
			t.Errorf("%q: got %q, closed %v", request, got, f.closed)
		}
		if want := "client=" + f.remote.String(); !strings.Contains(log.String(), want) {
			t.Errorf("%q: the log is %q, want %q in it", request, log.String(), want)
		}
	}
}

func TestProtocolErrorsClose(t *testing.T) {
	for _, c := range []struct{ in, want string }{
		{"*1\r\n+PING\r\n", "-ERR Protocol error: expected '$', got '+'"},
		{"*x\r\n", "-ERR Protocol error: invalid multibulk length"},
		{"*1\r\n$-5\r\n", "-ERR Protocol error: invalid bulk length"},
		{"PING\r\n*1\r\n$600000000\r\n", "+PONG -ERR Protocol error: invalid bulk length"},
		{"SET k \"v\r\nPING\r\n", "-ERR Protocol error: unbalanced quotes in request"},
	} {
		b := newBench(t, &Server{})
		f := b.connect("a")
		n := b.send(f, []byte(c.in))
		if got := f.take(); got != c.want || n != len(c.in) || !f.closed {
			t.Errorf("%q: got %q, %d bytes taken, closed %v", c.in, got, n, f.closed)
		}
	}
}

func TestUnauthenticatedRequestsAreSmall(t *testing.T) {
	for _, c := range []struct{ in, want string }{
		{"*11\r\n", "-ERR Protocol error: unauthenticated multibulk length"},
		{"*2\r\n$4\r\nAUTH\r\n$20000\r\n", "-ERR Protocol error: unauthenticated bulk length"},
	} {
		b := newBench(t, &Server{Password: "secret"})
		f := b.connect("a")
		b.send(f, []byte(c.in))
		if got := f.take(); got != c.want || !f.closed {
			t.Errorf("%q: got %q, closed %v", c.in, got, f.closed)
		}
	}
	// After AUTH in the same bytes, the limits no longer apply.
	b := newBench(t, &Server{Password: "secret"})
	f := b.connect("a")
	long := strings.Repeat("x", 20000)
	b.send(f, []byte("AUTH secret\r\n*2\r\n$4\r\nECHO\r\n$20000\r\n"+long+"\r\n"))
	if got := f.take(); got != "+OK $20000 "+long {
		t.Errorf("got %.50q", got)
	}
}

func TestInputIsBounded(t *testing.T) {
	b := newBench(t, &Server{})
	b.script(`CONFIG SET client-query-buffer-limit 1mb => +OK`)
	f := b.connect("a")
	b.send(f, []byte("*2\r\n$4\r\nECHO\r\n$2000000\r\n"))
	if !f.closed {
		t.Error("a client that announces too much is not closed")
	}
}

func TestMaxClients(t *testing.T) {
	b := newBench(t, &Server{MaxClients: 2})
	b.connect("a")
	b.connect("b")
	f := b.connect("c")
	if got := f.take(); got != "-ERR max number of clients reached" || !f.closed {
		t.Errorf("the third client got %q, closed %v", got, f.closed)
	}
	b.script(`
		a: QUIT => +OK
		d: PING => +PONG
		d: CONFIG SET maxclients 3 => +OK
		e: PING => +PONG
		e: INFO clients => $...
	`)
	if b.s.stats.rejected != 1 || len(b.s.clients.list) != 3 {
		t.Errorf("%d rejected, %d clients", b.s.stats.rejected, len(b.s.clients.list))
	}
}

func TestProtectedMode(t *testing.T) {
	stranger := &net.TCPAddr{IP: net.IPv4(192, 0, 2, 1), Port: 1}
	for _, c := range []struct {
		what   string
		server *Server
		peer   net.Addr
		served bool
	}{
		{"another host", &Server{}, stranger, false},
		{"another host, password", &Server{Password: "x"}, stranger, true},
		{"another host, protected mode off", &Server{NoProtectedMode: true}, stranger, true},
		{"this host", &Server{}, &net.TCPAddr{IP: net.IPv4(127, 0, 0, 1)}, true},
		{"this host, IPv6", &Server{}, &net.TCPAddr{IP: net.IPv6loopback}, true},
		{"unix socket", &Server{}, &net.UnixAddr{Net: "unix"}, true},
	} {
		b := newBench(t, c.server)
		f := &fakeConn{remote: c.peer}
		b.s.clients.admit(f)
		if got := f.take(); (got == "") != c.served || f.closed == c.served {
			t.Errorf("%s: got %q, closed %v", c.what, got, f.closed)
		} else if !c.served && !strings.HasPrefix(got, "-DENIED Redis is running in protected mode because") {
			t.Errorf("%s: got %q", c.what, got)
		}
	}
}

func TestSubscribersMayBeIdle(t *testing.T) {
	b := newBench(t, &Server{Timeout: 5 * time.Second})
	f := b.connect("a")
	step := func(request string, want time.Duration) {
		t.Helper()
		b.script(request + " => ...")
		if f.idle != want {
			t.Errorf("after %s: %v, want %v", request, f.idle, want)
		}
	}
	step("PING", 5*time.Second)
	step("SUBSCRIBE c", 0)
	step("UNSUBSCRIBE", 5*time.Second)
	step("CONFIG SET timeout 7", 7*time.Second)
	step("PSUBSCRIBE c", 0)
	step("RESET", 7*time.Second)
	step("CONFIG SET timeout 0", 0)
}

func TestClientCommands(t *testing.T) {
	b := newBench(t, &Server{})
	b.script(`
		CLIENT ID => :1
		CLIENT GETNAME => $-1
		CLIENT SETNAME me => +OK
		CLIENT GETNAME => $2 me
		CLIENT SETNAME "a b" => -ERR Client names cannot contain spaces, newlines or special characters.
		CLIENT SETNAME "" => +OK
		CLIENT GETNAME => $-1
		CLIENT SETINFO lib-name x => +OK
		CLIENT SETINFO LIB-VER 1.0 => +OK
		CLIENT SETINFO lib-name "a b" => -ERR lib-name cannot contain spaces, newlines or special characters.
		CLIENT SETINFO bogus x => -ERR Unrecognized option 'bogus'
		CLIENT NO-EVICT on => +OK
		CLIENT NO-EVICT off => +OK
		CLIENT NO-EVICT bogus => -ERR syntax error
		CLIENT REPLY bogus => -ERR syntax error
		CLIENT LIST bogus => -ERR syntax error
		CLIENT LIST TYPE bogus => -ERR Unknown client type 'bogus'
		CLIENT LIST ID x => -ERR Invalid client ID
		CLIENT LIST ID 99 => $0
		CLIENT LIST TYPE replica => $0
		CLIENT LIST TYPE master => $0
		CLIENT HELP => *...
		b: PING => +PONG
		b: CLIENT ID => :2
	`)
	b.now = b.now.Add(3 * time.Second)
	got := b.do("a", "CLIENT", "LIST")
	for _, want := range []string{
		"id=1 addr=127.0.0.1:50000 laddr=127.0.0.1:6379 fd=0 name= age=3 idle=0 flags=N db=0 sub=0 psub=0 ssub=0 multi=-1 ",
		" qbuf=26 qbuf-free=0 argv-mem=0 multi-mem=0 rbs=0 rbp=0 obl=0 oll=0 omem=0 tot-mem=1024 events=r cmd=client|list user=default redir=-1 resp=2 lib-name=x lib-ver=1.0\n",
		"\nid=2 addr=127.0.0.1:50001 laddr=127.0.0.1:6379 fd=0 name= age=3 idle=3 ",
	} {
		if !strings.Contains(got, want) {
			t.Errorf("CLIENT LIST is %s\nwithout %s", got, want)
		}
	}
	b.script(`
		b: MULTI => +OK
		b: SELECT 3 => +QUEUED
		b: CLIENT INFO => +QUEUED
	`)
	if got := b.do("b", "EXEC"); !strings.Contains(got, "flags=x db=3 sub=0 psub=0 ssub=0 multi=2 ") {
		t.Errorf("CLIENT INFO within a transaction: %s", got)
	}
}

func TestClientKill(t *testing.T) {
	b := newBench(t, &Server{})
	for _, name := range []string{"a", "b", "c", "d", "e"} {
		b.script(name + `: PING => +PONG`)
	}
	b.script(`
		CLIENT KILL => -ERR wrong number of arguments for 'client|kill' command
		CLIENT KILL 127.0.0.1:9 => -ERR No such client
		CLIENT KILL "" => -ERR No such client
		CLIENT KILL ADDR "" => :0
		CLIENT KILL LADDR "" SKIPME no => :0
		CLIENT KILL USER "" => -ERR No such user ''
		CLIENT KILL ID 0 => -ERR client-id should be greater than 0
		CLIENT KILL ID x => -ERR client-id should be greater than 0
		CLIENT KILL ID 99 => :0
		CLIENT KILL ID 1 => :0
		CLIENT KILL ID => -ERR No such client
		CLIENT KILL ID 1 TYPE => -ERR syntax error
		CLIENT KILL USER nobody ID 1 => -ERR No such user 'nobody'
		CLIENT KILL TYPE bogus ID 1 => -ERR Unknown client type 'bogus'
		CLIENT KILL SKIPME maybe ID 1 => -ERR syntax error
		CLIENT KILL 127.0.0.1:50001 => +OK
		CLIENT KILL ID 3 => :1
		d: SUBSCRIBE x => ...
		CLIENT KILL TYPE pubsub => :1
		CLIENT KILL TYPE replica => :0
		CLIENT KILL LADDR 127.0.0.1:6379 => :1
		CLIENT KILL ID 1 SKIPME no => :1
	`)
	for name, f := range b.clients {
		if !f.closed {
			t.Errorf("client %s is not closed", name)
		}
	}
}

func TestClientReply(t *testing.T) {
	newBench(t, &Server{}).script(`
		CLIENT REPLY SKIP =>
		PING =>
		PING => +PONG
		CLIENT REPLY OFF =>
		PING =>
		bogus =>
		GET =>
		SET k v =>
		CLIENT REPLY SKIP =>
		PING =>
		CLIENT REPLY ON => +OK
		GET k => $1 v
		CLIENT REPLY ON => +OK
		HELLO 3 => %7...
		CLIENT REPLY OFF =>
		SUBSCRIBE c => >3 $9 subscribe $1 c :1
		PUBLISH c x => >3 $7 message $1 c $1 x
		CLIENT REPLY ON => +OK
		CLIENT REPLY SKIP =>
		PUBLISH c y => >3 $7 message $1 c $1 y
		PING => +PONG
	`)
}

func TestClientReplyOffOfLongReplies(t *testing.T) {
	b := newBench(t, &Server{})
	b.do("a", "SET", "k", strings.Repeat("x", 2*spillSize))
	b.script(`
		CLIENT REPLY OFF =>
		GET k =>
		MGET k k k =>
		CLIENT REPLY ON => +OK
	`)
}
