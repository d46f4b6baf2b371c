package redis

import (
	"os"
	"path/filepath"
	"runtime"
	"strings"
	"testing"

	"github.com/rondo-go/rondo"
	"github.com/rondo-go/rondo/redis/acl"
)

func TestUsers(t *testing.T) {
	newBench(t, &Server{}).script(`
		ACL WHOAMI => $7 default
		AUTH pw => -ERR AUTH <password> called without any password configured for the default user. Are you sure your configuration is correct?
		AUTH nobody pw => -WRONGPASS invalid username-password pair or user is disabled.
		ACL SETUSER alice >pw +get => +OK
		AUTH alice pw => -WRONGPASS invalid username-password pair or user is disabled.
		ACL SETUSER alice on => +OK
		AUTH alice no => -WRONGPASS invalid username-password pair or user is disabled.
		AUTH alice pw => +OK
		ACL WHOAMI => -NOPERM this user has no permissions to run the 'acl|whoami' command
		GET k => -NOPERM this user has no permissions to access one of the keys used as arguments
		SET k v => -NOPERM this user has no permissions to run the 'set' command
		b: ACL SETUSER alice ~k +acl|whoami => +OK
		GET k => $-1
		ACL WHOAMI => $5 alice
		HELLO 3 AUTH default x => %7...
		ACL USERS => *2 $5 alice $7 default
		ACL LIST => *2 $119 user alice on #30c952fab122c3f9759f02a6d95c3758b246b4fee239957b2d4fee46e26170c4 ~k resetchannels -@all +get +acl|whoami $34 user default on nopass ~* &* +@all
		ACL DELUSER default => -ERR The 'default' user cannot be removed
		b: AUTH alice pw => +OK
		ACL DELUSER alice nobody => :1
		ACL GETUSER alice => _
	`)
}

// A user that is deleted, or loses a channel that it listens to, loses its connections. The
// one that asked gets its reply.
func TestUsersClientsAreClosed(t *testing.T) {
	b := newBench(t, &Server{})
	b.script(`
		ACL SETUSER u on nopass &a &b* +@all ~* => +OK
		ACL SETUSER v on nopass ~* &* +@all => +OK
		b: AUTH u x => +OK
		b: SUBSCRIBE a => *3 $9 subscribe $1 a :1
		c: AUTH u x => +OK
		c: PSUBSCRIBE b* => *3 $10 psubscribe $2 b* :1
		d: AUTH u x => +OK
		d: SUBSCRIBE c => -NOPERM this user has no permissions to access one of the channels used as arguments
		d: BLPOP q 0 =>
		e: AUTH v x => +OK
		e: SUBSCRIBE a => *3 $9 subscribe $1 a :1
		ACL SETUSER u &x => +OK
	`)
	closed := func(want string) {
		t.Helper()
		var got []string
		for _, name := range []string{"a", "b", "c", "d", "e", "f"} {
			if f := b.clients[name]; f != nil && f.closed {
				got = append(got, name)
			}
		}
		if s := strings.Join(got, ""); s != want {
			t.Errorf("closed are %q, want %q", s, want)
		}
	}
	closed("")
	b.script("ACL SETUSER u resetchannels &a => +OK")
	closed("c")
	b.script(`
		f: AUTH u x => +OK
		f: MULTI => +OK
		f: PING => +QUEUED
		f: ACL DELUSER u v => +QUEUED
		f: ACL WHOAMI => +QUEUED
		f: EXEC => *3 +PONG :2 $7 default
	`)
	closed("bcdef")
}

// A transaction that deletes its own user goes on as the default user, as in Redis, but not if that
// one needs a password.
func TestTransactionsOfDeletedUsers(t *testing.T) {
	for _, c := range []struct{ rules, want string }{
		{"on nopass ~* +@all", "*3 +PONG :1 +OK"},
		{"on nopass +@all resetkeys", "*3 +PONG :1 -NOPERM ACLs rules changed..."},
		{"on resetpass >pw ~* +@all", "*3 +PONG :1 -NOAUTH Authentication required."},
		{"off", "*3 +PONG :1 -NOAUTH Authentication required."},
	} {
		newBench(t, &Server{}).script(`
			ACL SETUSER u on nopass ~* &* +@all => +OK
			AUTH u x => +OK
			ACL SETUSER default ` + c.rules + ` => +OK
			MULTI => +OK
			PING => +QUEUED
			ACL DELUSER u => +QUEUED
			SET k v => +QUEUED
			EXEC => ` + c.want)
	}
}

