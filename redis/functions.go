package redis

import (
	"maps"
	"math"
	"slices"
	"strings"
	"time"

	"github.com/rondo-go/rondo/redis/internal/script"
	"github.com/rondo-go/rondo/redis/rdb"
)

func functionCommands() []*command {
	const group = "scripting"
	all := []string{"request_policy:all_shards", "response_policy:all_succeeded"}
	const write = flagNoscript | flagWrite
	return []*command{
		{name: "function", arity: -2, doc: doc{"Contains the commands for functions.", "7.0.0", group, "depends on the subcommand", "", ""},
			subs: []*command{
				{name: "function|delete", arity: 3, flags: write, cats: catScripting | catWrite, tips: all, run: functionDeleteCommand,
					doc: doc{"Deletes a library.", "7.0.0", group, "O(1)", "", ""}},
				{name: "function|dump", arity: 2, flags: flagNoscript, cats: catScripting, run: functionDumpCommand,
					doc: doc{"Returns all libraries as bytes.", "7.0.0", group, "O(N), N the number of functions", "", ""}},
				{name: "function|flush", arity: -2, flags: write, cats: catScripting | catWrite, tips: all, run: functionFlushCommand,
					doc: doc{"Deletes all libraries.", "7.0.0", group, "O(N), N the number of functions", "", ""}},
				{name: "function|help", arity: 2, flags: flagLoading | flagStale, cats: catScripting, run: functionHelpCommand,
					doc: doc{"Lists the subcommands.", "7.0.0", group, "O(1)", "", ""}},
				{name: "function|kill", arity: 2, flags: flagNoscript | flagAllowBusy, cats: catScripting, run: functionKillCommand,
					tips: []string{"request_policy:all_shards", "response_policy:one_succeeded"},
					doc:  doc{"Ends the function that runs.", "7.0.0", group, "O(1)", "", ""}},
				{name: "function|list", arity: -2, flags: flagNoscript, cats: catScripting, run: functionListCommand,
					tips: []string{"nondeterministic_output_order"},
					doc:  doc{"Lists libraries and their functions.", "7.0.0", group, "O(N), N the number of functions", "", ""}},
				{name: "function|load", arity: -3, flags: write | flagDenyOOM, cats: catScripting | catWrite, tips: all, run: functionLoadCommand,
					doc: doc{"Loads a library.", "7.0.0", group, "O(1), besides what its code does", "", ""}},
				{name: "function|restore", arity: -3, flags: write | flagDenyOOM, cats: catScripting | catWrite, tips: all, run: functionRestoreCommand,
					doc: doc{"Loads the libraries that FUNCTION DUMP has returned.", "7.0.0", group, "O(N), N the number of functions", "", ""}},
				{name: "function|stats", arity: 2, flags: flagNoscript | flagAllowBusy, cats: catScripting, run: functionStatsCommand,
					tips: []string{"nondeterministic_output", "request_policy:all_shards", "response_policy:special"},
					doc:  doc{"Tells which function runs, and counts functions.", "7.0.0", group, "O(1)", "", ""}},
			}},
	}
}

// functions holds the libraries of functions.
type functions struct {
	libraries map[string]*library
	byName    map[string]*libraryFunction // by names in lower case
}

type library struct {
	name      string
	code      string
	functions []*libraryFunction
}

type libraryFunction struct {
	*script.Function
	flags scriptFlags
}

func (f *functions) init() {
	f.libraries, f.byName = make(map[string]*library), make(map[string]*libraryFunction)
}

// named finds a function by its name, in any mix of cases.
func (f *functions) named(name []byte) *libraryFunction {
	if x := f.byName[string(name)]; x != nil {
		return x
	}
	return f.byName[strings.ToLower(string(name))]
}

// link adds a library, unlink removes one.
func (f *functions) link(l *library) {
	f.libraries[l.name] = l
	for _, x := range l.functions {
		f.byName[strings.ToLower(x.Name)] = x
	}
}

func (f *functions) unlink(l *library) {
	delete(f.libraries, l.name)
	for _, x := range l.functions {
		delete(f.byName, strings.ToLower(x.Name))
	}
}

// collision returns a function of a library whose name another one has.
func (f *functions) collision(l *library) error {
	for _, x := range l.functions {
		if f.byName[strings.ToLower(x.Name)] != nil {
			return functionError("Function " + x.Name + " already exists")
		}
	}
	return nil
}

// sorted returns the libraries in the order of their names.
func (f *functions) sorted() []*library {
	list := slices.Collect(maps.Values(f.libraries))
	slices.SortFunc(list, func(a, b *library) int { return strings.Compare(a.name, b.name) })
	return list
}

// A functionError is an error of a library, with Redis's text.
type functionError string

func (e functionError) Error() string { return string(e) }

const errLibraryName = functionError("Library names can only contain letters, numbers, or underscores(_) and must be at least one character long")

