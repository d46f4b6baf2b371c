package redis

import (
	"container/list"
	"strings"

	"github.com/rondo-go/rondo/redis/internal/script"
	"github.com/rondo-go/rondo/resp"
)

func scriptCommands() []*command {
	const group = "scripting"
	const flags = flagNoscript | flagStale | flagSkipMonitor | flagNoKeys | flagMovableKeys | flagScript
	const depends = "depends on the script"
	keys := func(f keyFlags, notes string) []keySpec {
		k := countedKeys(f, 2)
		k.notes = notes
		return []keySpec{k}
	}
	const anyWrite = "We cannot tell how the keys will be used so we assume the worst, RW and UPDATE"
	const anyRead = "We cannot tell how the keys will be used so we assume the worst, RO and ACCESS"
	const rw, ro = keyRW | keyAccess | keyUpdate, keyRO | keyAccess
	return []*command{
		{name: "eval", arity: -3, flags: flags, cats: catScripting, keys: keys(rw, anyWrite), run: evalCommand,
			doc: doc{"Runs a script.", "2.6.0", group, depends, "", ""}},
		{name: "evalsha", arity: -3, flags: flags, cats: catScripting, keys: keys(rw, ""), run: evalCommand,
			doc: doc{"Runs a script that the server has.", "2.6.0", group, depends, "", ""}},
		{name: "eval_ro", arity: -3, flags: flags | flagReadonly, cats: catScripting, keys: keys(ro, anyRead), run: evalCommand,
			doc: doc{"Runs a script that must not write.", "7.0.0", group, depends, "", ""}},
		{name: "evalsha_ro", arity: -3, flags: flags | flagReadonly, cats: catScripting, keys: keys(ro, ""), run: evalCommand,
			doc: doc{"Runs a script that the server has and that must not write.", "7.0.0", group, depends, "", ""}},
		{name: "fcall", arity: -3, flags: flags, cats: catScripting, keys: keys(rw, anyWrite), run: fcallCommand,
			doc: doc{"Calls a function.", "7.0.0", group, depends, "", ""}},
		{name: "fcall_ro", arity: -3, flags: flags | flagReadonly, cats: catScripting, keys: keys(ro, anyRead), run: fcallCommand,
			doc: doc{"Calls a function that must not write.", "7.0.0", group, depends, "", ""}},
		{name: "script", arity: -2, doc: doc{"Contains the commands for scripts.", "2.6.0", group, "depends on the subcommand", "", ""},
			subs: []*command{
				{name: "script|debug", arity: 3, flags: flagNoscript, cats: catScripting, run: scriptDebugCommand,
					doc: doc{"Would set the mode of debugging scripts.", "3.2.0", group, "O(1)", "", ""}},
				{name: "script|exists", arity: -3, flags: flagNoscript, cats: catScripting, run: scriptExistsCommand,
					tips: []string{"request_policy:all_shards", "response_policy:agg_logical_and"},
					doc:  doc{"Tells which scripts the server has.", "2.6.0", group, "O(1) a script", "", ""}},
				{name: "script|flush", arity: -2, flags: flagNoscript, cats: catScripting, run: scriptFlushCommand,
					tips: []string{"request_policy:all_nodes", "response_policy:all_succeeded"},
					doc:  doc{"Forgets all scripts.", "2.6.0", group, "O(N), N the number of scripts", "", ""}},
				{name: "script|help", arity: 2, flags: flagLoading | flagStale, cats: catScripting, run: scriptHelpCommand,
					doc: doc{"Lists the subcommands.", "5.0.0", group, "O(1)", "", ""}},
				{name: "script|kill", arity: 2, flags: flagNoscript | flagAllowBusy, cats: catScripting, run: scriptKillCommand,
					tips: []string{"request_policy:all_shards", "response_policy:one_succeeded"},
					doc:  doc{"Ends the script that runs.", "2.6.0", group, "O(1)", "", ""}},
				{name: "script|load", arity: 3, flags: flagNoscript | flagStale, cats: catScripting, run: scriptLoadCommand,
					tips: []string{"request_policy:all_nodes", "response_policy:all_succeeded"},
					doc:  doc{"Compiles a script and keeps it.", "2.6.0", group, "O(N), N the length of the script", "", ""}},
			}},
	}
}