func TestTransactionsAreChecked(t *testing.T) {
	newBench(t, &Server{}).script(`
		ACL SETUSER u on nopass +@all -incr ~k* => +OK
		b: AUTH u x => +OK
		b: MULTI => +OK
		b: SET k 1 => +QUEUED
		b: INCR k => -NOPERM this user has no permissions to run the 'incr' command
		b: EXEC => -EXECABORT Transaction discarded because of previous errors.
		b: MULTI => +OK
		b: SET k 1 => +QUEUED
		b: SET k2 1 => +QUEUED
		b: DEL k => +QUEUED
		b: PUBLISH c m => -NOPERM this user has no permissions to access one of the channels used as arguments
		b: DISCARD => +OK
		b: MULTI => +OK
		b: SET k 1 => +QUEUED
		b: SET k2 1 => +QUEUED
		b: DEL k => +QUEUED
		ACL SETUSER u resetkeys ~k -del => +OK
		b: EXEC => *3 +OK -NOPERM ACLs rules changed between the moment the transaction was accumulated and the EXEC call. This command is no longer allowed for the following reason: no permission to touch the specified keys -NOPERM ACLs rules changed between the moment the transaction was accumulated and the EXEC call. This command is no longer allowed for the following reason: no permission to execute the command or subcommand
		b: MULTI => +OK
		ACL SETUSER u -exec => +OK
		b: EXEC => -EXECABORT Transaction discarded because of: NOPERM this user has no permissions to run the 'exec' command
		GET k => $1 1
		EXISTS k2 => :0
	`)
}

func TestStrangeKeysAreChecked(t *testing.T) {
	const denied = "-NOPERM this user has no permissions to access one of the keys used as arguments"
	newBench(t, &Server{}).script(strings.ReplaceAll(`
		RPUSH rl 1 2 => :2
		SET rl_1 x => +OK
		ACL SETUSER u on nopass +@all %R~r* %W~w* %RW~b* => +OK
		b: AUTH u x => +OK
		b: GET r => $-1
		b: GET w => DENIED
		b: SET w 1 => +OK
		b: SET w 1 GET => DENIED
		b: SET bk 1 GET => $-1
		b: SET w 1 EX get => DENIED
		b: BITFIELD r GET u4 0 => *1 :0
		b: BITFIELD r SET u4 0 1 => DENIED
		b: COPY rl w2 => :1
		b: COPY w2 r => DENIED
		b: SORT rl STORE w3 => :2
		b: SORT rl STORE r3 => DENIED
		b: SORT rl BY nosort GET rl_* => -ERR GET option of SORT denied due to insufficient ACL permissions.
		b: SORT rl BY rl_* => -ERR BY option of SORT denied due to insufficient ACL permissions.
		b: SORT_RO rl BY nosort => *2 $1 1 $1 2
		b: ZUNIONSTORE wz 2 r1 r2 => :0
		b: ZUNIONSTORE rz 2 r1 r2 => DENIED
		b: ZUNIONSTORE wz 2 r1 w2 => DENIED
		b: ZUNIONSTORE wz 5 r1 w2 => -ERR syntax error
		b: GEORADIUS r 0 0 1 m STORE w4 => :0
		b: GEORADIUS r 0 0 1 m STORE r4 => DENIED
		b: XREAD COUNT 1 STREAMS r w 0 0 => DENIED
		b: XREADGROUP GROUP g c STREAMS w 0 => DENIED
		b: XREADGROUP GROUP g c STREAMS b 0 => -NOGROUP...
		b: MSET w a r b => DENIED
		b: MSET w a wb b => +OK
		b: EXISTS r => :0
		b: EXISTS other => DENIED
		b: OBJECT FREQ other => DENIED
		b: LMPOP 2 b1 r1 LEFT => DENIED
		b: LMPOP 2 b1 b2 LEFT => *-1
		ACL SETUSER u %R~* => +OK
		b: SORT rl BY nosort GET rl_* => *2 $1 x $-1
		ACL DRYRUN u GET other => +OK
		ACL DRYRUN u SET other x => $54 This user has no permissions to access the 'other' key
		ACL DRYRUN u PUBLISH c m => $54 This user has no permissions to access the 'c' channel
		ACL DRYRUN u SET x => -ERR wrong number of arguments for 'set' command
		ACL DRYRUN u nix x => -ERR Command 'nix' not found
		ACL DRYRUN nobody GET x => -ERR User 'nobody' not found
	`, "DENIED", denied))
}

