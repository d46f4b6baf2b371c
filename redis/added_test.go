package redis

import (
	"fmt"
	"maps"
	"strings"
	"testing"

	"github.com/rondo-go/rondo/redis/store"
	"github.com/rondo-go/rondo/resp"
)

// addedBench is a bench with some commands of a program.
func addedBench(t *testing.T) *bench {
	s := &Server{Commands: []Command{
		{Name: "take", Arity: 3, Flags: "write denyoom fast", FirstKey: 1, LastKey: 1, Summary: "Takes.", Run: func(c *Call, args [][]byte) {
			v := c.Do("DECRBY", string(args[1]), string(args[2]))
			if v.Kind == resp.Error {
				c.Error(string(v.Str))
				return
			}
			c.Int(v.Int)
		}},
		{Name: "pairs", Arity: -3, Flags: "readonly", FirstKey: 1, LastKey: -1, KeyStep: 2, Run: func(c *Call, args [][]byte) {
			c.Map(1)
			c.BulkString("n")
			c.Int(int64(len(args)))
		}},
		{Name: "say", Arity: 2, Run: func(c *Call, args [][]byte) {
			c.Array(2)
			c.Int(c.Do("PUBLISH", "c", string(args[1])).Int)
			c.BulkString("end")
		}},
		{Name: "run", Arity: -2, Run: func(c *Call, args [][]byte) {
			words := make([]string, len(args)-1)
			for i := range words {
				words[i] = string(args[i+1])
			}
			v := c.Do(words...)
			c.BulkString(show(v))
		}},
		{Name: "silent", Arity: 1, Run: func(*Call, [][]byte) {}},
		{Name: "adds", Arity: 2, Flags: "write", FirstKey: 1, LastKey: 1, Run: func(c *Call, args [][]byte) {
			c.Do("RPUSH", string(args[1]), "x")
			panic("broken")
		}},
		{Name: "breaks", Arity: 1, Run: func(*Call, [][]byte) { panic("broken") }},
	}}
	b := newBench(t, s)
	if err := s.addCommands(); err != nil {
		t.Fatal(err)
	}
	return b
}

func TestAddedCommands(t *testing.T) {
	addedBench(t).script(`
		SET k 5 => +OK
		TAKE k 2 => :3
		take k => -ERR wrong number of arguments for 'take' command
		TAKE k x => -ERR value is not an integer or out of range
		PAIRS a 1 b 2 => *2 $1 n :5
		COMMAND INFO take => *1 *10 $4 take :3 *3 +write +denyoom +fast :1 :1 :1 *2 +@write +@fast *0 *1 *6 $5 flags *3 +RW +access +update $12 begin_search *4 $4 type $5 index $4 spec *2 $5 index :1 $9 find_keys *4 $4 type $5 range $4 spec *6 $7 lastkey :0 $7 keystep :1 $5 limit :0 *0
		COMMAND GETKEYS PAIRS a 1 b 2 => *2 $1 a $1 b
		COMMAND LIST FILTERBY PATTERN tak* => *1 $4 take
		COMMAND DOCS take => *2 $4 take *4 $7 summary $6 Takes. $5 group $6 module
		WATCH k => +OK
		MULTI => +OK
		TAKE k 1 => +QUEUED
		take k => -ERR wrong number of arguments for 'take' command
		EXEC => -EXECABORT Transaction discarded because of previous errors.
		WATCH k => +OK
		b: TAKE k 1 => :2
		MULTI => +OK
		TAKE k 1 => +QUEUED
		EXEC => *-1
		MULTI => +OK
		TAKE k 1 => +QUEUED
		TAKE k x => +QUEUED
		SAY hi => +QUEUED
		EXEC => *3 :1 -ERR value is not an integer or out of range *2 :0 $3 end
		RUN GET k => $1 1
		RUN SELECT 1 => $2 OK
		GET k => $1 1
		RUN BLPOP none 0 => $4 null
		RUN nope => $...
		RUN MULTI => $58 -ERR 'multi' concerns a connection: a command can't run it
		RUN RUN RUN GET k => $1 1
		SILENT => -ERR the command 'silent' has not replied
		CONFIG SET maxmemory 1 => +OK
		TAKE k 1 => -OOM command not allowed when used memory > 'maxmemory'.
		PAIRS a 1 => *2 $1 n :3
		CONFIG SET maxmemory 0 => +OK
		HELLO 3 => ...
		PAIRS a 1 => %1 $1 n :3
		SUBSCRIBE c => >3 $9 subscribe $1 c :1
		SAY hi => *2 :1 $3 end >3 $7 message $1 c $2 hi
		b: BLPOP l 0 =>
		RUN RPUSH l x => $1 1
		b? => *2 $1 l $1 x
	`)
}

func TestAddedCommandThatCallsItself(t *testing.T) {
	var s Server
	depth := 0
	s.Commands = []Command{{Name: "deep", Arity: 1, Run: func(c *Call, _ [][]byte) {
		depth++
		if v := c.Do("DEEP"); v.Kind == resp.Error {
			c.Error(string(v.Str))
			return
		}
		c.Int(1)
	}}}
	b := newBench(t, &s)
	if err := s.addCommands(); err != nil {
		t.Fatal(err)
	}
	if got := b.do("a", "DEEP"); got != "-ERR too many commands run within each other" || depth != maxDepth+1 {
		t.Errorf("%s at depth %d", got, depth)
	}
}