func isLibraryName(s string) bool {
	for i := range len(s) {
		if c := s[i]; c != '_' && (c < '0' || c > '9') && (c|0x20 < 'a' || c|0x20 > 'z') {
			return false
		}
	}
	return s != ""
}

// libraryHead reads the first line of a library's code. rest is the code without it, but with its
// line end.
func libraryHead(code string) (name, rest string, err error) {
	if !strings.HasPrefix(code, "#!") {
		return "", "", functionError("Missing library metadata")
	}
	end := strings.IndexByte(code, '\n')
	if end < 0 {
		return "", "", functionError("Invalid library metadata")
	}
	parts, ok := splitArgs(code[:end])
	if !ok || len(parts) == 0 {
		return "", "", functionError("Invalid library metadata")
	}
	named := false
	for _, part := range parts[1:] {
		if len(part) < 5 || !strings.EqualFold(part[:5], "name=") {
			return "", "", functionError("Invalid metadata value given: " + part)
		}
		if named {
			return "", "", functionError("Invalid metadata value, name argument was given multiple times")
		}
		name, named = part[5:], true
	}
	engine := parts[0][2:]
	switch {
	case !named:
		return "", "", functionError("Library name was not given")
	case !isLibraryName(name):
		return "", "", errLibraryName
	case !strings.EqualFold(engine, "lua"):
		return "", "", functionError("Engine '" + engine + "' not found")
	}
	return name, code[end:], nil
}

// load makes a library of its code, and adds it to f.
func (s *scripts) load(f *functions, code string, replace bool) (name string, err error) {
	name, rest, err := libraryHead(code)
	if err != nil {
		return "", err
	}
	if s.lua().Running() {
		return "", functionError("a library cannot be loaded by a script")
	}
	old := f.libraries[name]
	if old != nil && !replace {
		return "", functionError("Library '" + name + "' already exists")
	}
	l := &library{name: name, code: code}
	err = s.lua().Load(rest, Version, func(x *script.Function) error {
		if !isLibraryName(x.Name) {
			return errLibraryName
		}
		if slices.ContainsFunc(l.functions, func(y *libraryFunction) bool { return y.Name == x.Name }) {
			return functionError("Function already exists in the library")
		}
		fn := &libraryFunction{Function: x}
		for _, name := range x.Flags {
			fn.flags |= scriptFlagByName(name)
		}
		l.functions = append(l.functions, fn)
		return nil
	})
	if err != nil {
		return "", err
	}
	if len(l.functions) == 0 {
		return "", functionError("No functions registered")
	}
	if old != nil {
		f.unlink(old)
	}
	if err := f.collision(l); err != nil {
		if old != nil {
			f.link(old)
		}
		return "", err
	}
	f.link(l)
	return name, nil
}

func functionLoadCommand(c *client, args [][]byte) {
	replace := false
	for _, arg := range args[2 : len(args)-1] {
		if !isWord(arg, "REPLACE") {
			c.fail("ERR Unknown option given: " + string(cString(arg, 1024)))
			return
		}
		replace = true
	}
	s := &c.server.scripts
	name, err := s.load(&s.functions, string(args[len(args)-1]), replace)
	if err != nil {
		c.scriptError("ERR "+err.Error(), false)
		return
	}
	c.server.space.dirty++
	c.BulkString(name)
}

func functionDeleteCommand(c *client, args [][]byte) {
	f := &c.server.scripts.functions
	l := f.libraries[string(args[2])]
	if l == nil {
		c.fail("ERR Library not found")
		return
	}
	f.unlink(l)
	c.server.space.dirty++
	c.ok()
}

func functionFlushCommand(c *client, args [][]byte) {
	switch {
	case len(args) > 3:
		c.subcommandSyntax(args)
	case !flushOption(args[2:]):
		c.fail("ERR FUNCTION FLUSH only supports SYNC|ASYNC option")
	default:
		c.server.scripts.functions.init()
		c.server.space.dirty++
		c.ok()
	}
}

func functionKillCommand(c *client, _ [][]byte) { c.killScript(false) }

func functionListCommand(c *client, args [][]byte) {
	withCode := false
	var pattern []byte
	for i := 2; i < len(args); i++ {
		switch {
		case !withCode && isWord(args[i], "WITHCODE"):
			withCode = true
		case pattern == nil && isWord(args[i], "LIBRARYNAME"):
			if i++; i == len(args) {
				c.fail("ERR library name argument was not given")
				return
			}
			pattern = args[i]
		default:
			c.fail("ERR Unknown argument " + string(cString(args[i], 1024)))
			return
		}
	}
	list := c.server.scripts.functions.sorted()
	if pattern != nil {
		list = slices.DeleteFunc(list, func(l *library) bool { return !glob(pattern, l.name, true) })
	}
	c.Array(len(list))
	for _, l := range list {
		c.showLibrary(l, withCode)
	}
}