// The same checks hold within a batch of many commands, and for one that waited for the end
// of CLIENT PAUSE.
func TestPostponedCommandsAreCheckedAgain(t *testing.T) {
	newBench(t, &Server{}).script(`
		ACL SETUSER u on nopass +@all ~* => +OK
		b: AUTH u x => +OK
		CLIENT PAUSE 100 WRITE => +OK
		b: SET k v =>
		CLIENT UNPAUSE => +OK
		ACL SETUSER u -set => +OK
		+1ms
		b? => -NOPERM this user has no permissions to run the 'set' command
	`)
}

func TestDenialsAreLogged(t *testing.T) {
	b := newBench(t, &Server{})
	b.script(`
		ACL SETUSER u on >pw +get +multi ~a &c +publish => +OK
		b: AUTH u no => -WRONGPASS...
		b: AUTH u pw => +OK
		b: SET a 1 => -NOPERM...
		b: SET a 1 => -NOPERM...
		b: GET b => -NOPERM...
		b: PUBLISH x m => -NOPERM...
		b: MULTI => +OK
		b: GET b => -NOPERM...
		+1500ms
		ACL LOG 0 => *0
		ACL LOG x => -ERR value is not an integer or out of range
	`)
	got := b.do("a", "ACL", "LOG")
	for i, want := range []string{
		"*5 *14 $5 count :1 $6 reason $3 key $7 context $5 multi $6 object $1 b $8 username $1 u $11 age-seconds $3 1.5 $11 client-info",
		"$6 reason $7 channel $7 context $8 toplevel $6 object $1 x",
		"$6 reason $3 key $7 context $8 toplevel $6 object $1 b",
		"$5 count :2 $6 reason $7 command $7 context $8 toplevel $6 object $3 set",
		"$6 reason $4 auth $7 context $8 toplevel $6 object $4 AUTH $8 username $1 u",
	} {
		if !strings.Contains(got, want) {
			t.Errorf("entry %d: no %q in\n%s", i, want, got)
		}
	}
	info := b.do("a", "INFO", "stats")
	for _, want := range []string{"acl_access_denied_auth:1 ", "acl_access_denied_cmd:2 ", "acl_access_denied_key:2 ", "acl_access_denied_channel:1"} {
		if !strings.Contains(info+" ", want) {
			t.Errorf("INFO has no %q", want)
		}
	}
	b.script(`
		ACL LOG RESET => +OK
		ACL LOG => *0
		CONFIG SET acllog-max-len 2 => +OK
		c: AUTH u pw => +OK
		c: GET x => -NOPERM...
		c: GET y => -NOPERM...
		c: GET z => -NOPERM...
		CONFIG RESETSTAT => +OK
	`)
	if n := len(b.s.denials.Newest(10)); n != 2 || b.s.stats.denied != [acl.DeniedChannel + 1]int64{} {
		t.Errorf("%d entries, %v", n, b.s.stats.denied)
	}
}

func TestRequirePass(t *testing.T) {
	newBench(t, &Server{Password: "pw"}).script(`
		ACL WHOAMI => -NOAUTH Authentication required.
		AUTH no => -WRONGPASS...
		AUTH pw => +OK
		ACL GETUSER default => *12 $5 flags *1 $2 on $9 passwords *1 $64 30c952fab122c3f9759f02a6d95c3758b246b4fee239957b2d4fee46e26170c4 $8 commands $5 +@all $4 keys $2 ~* $8 channels $2 &* $9 selectors *0
		CONFIG GET requirepass => *2 $11 requirepass $2 pw
		RESET => +RESET
		PING => -NOAUTH Authentication required.
		AUTH default pw => +OK
		CONFIG SET requirepass "" => +OK
		b: PING => +PONG
		ACL SETUSER default off => +OK
		c: PING => -NOAUTH Authentication required.
		c: HELLO 3 => -NOAUTH HELLO must be called...
		PING => +PONG
	`)
}