// maxEvals is how many scripts of EVAL the server keeps. Those of SCRIPT LOAD stay.
const maxEvals = 500

// maxEvalBytes bounds their sources together: a compiled script takes some thirty times as much.
const maxEvalBytes = 4 << 20

// scripts holds the scripts and what runs them. It belongs to the keyspace's loop.
type scripts struct {
	server   *Server
	engine   *script.Engine // nil before the first script
	byDigest map[string]*cachedScript
	bySource map[string]*cachedScript
	evals    list.List // of *cachedScript: those that only EVAL has brought, the latest first
	evalSize int64     // of their sources together
	memory   int64     // bytes of sources
	caller   *client   // runs the commands of scripts
	output   scriptOutput
	runner   scriptRunner
	run      scriptRun
	busy     bool // run is suspended: it runs longer than busy-reply-threshold

	functions functions
}

// cachedScript is a script that has been compiled.
type cachedScript struct {
	function *script.Function
	digest   string
	source   string
	flags    scriptFlags
	elem     *list.Element // in scripts.evals; nil: SCRIPT LOAD
}

// scriptFlags are what a script says of itself in its first line. compatible ones have no such
// line: they may write, and need memory only as their commands do.
type scriptFlags uint8

const (
	scriptNoWrites scriptFlags = 1 << iota
	scriptAllowOOM
	scriptAllowStale
	scriptNoCluster
	scriptCrossSlot
	scriptCompatible
)

const (
	errNoScript     = "NOSCRIPT No matching script. Please use EVAL."
	errBusyScript   = "BUSY Redis is busy running a script. You can only call SCRIPT KILL or SHUTDOWN NOSAVE."
	errBusyFunction = "BUSY Redis is busy running a script. You can only call FUNCTION KILL or SHUTDOWN NOSAVE."
)

func (s *scripts) init(server *Server) {
	s.server = server
	s.byDigest, s.bySource = make(map[string]*cachedScript), make(map[string]*cachedScript)
	s.functions.init()
}

// lua returns the engine, which the first call makes.
func (s *scripts) lua() *script.Engine {
	if s.engine == nil {
		s.engine = script.New((*scriptHost)(s), Version)
		s.caller = &client{
			Reply: resp.Reply{Proto: 2}, server: s.server, transport: &s.output, db: &s.server.space.dbs[0],
			gone: true, authed: true, local: true, executing: true,
		}
	}
	return s.engine
}

// find returns the script of a request of EVAL or EVALSHA; nil: there is none yet.
func (s *scripts) find(cmd *command, args [][]byte) *cachedScript {
	if !cmd.byDigest() {
		return s.bySource[string(args[1])]
	}
	var digest [40]byte
	if len(args[1]) != len(digest) {
		return nil
	}
	for i, b := range args[1] {
		digest[i] = lower(b)
	}
	return s.byDigest[string(digest[:])]
}

// byDigest reports whether a command runs a script by its digest, and not by its source.
func (cmd *command) byDigest() bool { return strings.HasPrefix(cmd.name, "evalsha") }

// add compiles a script. kept says that SCRIPT LOAD has brought it. fault is the error if there
// is one.
func (s *scripts) add(source string, kept bool) (x *cachedScript, fault string) {
	flags, rest, fault := shebang(source)
	if fault != "" {
		return nil, "ERR " + fault
	}
	f, err := s.lua().Compile(rest, "user_script")
	if err != nil {
		return nil, "ERR Error compiling script (new function): " + err.Error()
	}
	x = &cachedScript{function: f, digest: script.Digest([]byte(source)), source: source, flags: flags}
	s.byDigest[x.digest], s.bySource[source] = x, x
	s.memory += scriptSize(x)
	if !kept {
		x.elem = s.evals.PushFront(x)
		s.evalSize += scriptSize(x)
		for s.evals.Len() > maxEvals || s.evalSize > maxEvalBytes && s.evals.Len() > 1 {
			s.forget(s.evals.Back().Value.(*cachedScript))
		}
	}
	return x, ""
}