func (c *client) showLibrary(l *library, withCode bool) {
	n := 3
	if withCode {
		n++
	}
	c.Map(n)
	c.pair("library_name", l.name)
	c.pair("engine", "LUA")
	c.BulkString("functions")
	c.Array(len(l.functions))
	for _, f := range l.functions {
		c.Map(3)
		c.pair("name", f.Name)
		c.BulkString("description")
		if f.HasText {
			c.BulkString(f.Description)
		} else {
			c.Null()
		}
		c.BulkString("flags")
		var names []string
		for i, name := range script.Flags {
			if f.flags&(1<<i) != 0 {
				names = append(names, name)
			}
		}
		c.Set(len(names))
		for _, name := range names {
			c.Simple(name)
		}
	}
	if withCode {
		c.pair("library_code", l.code)
	}
}

func functionStatsCommand(c *client, _ [][]byte) {
	s := &c.server.scripts
	if s.busy && s.run.eval {
		c.fail(errBusyScript)
		return
	}
	c.Map(2)
	c.BulkString("running_script")
	if !s.busy {
		c.Null()
	} else {
		c.Map(3)
		c.pair("name", s.run.name)
		c.BulkString("command")
		c.Array(len(s.run.request))
		for _, arg := range s.run.request {
			c.Bulk(arg)
		}
		c.BulkString("duration_ms")
		c.Int(time.Since(s.run.start).Milliseconds())
	}
	c.BulkString("engines")
	c.Map(1)
	c.BulkString("LUA")
	c.Map(2)
	c.BulkString("libraries_count")
	c.Int(int64(len(s.functions.libraries)))
	c.BulkString("functions_count")
	c.Int(int64(len(s.functions.byName)))
}

func functionDumpCommand(c *client, _ [][]byte) {
	e := &c.server.encoder
	e.Compress = c.server.config.compress
	e.B = nil
	for _, l := range c.server.scripts.functions.sorted() {
		e.Type(rdb.TypeFunction2)
		e.String([]byte(l.code))
	}
	e.Seal()
	c.value(e.B)
	e.B = nil
}

func functionRestoreCommand(c *client, args [][]byte) {
	policy := "APPEND"
	switch {
	case len(args) > 4:
		c.subcommandSyntax(args)
		return
	case len(args) == 4:
		if policy = strings.ToUpper(string(args[3])); policy != "APPEND" && policy != "REPLACE" && policy != "FLUSH" {
			c.fail("ERR Wrong restore policy given, value should be either FLUSH, APPEND or REPLACE.")
			return
		}
	}
	payload, ok := rdb.Unseal(args[2])
	if !ok {
		c.fail("ERR DUMP payload version or checksum are wrong")
		return
	}
	s := &c.server.scripts
	codes, err := rdb.Functions(payload, int(min(c.server.config.maxBulk, math.MaxInt)))
	if err == nil {
		err = s.restore(codes, policy)
	}
	if err != nil {
		c.scriptError("ERR "+err.Error(), false)
		return
	}
	c.server.space.dirty++
	c.ok()
}

// restoreTime is how long the code of all libraries of a dump may take.
const restoreTime = 2 * time.Second

// restore adds the libraries of a dump: all, or none if there is an error.
func (s *scripts) restore(codes []string, policy string) error {
	var dumped functions
	dumped.init()
	start := time.Now()
	for _, code := range codes {
		if time.Since(start) > restoreTime {
			return functionError("FUNCTION RESTORE timeout")
		}
		if _, err := s.load(&dumped, code, false); err != nil {
			return err
		}
	}
	if policy == "FLUSH" {
		s.functions = dumped
		return nil
	}
	joined := functions{maps.Clone(s.functions.libraries), maps.Clone(s.functions.byName)}
	for _, l := range dumped.sorted() {
		old := joined.libraries[l.name]
		if old != nil && policy != "REPLACE" {
			return functionError("Library " + l.name + " already exists")
		}
		if old != nil {
			joined.unlink(old)
		}
	}
	for _, l := range dumped.sorted() {
		if err := joined.collision(l); err != nil {
			return err
		}
		joined.link(l)
	}
	s.functions = joined
	return nil
}

// fcallCommand is FCALL and FCALL_RO.
func fcallCommand(c *client, args [][]byte) {
	s := &c.server.scripts
	cmd := c.server.commands.find(args)
	s.feedMonitors(c, cmd, args)
	f := s.functions.named(args[1])
	if f == nil {
		c.fail("ERR Function not found")
		return
	}
	keys, rest, ok := c.scriptKeys(args, "ERR Bad number of keys provided")
	if !ok {
		return
	}
	s.execute(c, cmd, args, scriptRun{function: f.Function, name: f.Name, keys: keys, args: rest}, f.flags)
}