// MONITOR, SLOWLOG and CLIENT LIST neither show passwords nor the wrong user.
func TestSecretsAreHidden(t *testing.T) {
	b := newBench(t, &Server{})
	b.script(`
		CONFIG SET slowlog-log-slower-than 0 => +OK
		m: MONITOR => +OK
		ACL SETUSER u on >secret ~* &* +@all => +OK
		b: AUTH u secret => +OK
		b: CLIENT SETNAME name => +OK
		CLIENT KILL USER nobody => -ERR No such user 'nobody'
	`)
	shown := b.do("a", "SLOWLOG", "GET", "100") + b.connect("m").take()
	if strings.Contains(shown, "secret") {
		t.Error(shown)
	}
	if got := b.do("b", "CLIENT", "INFO"); !strings.Contains(got, " user=u ") {
		t.Error(got)
	}
	b.script("CLIENT KILL USER u => :1")
}

// Clients within the program may do everything, whatever the default user may do.
func TestUsersOfTheProgram(t *testing.T) {
	b := addedBench(t)
	b.script(`
		ACL SETUSER u on nopass +run +@connection => +OK
		ACL SETUSER default -@all => +OK
		SET k v => -NOPERM...
		b: AUTH u x => +OK
		b: SET k v => -NOPERM...
		b: RUN SET k v => $2 OK
		b: TAKE k 1 => -NOPERM this user has no permissions to run the 'take' command
	`)
	l := &local{server: b.s}
	b.s.clients.admitLocal(l)
	if !l.client.user.Unlimited() || !l.client.authed {
		t.Error("a Client is limited")
	}
	l.client.beDefault() // as RESET does
	if !l.client.user.Unlimited() || !l.client.authed {
		t.Error("a Client is limited after RESET")
	}
}

func TestUsersFile(t *testing.T) {
	name := filepath.Join(t.TempDir(), "users.acl")
	write := func(text string) {
		t.Helper()
		if err := os.WriteFile(name, []byte(text), 0o640); err != nil {
			t.Fatal(err)
		}
	}
	write("user alice on nopass ~a* +@all\n")
	b := newBench(t, &Server{ACLFile: name})
	if err := b.s.defineUsers(); err != nil {
		t.Fatal(err)
	}
	b.script(`
		ACL USERS => *2 $5 alice $7 default
		b: AUTH alice x => +OK
		ACL SETUSER bob on nopass +get ~* => +OK
		c: AUTH bob x => +OK
		ACL SAVE => +OK
	`)
	text, err := os.ReadFile(name)
	if want := "user alice on nopass ~a* resetchannels +@all\nuser bob on nopass ~* resetchannels -@all +get\nuser default on nopass ~* &* +@all\n"; string(text) != want || err != nil {
		t.Errorf("%v\n%s, want\n%s", err, text, want)
	}
	if info, err := os.Stat(name); err != nil || runtime.GOOS != "windows" && info.Mode().Perm() != 0o640 {
		t.Error(info.Mode(), err)
	}
	if all, _ := filepath.Glob(filepath.Join(filepath.Dir(name), "*")); len(all) != 1 {
		t.Error(all)
	}
	write("user alice on\nuser alice on\n")
	b.script("ACL LOAD => -ERR WARNING: Duplicate user 'alice' found on line 2. WARNING: ACL errors detected, no change to the previously active ACL rules was performed")
	if b.clients["b"].closed {
		t.Error("a wrong file has closed a client")
	}
	write("user alice on nopass +get\nuser default on nopass ~* +@all -keys\n")
	b.script(`
		ACL LOAD => +OK
		ACL USERS => *2 $5 alice $7 default
		KEYS * => -NOPERM this user has no permissions to run the 'keys' command
	`)
	if !b.clients["b"].closed || !b.clients["c"].closed || b.clients["a"].closed {
		t.Error("ACL LOAD has closed the wrong clients")
	}
	os.Remove(name)
	if got := b.do("a", "ACL", "LOAD"); !strings.HasPrefix(got, "-ERR Error loading ACLs, opening file '"+name+"': ") {
		t.Error(got)
	}
	b.s.config.aclFile = filepath.Join(name, "in", "no", "directory")
	b.script("ACL SAVE => -ERR There was an error trying to save the ACLs. Please check the server logs for more information")
	newBench(t, &Server{}).script(`
		ACL LOAD => -ERR This Redis instance is not configured to use an ACL file...
		ACL SAVE => -ERR This Redis instance is not configured to use an ACL file...
		CONFIG GET aclfile => *2 $7 aclfile $0
	`)
}