func TestAddedCommandPanics(t *testing.T) {
	b := addedBench(t)
	func() {
		defer func() { recover() }()
		b.do("a", "BREAKS")
	}()
	if b.clients["a"].aborted == nil {
		t.Error("the client goes on")
	}
	func() {
		defer func() { recover() }()
		b.do("b", "RUN", "BREAKS")
	}()
	if b.clients["b"].aborted == nil {
		t.Error("the client of the outer command goes on")
	}
	b.script(`c: PING => +PONG`)
}

// Clients that wait for what a command has added get it, though the command panics.
func TestPanicsServeBlockedClients(t *testing.T) {
	b := addedBench(t)
	b.script(`b: BLPOP k 0 =>`)
	panics(func() { b.do("a", "ADDS", "k") })
	b.script(`
		b? => *2 $1 k $1 x
		c: EXISTS k => :0
	`)
}

// A panic while a blocked client is served ends that one, and the client whose command it
// was; others get what they wait for.
func TestPanicsOfBlockedClients(t *testing.T) {
	b := addedBench(t)
	b.script(`
		b: BLPOP k 0 =>
		c: BLPOP l 0 =>
		a: MULTI => +OK
		a: RPUSH k x => +QUEUED
		a: RPUSH l y => +QUEUED
	`)
	b.clients["b"].client.wait.serve = func(*client, []byte, store.Item) bool { panic("broken") }
	panics(func() { b.do("a", "EXEC") })
	for _, name := range []string{"a", "b"} {
		if b.clients[name].aborted == nil {
			t.Errorf("client %s goes on", name)
		}
	}
	b.script(`
		c? => *2 $1 l $1 y
		d: LRANGE k 0 -1 => *1 $1 x
	`)
}

func panics(f func()) {
	defer func() { recover() }()
	f()
}

func TestAddedCommandsAreChecked(t *testing.T) {
	run := func(*Call, [][]byte) {}
	for _, c := range []struct {
		cmd  Command
		want string
	}{
		{Command{Arity: 1, Run: run}, "Name is"},
		{Command{Name: "Big", Arity: 1, Run: run}, "Name is"},
		{Command{Name: "a b", Arity: 1, Run: run}, "Name is"},
		{Command{Name: "a|b", Arity: 1, Run: run}, "Name is"},
		{Command{Name: "x", Arity: 1}, "Run of"},
		{Command{Name: "x", Run: run}, "Arity of"},
		{Command{Name: "x", Arity: 1, FirstKey: 2, LastKey: 1, Run: run}, "keys of"},
		{Command{Name: "x", Arity: 1, LastKey: -2, Run: run}, "keys of"},
		{Command{Name: "x", Arity: 1, Flags: "write bogus", Run: run}, `has "bogus"`},
		{Command{Name: "get", Arity: 1, Run: run}, "another command"},
	} {
		s := Server{Commands: []Command{c.cmd}}
		if _, err := s.NewClient(); err == nil || !strings.Contains(err.Error(), c.want) {
			t.Errorf("%+v: %v, want %q", c.cmd, err, c.want)
		}
		s.Close()
	}
}

// A client that chooses the codes of errors cannot make the server count them all.
func TestErrorCodesAreLimited(t *testing.T) {
	s := &Server{Commands: []Command{{Name: "fail", Arity: 2, Run: func(c *Call, args [][]byte) { c.Error(string(args[1]) + " of the program") }}}}
	b := newBench(t, s)
	if err := s.addCommands(); err != nil {
		t.Fatal(err)
	}
	for i := range 300 {
		b.do("a", "FAIL", fmt.Sprintf("CODE%d", i))
	}
	b.do("a", "FAIL", "CODE7")
	got := b.do("a", "INFO", "errorstats")
	for _, want := range []string{"errorstat_CODE7:count=2 ", "errorstat_ERRORSTATS_OVERFLOW:count=172"} {
		if !strings.Contains(got+" ", want) {
			t.Errorf("INFO errorstats has no %q: %s", want, got)
		}
	}
	if n := strings.Count(got, "errorstat_"); n != maxCodes+1 {
		t.Errorf("%d codes, want %d and one for the others", n, maxCodes)
	}
}

// A client that chooses the codes of errors cannot spoil names of INFO, nor keep long texts in
// the server.
func TestErrorCodesAreSafe(t *testing.T) {
	s := &Server{Commands: []Command{{Name: "fail", Arity: 2, Run: func(c *Call, args [][]byte) { c.Error(string(args[1])) }}}}
	b := newBench(t, s)
	if err := s.addCommands(); err != nil {
		t.Fatal(err)
	}
	long := strings.Repeat("x", 31)
	for _, text := range []string{"A:#1 x", "word", long + " x", long[1:] + " y"} {
		b.do("a", "FAIL", text)
	}
	want := map[string]int64{"A:#1": 1, "ERR": 2, long[1:]: 1}
	if !maps.Equal(s.stats.errors, want) {
		t.Errorf("the codes are %q, want %q", s.stats.errors, want)
	}
	if got := b.do("a", "INFO", "errorstats"); !strings.Contains(got, "errorstat_A__1:count=1") {
		t.Errorf("INFO errorstats is %s", got)
	}
}