// used notes the use of a script.
func (s *scripts) used(x *cachedScript) {
	if x.elem != nil {
		s.evals.MoveToFront(x.elem)
	}
}

func (s *scripts) forget(x *cachedScript) {
	delete(s.byDigest, x.digest)
	delete(s.bySource, x.source)
	s.memory -= scriptSize(x)
	if x.elem != nil {
		s.evals.Remove(x.elem)
		s.evalSize -= scriptSize(x)
	}
}

// scriptSize is about the memory of a script.
func scriptSize(x *cachedScript) int64 { return int64(len(x.source)) + 200 }

// shebang reads the flags in a script's first line. rest is the script without it, but with its
// line end.
func shebang(source string) (flags scriptFlags, rest, fault string) {
	if !strings.HasPrefix(source, "#!") {
		return scriptCompatible, source, ""
	}
	end := strings.IndexByte(source, '\n')
	if end < 0 {
		return 0, "", "Invalid script shebang"
	}
	parts, ok := splitArgs(source[:end])
	if !ok || len(parts) == 0 {
		return 0, "", "Invalid engine in script shebang"
	}
	if parts[0] != "#!lua" {
		return 0, "", "Unexpected engine in script shebang: " + parts[0]
	}
	for _, part := range parts[1:] {
		names, ok := strings.CutPrefix(part, "flags=")
		if !ok {
			return 0, "", "Unknown lua shebang option: " + part
		}
		for _, name := range strings.Split(names, ",") {
			f := scriptFlagByName(name)
			if f == 0 && names != "" {
				return 0, "", "Unexpected flag in script shebang: " + name
			}
			flags |= f
		}
	}
	return flags, source[end:], ""
}

// splitArgs splits a line into words, of which some may be quoted.
func splitArgs(line string) ([]string, bool) {
	args, _, want, err := resp.ReadRequest([]byte(line+"\n"), nil, resp.Limits{})
	if err != nil || want > 0 {
		return nil, false
	}
	words := make([]string, len(args))
	for i, a := range args {
		words[i] = string(a)
	}
	return words, true
}

func scriptFlagByName(name string) scriptFlags {
	for i, known := range script.Flags {
		if name == known {
			return 1 << i
		}
	}
	return 0
}

// effective returns the flags of a command for a request: those that a script has by its own
// flags.
func (s *scripts) effective(cmd *command, args [][]byte) cmdFlags {
	flags := scriptCompatible
	switch {
	case len(args) < 2:
	case strings.HasPrefix(cmd.name, "fcall"):
		if f := s.functions.named(args[1]); f != nil {
			flags = f.flags
		}
	default:
		if x := s.find(cmd, args); x != nil {
			flags = x.flags
		} else if cmd.name == "eval" || cmd.name == "eval_ro" {
			if f, _, fault := shebang(string(args[1][:min(len(args[1]), 4096)])); fault == "" {
				flags = f
			}
		}
	}
	if flags&scriptCompatible != 0 {
		return cmd.flags
	}
	f := cmd.flags &^ (flagStale | flagDenyOOM | flagWrite)
	if flags&(scriptAllowOOM|scriptNoWrites) == 0 {
		f |= flagDenyOOM
	}
	if flags&scriptNoWrites == 0 {
		f |= flagWrite
	}
	return f
}

// scriptKeys returns the keys and the arguments of a script's request.
func (c *client) scriptKeys(args [][]byte, invalid string) (keys, rest [][]byte, ok bool) {
	n, isInt := resp.ParseInt(args[2])
	switch {
	case !isInt:
		c.fail(invalid)
		return nil, nil, false
	case n > int64(len(args)-3):
		c.fail("ERR Number of keys can't be greater than number of args")
		return nil, nil, false
	case n < 0:
		c.fail("ERR Number of keys can't be negative")
		return nil, nil, false
	}
	return args[3 : 3+n], args[3+n:], true
}