func TestUsersOfTheServer(t *testing.T) {
	alice, err := ParseUser(" alice  on nopass (+get ~a )")
	if err != nil || len(alice.Rules) != 5 {
		t.Fatal(alice, err)
	}
	if _, err := ParseUser(" "); err == nil {
		t.Error("a line without a name is a user")
	}
	b := newBench(t, &Server{Users: []User{alice, {Name: "default", Rules: []string{"on", ">pass word", "~*", "+@all"}}}})
	if err := b.s.defineUsers(); err != nil {
		t.Fatal(err)
	}
	b.script(`
		PING => -NOAUTH Authentication required.
		AUTH "pass word" => +OK
		PUBLISH c m => -NOPERM...
		b: AUTH alice x => +OK
		b: GET a => $-1
		b: GET b => -NOPERM...
	`)
	if o, err := b.s.userOption(); err != nil {
		t.Error(err)
	} else if got := o.Lines; len(got) != 2 || got[0].Text != "user alice on nopass resetchannels -@all (~a resetchannels -@all +get)" {
		t.Errorf("%v", got)
	}
	for want, s := range map[string]*Server{
		`redis: Server.Users: user "a": rule '+nix': Unknown command or category name in ACL`: {Users: []User{{"a", []string{"+nix"}}}},
		"redis: Server.Users and Server.ACLFile are both set":                                 {Users: []User{alice}, ACLFile: "x"},
		"redis: Server.Password and Server.ACLFile are both set":                              {Password: "x", ACLFile: "x"},
		"redis: Server.ACLFile: Error loading ACLs, opening file ":                            {ACLFile: filepath.Join(t.TempDir(), "nothing")},
	} {
		if _, err := s.Listen("tcp", "127.0.0.1:0", rondo.SocketOptions{}); err == nil || !strings.HasPrefix(err.Error(), want) {
			t.Errorf("%v, want %s", err, want)
		}
		s.Close()
	}
}

func TestPubsubDefault(t *testing.T) {
	newBench(t, &Server{}).script(`
		CONFIG GET acl-pubsub-default => *2 $18 acl-pubsub-default $13 resetchannels
		ACL SETUSER a => +OK
		CONFIG SET acl-pubsub-default allchannels => +OK
		ACL SETUSER b () => +OK
		CONFIG SET acl-pubsub-default x => -ERR CONFIG SET failed (possibly related to argument 'acl-pubsub-default') - argument(s) must be one of the following: allchannels, resetchannels
		CONFIG GET acl-pubsub-default => *2 $18 acl-pubsub-default $11 allchannels
		ACL LIST => *3 $30 user a off resetchannels -@all $30 user b off &* -@all (&* -@all) $34 user default on nopass ~* &* +@all
	`)
}

// For redis.call of scripts.
func TestCheckForScripts(t *testing.T) {
	b := newBench(t, &Server{})
	b.script(`
		ACL SETUSER u on nopass +get +publish ~a => +OK
		b: AUTH u x => +OK
	`)
	c := b.clients["b"].client
	for request, want := range map[string]string{
		"get a":       "",
		"set a":       "ERR The user executing the script can't run this command or subcommand",
		"get b":       "ERR The user executing the script can't access at least one of the keys mentioned in the command arguments",
		"publish c m": "ERR The user executing the script can't publish to the channel mentioned in the command",
		"get":         "", // too few arguments are another error
	} {
		args := byteArgs(strings.Fields(request))
		if got := c.aclCheck(b.s.commands.find(args), args); got != want {
			t.Errorf("%s: %q, want %q", request, got, want)
		}
	}
	for _, e := range b.s.denials.Newest(10) {
		if e.Context != "lua" {
			t.Error(e)
		}
	}
}

