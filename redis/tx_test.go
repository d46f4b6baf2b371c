package redis

import (
	"net"
	"testing"
	"time"
)

func TestTransaction(t *testing.T) {
	newBench(t, &Server{}).script(`
		EXEC => -ERR EXEC without MULTI
		DISCARD => -ERR DISCARD without MULTI
		MULTI => +OK
		SET k v => +QUEUED
		GET k => +QUEUED
		b: GET k => $-1
		EXEC => *2 +OK $1 v
		MULTI => +OK
		EXEC => *0
		MULTI => +OK
		SET k w => +QUEUED
		DISCARD => +OK
		GET k => $1 v
		MULTI => +OK
		MULTI => -ERR MULTI calls can not be nested
		WATCH k => -ERR WATCH inside MULTI is not allowed
		PING => +QUEUED
		UNWATCH => +QUEUED
		EXEC => *2 +PONG +OK
	`)
}

func TestTransactionErrors(t *testing.T) {
	newBench(t, &Server{}).script(`
		SET k v => +OK
		MULTI => +OK
		SET a 1 => +QUEUED
		bogus => -ERR unknown command 'bogus', with args beginning with:
		SET b 1 => +QUEUED
		EXEC => -EXECABORT Transaction discarded because of previous errors.
		EXISTS a b => :0
		MULTI => +OK
		GET => -ERR wrong number of arguments for 'get' command
		EXEC => -EXECABORT Transaction discarded because of previous errors.
		MULTI => +OK
		CLIENT bogus => -ERR unknown subcommand 'bogus'. Try CLIENT HELP.
		EXEC => -EXECABORT Transaction discarded because of previous errors.
		MULTI => +OK
		SET a 1 => +QUEUED
		INCR k => +QUEUED
		SET b 1 => +QUEUED
		EXEC => *3 +OK -ERR value is not an integer or out of range +OK
		MULTI => +OK
		PING => +QUEUED
		EXEC x => -EXECABORT Transaction discarded because of: wrong number of arguments for 'exec' command
		PING => +PONG
		EXEC => -ERR EXEC without MULTI
		MULTI => +OK
		bogus => -ERR unknown command...
		DISCARD => +OK
		MULTI => +OK
		PING => +QUEUED
		EXEC => *1 +PONG
	`)
}

func TestWatch(t *testing.T) {
	newBench(t, &Server{}).script(`
		WATCH k => +OK
		b: SET k 1 => +OK
		MULTI => +OK
		SET k 2 => +QUEUED
		EXEC => *-1
		GET k => $1 1
		MULTI => +OK
		SET k 2 => +QUEUED
		EXEC => *1 +OK

		WATCH k other => +OK
		b: GET k => $1 2
		MULTI => +OK
		EXEC => *0

		WATCH k => +OK
		SET k mine => +OK
		MULTI => +OK
		EXEC => *-1

		WATCH k => +OK
		b: SET k x => +OK
		UNWATCH => +OK
		MULTI => +OK
		EXEC => *0

		WATCH k => +OK
		b: SET k x => +OK
		DISCARD => -ERR DISCARD without MULTI
		WATCH k => +OK
		MULTI => +OK
		DISCARD => +OK
		MULTI => +OK
		EXEC => *0

		WATCH k => +OK
		b: SELECT 1 => +OK
		b: SET k x => +OK
		MULTI => +OK
		EXEC => *0

		WATCH none => +OK
		b: DEL none => :0
		MULTI => +OK
		EXEC => *0

		WATCH none k => +OK
		b: FLUSHDB => +OK
		MULTI => +OK
		EXEC => *0
		WATCH k => +OK
		b: FLUSHALL => +OK
		MULTI => +OK
		EXEC => *-1

		SET k v => +OK
		WATCH k => +OK
		EXPIRE k 100 => :1
		MULTI => +OK
		EXEC => *-1
	`)
}

func TestWatchOfWhatExpires(t *testing.T) {
	newBench(t, &Server{}).script(`
		SET k v PX 100 => +OK
		WATCH k => +OK
		+200ms
		MULTI => +OK
		PING => +QUEUED
		EXEC => *-1

		SET k v PX 100 => +OK
		WATCH k => +OK
		+200ms
		b: GET k => $-1
		MULTI => +OK
		EXEC => *-1

		SET k v PX 100 => +OK
		+200ms
		WATCH k => +OK
		b: GET k => $-1
		MULTI => +OK
		PING => +QUEUED
		EXEC => *1 +PONG

		SET k v PX 100 => +OK
		+200ms
		WATCH k => +OK
		b: SET k w => +OK
		MULTI => +OK
		EXEC => *-1

		SET k v PX 100 => +OK
		+200ms
		WATCH k => +OK
		b: FLUSHALL => +OK
		MULTI => +OK
		EXEC => *0
	`)
}

func TestWatchIsForgottenWithTheClient(t *testing.T) {
	b := newBench(t, &Server{})
	b.script(`
		WATCH k j => +OK
		b: WATCH k => +OK
		QUIT => +OK
	`)
	if got := b.s.space.dbs[0].watchers; len(got) != 1 || got["k"] == nil || got["k"].behind != nil {
		t.Errorf("watchers are left: %v", got)
	}
	b.script(`b: RESET => +RESET`)
	if got := b.s.space.dbs[0].watchers; len(got) != 0 {
		t.Errorf("watchers are left: %v", got)
	}
}

// What many clients watch costs each of them the same as what one does, also when it
// changes.
func TestManyWatchOneKey(t *testing.T) {
	b := newBench(t, &Server{})
	watchers := make([]*client, 100_000)
	for i := range watchers {
		f := &fakeConn{remote: &net.TCPAddr{IP: net.IPv4(127, 0, 0, 1)}}
		f.client = &client{server: b.s, transport: f, db: &b.s.space.dbs[0]}
		f.client.watchKey([]byte("k"))
		watchers[i] = f.client
	}
	watchers[0].unwatch() // the list's last, one in its middle, and its first
	watchers[len(watchers)/2].unwatch()
	watchers[len(watchers)-1].unwatch()
	began := time.Now()
	b.script(`SET k v => +OK`)
	if took := time.Since(began); took > 2*time.Second {
		t.Errorf("a change took %v", took)
	}
	for i, c := range watchers {
		if want := i != 0 && i != len(watchers)/2 && i != len(watchers)-1; c.dirtyCAS != want || c.watching != nil {
			t.Fatalf("client %d: told %v, want %v; watches %v", i, c.dirtyCAS, want, c.watching)
		}
	}
	if got := b.s.space.dbs[0].watchers; len(got) != 0 {
		t.Errorf("watchers are left: %v", got)
	}
}

func TestTransactionMemoryIsBounded(t *testing.T) {
	b := newBench(t, &Server{})
	b.script(`
		CONFIG SET client-query-buffer-limit 1mb => +OK
		MULTI => +OK
	`)
	f := b.connect("a")
	for i := 0; !f.closed; i++ {
		if i > 2000 {
			t.Fatal("two megabytes were queued")
		}
		b.do("a", "SET", "k", string(make([]byte, 1024)))
	}
	if len(b.s.clients.list) != 0 {
		t.Error("the client is still served")
	}
}

func TestTimeStandsStillInATransaction(t *testing.T) {
	b := newBench(t, &Server{})
	b.script(`
		SET k v PX 5 => +OK
		MULTI => +OK
		PTTL k => +QUEUED
		GET k => +QUEUED
		EXEC => *2 :5 $1 v
	`)
}