// evalCommand is EVAL, EVALSHA and their read-only forms.
func evalCommand(c *client, args [][]byte) {
	s := &c.server.scripts
	cmd := c.server.commands.find(args) // its name, which redis.conf may have changed for clients
	s.feedMonitors(c, cmd, args)
	sha := cmd.byDigest()
	if sha && len(args[1]) != 40 {
		c.fail(errNoScript)
		return
	}
	keys, rest, ok := c.scriptKeys(args, errNotInteger)
	if !ok {
		return
	}
	x := s.find(cmd, args)
	switch {
	case x != nil:
		s.used(x)
	case sha:
		c.fail(errNoScript)
		return
	default:
		var fault string
		if x, fault = s.add(string(args[1]), false); fault != "" {
			c.fail(fault)
			return
		}
	}
	s.execute(c, cmd, args, scriptRun{function: x.function, name: x.digest, eval: true, keys: keys, args: rest}, x.flags)
}

// feedMonitors shows the request to MONITOR before the commands of the script.
func (s *scripts) feedMonitors(c *client, cmd *command, args [][]byte) {
	if m := &s.server.monitors; len(m.list) > 0 {
		m.feed(c, cmd, args)
	}
}

func scriptLoadCommand(c *client, args [][]byte) {
	s := &c.server.scripts
	x := s.bySource[string(args[2])]
	if x == nil {
		var fault string
		if x, fault = s.add(string(args[2]), true); fault != "" {
			c.fail(fault)
			return
		}
	} else if x.elem != nil {
		s.evals.Remove(x.elem)
		s.evalSize -= scriptSize(x)
		x.elem = nil
	}
	c.BulkString(x.digest)
}

func scriptExistsCommand(c *client, args [][]byte) {
	c.Array(len(args) - 2)
	for _, digest := range args[2:] {
		n := int64(0)
		if c.server.scripts.byDigest[strings.ToLower(string(digest))] != nil {
			n = 1
		}
		c.Int(n)
	}
}

func scriptFlushCommand(c *client, args [][]byte) {
	if len(args) > 3 || len(args) == 3 && !isWord(args[2], "SYNC") && !isWord(args[2], "ASYNC") {
		c.fail("ERR SCRIPT FLUSH only support SYNC|ASYNC option")
		return
	}
	s := &c.server.scripts
	clear(s.byDigest)
	clear(s.bySource)
	s.evals.Init()
	s.evalSize, s.memory = 0, 0
	c.ok()
}

func scriptKillCommand(c *client, _ [][]byte) { c.killScript(true) }

// killScript ends the script that is suspended.
func (c *client) killScript(eval bool) {
	s := &c.server.scripts
	switch {
	case !s.busy:
		c.fail("NOTBUSY No scripts in execution right now.")
	case s.run.dirty:
		c.fail("UNKILLABLE Sorry the script already executed write commands against the dataset. " +
			"You can either wait the script termination or kill the server in a hard way using the SHUTDOWN NOSAVE command.")
	case s.run.eval != eval:
		c.fail(s.busyError())
	default:
		s.killed()
		c.ok()
	}
}

// busyError is what clients get while a script is suspended.
func (s *scripts) busyError() string {
	if s.run.eval {
		return errBusyScript
	}
	return errBusyFunction
}

func scriptDebugCommand(c *client, args [][]byte) {
	switch {
	case isWord(args[2], "NO"):
		c.ok()
	case isWord(args[2], "YES"), isWord(args[2], "SYNC"):
		c.fail("ERR This server has no debugger for scripts")
	default:
		c.fail("ERR Use SCRIPT DEBUG YES/SYNC/NO")
	}
}

// info puts INFO's fields about scripts. What the interpreter takes is part of the program's heap
// and is not counted.
func (s *scripts) info(put func(string, any)) {
	functions := int64(0)
	for _, l := range s.functions.libraries {
		functions += int64(len(l.code)) + 200
	}
	putFields(put, "used_memory_lua:0 used_memory_vm_eval:0 used_memory_lua_human:0B")
	put("used_memory_scripts_eval", s.memory)
	put("number_of_cached_scripts", len(s.byDigest))
	put("number_of_functions", len(s.functions.byName))
	put("number_of_libraries", len(s.functions.libraries))
	putFields(put, "used_memory_vm_functions:0 used_memory_vm_total:0 used_memory_vm_total_human:0B")
	put("used_memory_functions", functions)
	put("used_memory_scripts", s.memory+functions)
	put("used_memory_scripts_human", human(s.memory+functions))
}