func TestGenpass(t *testing.T) {
	b := newBench(t, &Server{})
	for arg, n := range map[string]int{"": 64, "1": 1, "5": 2, "4096": 1024} {
		args := []string{"ACL", "GENPASS"}
		if arg != "" {
			args = append(args, arg)
		}
		_, text, _ := strings.Cut(b.do("a", args...), " ")
		if len(text) != n || strings.Trim(text, "0123456789abcdef") != "" {
			t.Errorf("%s: %q", arg, text)
		}
	}
	if one := b.do("a", "ACL", "GENPASS"); one == b.do("a", "ACL", "GENPASS") {
		t.Error("the same password twice")
	}
	b.script(`
		ACL GENPASS 0 => -ERR ACL GENPASS argument must be the number of bits for the output password, a positive number up to 4096
		ACL GENPASS 4097 => -ERR ACL GENPASS argument must be the number of bits for the output password, a positive number up to 4096
		ACL CAT nix => -ERR Unknown category 'nix'
		ACL CAT a b => -ERR unknown subcommand or wrong number of arguments for 'CAT'. Try ACL HELP.
		ACL CAT TRANSACTION => *5 $7 discard $4 exec $5 multi $7 unwatch $5 watch
	`)
}

func TestUsersOfAConfig(t *testing.T) {
	c, err := load(t, "user alice on nopass \"(+get ~a)\"\nuser default on >pw ~* +@all\nacl-pubsub-default allchannels\n", "--acllog-max-len", "5")
	if err != nil {
		t.Fatal(err)
	}
	b := newBench(t, &Server{Config: c})
	if err := b.s.defineUsers(); err != nil {
		t.Fatal(err)
	}
	b.script(`
		PING => -NOAUTH...
		AUTH pw => +OK
		ACL USERS => *2 $5 alice $7 default
		CONFIG GET acl* => *6 $18 acl-pubsub-default $11 allchannels $7 aclfile $0  $14 acllog-max-len $1 5
		CONFIG REWRITE => +OK
	`)
	text, err := os.ReadFile(c.File())
	if want := "user alice on nopass &* -@all (~a &* -@all +get)\n"; err != nil || !strings.Contains(string(text), want) {
		t.Errorf("%v\n%s", err, text)
	}
	for text, want := range map[string]string{
		"user a on\nuser a off":  "Duplicate user found",
		"user a %x~y":            "Syntax error",
		"user a (on":             "Unmatched parenthesis",
		"user a on\naclfile x\n": "want them in one place",
	} {
		if _, err := load(t, text); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%q: %v, want %s", text, err, want)
		}
	}
}

// A word that looks like an option, an option that stands twice, and keys that may be left out do
// not hide a key from the check.
func TestKeysDoNotHide(t *testing.T) {
	newBench(t, &Server{}).script(`
		SADD b1 1 => :1
		GEOADD mine:g 13 38 x => :1
		XADD secret 1-1 f v => $3 1-1
		XGROUP CREATE secret g 0 => +OK
		ACL SETUSER u on nopass ~b* ~mine:* ~stream* +@all => +OK
		b: AUTH u x => +OK
		b: SORT b1 STORE by STORE victim => -NOPERM this user has no permissions to access one of the keys used as arguments
		b: SORT b1 STORE b2 => :1
		b: GEORADIUS mine:g 13 38 1 m STORE mine:x STORE victim => -NOPERM this user has no permissions to access one of the keys used as arguments
		b: GEORADIUS mine:g 13 38 1 m STORE mine:x STOREDIST victim => -NOPERM this user has no permissions to access one of the keys used as arguments
		b: GEORADIUS mine:g 13 38 1 m STORE victim STORE mine:x => :1
		b: XREADGROUP NOACK GROUP g streams STREAMS secret > => -NOPERM this user has no permissions to access one of the keys used as arguments
		b: PFMERGE victim => -NOPERM this user has no permissions to access one of the keys used as arguments
		b: PFMERGE mine:h => +OK
		EXISTS victim => :0
	`)
}
