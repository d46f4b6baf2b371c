package difftest

import (
	"crypto/sha1"
	"encoding/hex"
	"fmt"
	"maps"
	"math/rand/v2"
	"slices"
	"strconv"
	"strings"
)

func init() {
	randomFamilies["script"] = randomFamily{requests: randomScripts, normal: func(request []string) string {
		if request[0] == "FUNCTION" && len(request) > 1 {
			switch strings.ToUpper(request[1]) {
			case "LIST":
				return "unordered"
			case "DUMP":
				return "kind"
			}
		}
		return ""
	}}
}

// The family of scripts has small programs, which call requests of all other families and show
// their replies as values of Lua. It also has requests about scripts and functions themselves.

// randomScripts returns requests that run scripts. redis-server 7.0 keeps all scripts of EVAL, and
// package redis the latest 500: so a digest is used only at once.
func randomScripts(r *rand.Rand) [][]string {
	switch r.IntN(40) {
	case 0:
		return [][]string{pickRequest(r, join("SCRIPT", "FLUSH", sometimes(r, 3, pick(r, "SYNC", "ASYNC", "async", "x"))),
			join("SCRIPT", "KILL"), join("SCRIPT", "EXISTS", digestOf("return 1"), "x"), join("SCRIPT", "EXISTS"),
			join("SCRIPT", "LOAD", pick(r, "return 1", "return", "#!lua\nreturn 1")), join("SCRIPT", "bogus"))}
	case 1, 2:
		return [][]string{randomWrongEval(r)}
	case 3, 4, 5:
		return randomFunctions(r)
	case 6:
		all := [][]string{{"MULTI"}}
		for range r.IntN(4) {
			request, form := randomInner(r)
			if form != "" || r.IntN(2) == 0 {
				request = randomEval(r)
			}
			if strings.EqualFold(request[0], "MULTI") || strings.EqualFold(request[0], "EXEC") {
				continue
			}
			all = append(all, request)
		}
		return append(all, []string{"EXEC"})
	case 7, 8, 9:
		eval := randomEval(r)
		digest := digestOf(eval[1])
		if r.IntN(4) == 0 {
			digest = strings.ToUpper(digest)
		}
		again := join(pick(r, "EVALSHA", "EVALSHA", "EVALSHA_RO"), digest, eval[2:])
		if r.IntN(2) == 0 {
			return [][]string{{"SCRIPT", "LOAD", eval[1]}, {"SCRIPT", "EXISTS", digest}, again, again}
		}
		return [][]string{eval, again}
	case 10:
		return [][]string{{"SCRIPT", "FLUSH"}}
	case 11, 12, 13, 14, 15:
		request, form := randomInner(r)
		if name := strings.ToUpper(request[0]); form == "" && name != "MULTI" && name != "EXEC" {
			return [][]string{request}
		}
	}
	return [][]string{randomEval(r)}
}

func digestOf(script string) string {
	sum := sha1.Sum([]byte(script))
	return hex.EncodeToString(sum[:])
}

// randomEval returns a request of EVAL or EVAL_RO.
func randomEval(r *rand.Rand) []string {
	p := &program{r: r}
	text := p.text()
	name := "EVAL"
	if r.IntN(8) == 0 {
		name = "EVAL_RO"
	}
	if r.IntN(12) == 0 {
		text = "#!lua" + pick(r, "", " flags=no-writes", " flags=allow-oom", " flags=allow-stale,no-cluster", " flags=", " name=x", " flags=bogus", "x") + "\n" + text
	}
	return join(name, text, strconv.Itoa(len(p.keys)), p.keys, p.args)
}

func randomWrongEval(r *rand.Rand) []string {
	return pickRequest(r, join("EVAL", "return 1"), join("EVAL"), join("EVAL", "return 1", pick(r, "1", "-1", "x", "", "9223372036854775807", "1.5")),
		join("EVALSHA", pick(r, digestOf("never"), "short", ""), "0"), join("EVALSHA_RO", digestOf("never"), "0"), join("EVALSHA", digestOf("never"), "x"),
		join("EVAL", "#!lua", "0"), join("EVAL", "#!", "0"), join("EVAL", "#!python\nreturn 1", "0"), join("EVAL", "", "0"), join("EVAL_RO", "return 1"),
		join("EVAL", "return redis.call('set','key1','x')", "2", "a"), join("FCALL", "none", "0"), join("FCALL", "none", "x"), join("FCALL", "none", "1"),
		join("FCALL_RO", "none", "0"), join("FCALL", "none", "-1"), join("FCALL"))
}

// randomInner returns a request of another family, and the normal form of its reply.
func randomInner(r *rand.Rand) (request []string, form string) {
	for {
		names := slices.Sorted(maps.Keys(randomFamilies))
		names = slices.DeleteFunc(names, func(name string) bool { return name == "together" || name == "script" })
		family := randomFamilies[pick(r, names...)]
		all := family.requests(r)
		request = all[0]
		const most = 60 // a call has about 200 arguments at most, which depends on the compiler
		if len(all) > 1 || slices.ContainsFunc(request, spoils) || len(request) > most {
			continue
		}
		if family.normal != nil {
			form = family.normal(request)
		}
		return request, form
	}
}

// program is a script that is being made.
type program struct {
	r          *rand.Rand
	keys, args []string
	lines      []string
	call       string // a name of redis.call
	function   bool   // of a library: keys and arguments have other names
}

// dump is a function that shows any value as text. With s the order of an array does not count.
const dump = "local function D(v,s) if type(v)~='table' then return type(v)..':'..tostring(v) end local o={} " +
	"for k,x in pairs(v) do o[#o+1]=((s and type(k)=='number') and '' or D(k,s))..'='..D(x,s) end table.sort(o) return '{'..table.concat(o,',')..'}' end"

// text makes the program's text.
func (p *program) text() string {
	p.lines = []string{dump, "local o={}"}
	r := p.r
	p.call = "redis.call"
	if r.IntN(4) == 0 {
		p.add("redis.setresp(3)")
	}
	if r.IntN(6) == 0 {
		p.call = "call"
		p.add(pick(r, "local call=redis.call", "local x,call=1,redis.call", "local function call(...) return redis.call(...) end"))
	}
	for range r.IntN(5) {
		p.statement()
	}
	switch r.IntN(8) {
	case 0:
		request, form := randomInner(r)
		if resp3 := strings.Contains(strings.Join(p.lines, ""), "setresp"); form == "" && !resp3 { // maps have any order
			p.add("return redis." + pick(r, "call", "pcall") + "(" + p.arguments(request) + ")")
			break
		}
		p.add("return o")
	case 1, 2:
		p.add("return " + randomLuaReply(r, 0))
	case 3:
		p.add("return " + p.odd())
	default:
		p.add("return " + pick(r, "o", "table.concat(o,'\\n')"))
	}
	return strings.Join(p.lines, pick(r, "\n", " "))
}

func (p *program) add(line string) { p.lines = append(p.lines, line) }

// show adds a statement that shows what an expression is.
func (p *program) show(expression string) { p.add("o[#o+1]=D(" + expression + ")") }

// statement adds a random statement.
func (p *program) statement() {
	r := p.r
	switch r.IntN(12) {
	case 0, 1, 2, 3:
		request, form := randomInner(r)
		call := pick(r, p.call, "redis.pcall", "redis.pcall", "redis.pcall") + "(" + p.arguments(request) + ")"
		switch {
		case r.IntN(4) == 0:
			p.add(call)
		case form == "":
			p.show(call)
		case form == "sorted" || form == "pairs" || form == "scanned":
			p.show(call + ",true")
		default:
			p.show("type(" + call + ")")
		}
	case 4:
		request, _ := randomInner(r)
		p.add("local ok,e=pcall(redis.call," + p.arguments(request) + ") o[#o+1]=tostring(ok)..(ok and '' or D(e))")
	case 5:
		p.show(p.odd())
	default:
		// Not "return f()": a tail call's error has no function's name in C.
		p.show("{pcall(function() local a,b,c,d=" + randomLibraryCall(r) + " return a,b,c,d end)}")
	}
}

// odd returns an expression with a call of redis.* that is no command, or a wrong one.
func (p *program) odd() string {
	r := p.r
	wrapped := func(body string) string {
		if r.IntN(3) == 0 {
			return "(function() " + body + " end)()"
		}
		return "{pcall(function() " + body + " end)}"
	}
	text := luaQuote(r, pick(r, "ERR x", "x", "", "-x", "MY code\r\nis", "WRONGTYPE Operation", "a\x00b", "-MY x"))
	switch r.IntN(16) {
	case 0:
		return "redis." + pick(r, "error_reply", "status_reply") + "(" + pick(r, text, text, text, "", "1", "nil", "{}") + ")"
	case 1:
		return wrapped("error(" + pick(r, text, text+",0", "{err="+text+"}", "nil", "1") + ")")
	case 2:
		return wrapped("redis." + pick(r, "call", "pcall") + "(" + pick(r, "", "{}", "nil", "'get',{}", "'get',nil", "'nosuch'", "'get'", "'get','a','b'", "true", "'config','get','x'", "'multi'",
			"'subscribe','x'", "'eval','return 1',0", "'client','id'", "'echo',1.5", "'echo',1e100", "'echo',-0.1", "'echo',2^53", "'echo',1e15", "'echo',0/0*0", "'object','help','x'") + ") return 1")
	case 3:
		return wrapped("redis.setresp(" + pick(r, "2", "3", "2", "4", "", "'3'", "nil", "2.5") + ") return redis.call('hgetall','nokey')")
	case 4:
		return wrapped("return redis.sha1hex(" + pick(r, "'x'", "''", "1.5", "nil", "", "{}", "'a','b'") + ")")
	case 5:
		return wrapped("return redis.acl_check_cmd(" + pick(r, "'get','x'", "'set','x','y'", "'nosuch'", "", "'get'", "nil", "'xadd','x'") + ")")
	case 6:
		return wrapped("return redis.set_repl(" + pick(r, "redis.REPL_ALL", "redis.REPL_NONE", "7", "3", "", "1,2") + ")")
	case 7:
		return wrapped("return redis." + pick(r, "REPL_SLAVE", "REPL_AOF", "LOG_WARNING", "LOG_DEBUG", "REDIS_VERSION", "REDIS_VERSION_NUM", "REPL_REPLICA"))
	case 8:
		return wrapped(pick(r, "x=1", "return x", "redis.x=1", "redis=1", "return _G.x", "rawset(_G,'x',1)", "string.x=1", "_G.x=1", "return os", "return type(_G)", "return redis.nosuch==nil"))
	case 9:
		return wrapped("redis.log(" + pick(r, "redis.LOG_DEBUG,'x'", "9,'x'", "'x'", "", "0,1,2", "-1,'x'") + ") return 1")
	case 10:
		if p.function { // they have no such functions, and the error names the variable
			return "redis.breakpoint"
		}
		return wrapped("return redis." + pick(r, "breakpoint()", "replicate_commands()", "debug('x')"))
	case 11:
		return wrapped("assert(" + pick(r, "false", "nil,'text'", "1", "false,{}") + ") return 1")
	case 12:
		return wrapped("local t=coroutine.wrap(function(a) local b=coroutine.yield(a) return " + pick(r, "b", "error('in')", "redis.call('echo','x')", "nosuch") + " end) return {t(1),t(2)}")
	case 13:
		return "{" + pick(r, "KEYS[1],#ARGV", "#KEYS,ARGV[2]", "KEYS[#KEYS],type(KEYS[99])", "unpack(ARGV)") + "}"
	case 14:
		return "D({pcall(redis.call,'nosuch')})"
	}
	return randomLuaValue(r, 0)
}

// arguments returns the arguments of a call: as strings, numbers, or elements of KEYS and ARGV.
func (p *program) arguments(request []string) string {
	keys, args := "KEYS", "ARGV"
	if p.function {
		keys, args = "keys", "args"
	}
	var all []string
	plain := p.function && setsTime(request)
	for i, word := range request {
		switch {
		case i > 0 && !plain && p.r.IntN(6) == 0:
			p.args = append(p.args, word)
			all = append(all, fmt.Sprintf("%s[%d]", args, len(p.args)))
		case i > 0 && !plain && p.r.IntN(8) == 0:
			p.keys = append(p.keys, word)
			all = append(all, fmt.Sprintf("%s[%d]", keys, len(p.keys)))
		case isPlainInt(word) && p.r.IntN(3) == 0:
			all = append(all, word)
		default:
			all = append(all, luaQuote(p.r, word))
		}
	}
	return strings.Join(all, ",")
}

// setsTime reports whether a request may set a time at which a key expires. A later request may call
// a function with other arguments: of a few milliseconds one server takes less, the other more.
func setsTime(request []string) bool {
	return slices.ContainsFunc(request, func(word string) bool {
		word = strings.ToLower(word)
		return strings.Contains(word, "ex") || strings.Contains(word, "px") || word == "restore"
	})
}

// isPlainInt reports whether a word is the text that Redis makes of a number in Lua.
func isPlainInt(word string) bool {
	n, err := strconv.ParseInt(word, 10, 64)
	return err == nil && strconv.FormatInt(n, 10) == word && n > -1e15 && n < 1e15
}

// luaQuote returns a string in Lua's syntax.
func luaQuote(r *rand.Rand, s string) string {
	var b strings.Builder
	quote := pick(r, "'", `"`)
	b.WriteString(quote)
	for i := range len(s) {
		c := s[i]
		if c == '_' || c == '-' || c == '*' || c == ' ' || '0' <= c && c <= '9' || 'a' <= c|0x20 && c|0x20 <= 'z' {
			b.WriteByte(c)
		} else {
			fmt.Fprintf(&b, `\%03d`, c)
		}
	}
	b.WriteString(quote)
	return b.String()
}

// randomFunctions returns requests about functions. Each library has one function, since redis-server
// lists several in any order.
func randomFunctions(r *rand.Rand) [][]string {
	lib := strconv.Itoa(r.IntN(3))
	p := &program{r: r, function: true}
	body := strings.ReplaceAll(strings.ReplaceAll(p.text(), "KEYS", "keys"), "ARGV", "args")
	flags := pick(r, "", "", ",flags={'no-writes'}", ",flags={'allow-oom','allow-stale'}", ",flags={'bogus'}", ",flags=1", ",description='about'", ",bogus=1")
	name := "f" + lib
	code := "#!lua name=lib" + lib + "\n"
	switch r.IntN(12) {
	case 0:
		code += pick(r, "", "local x = 1", "error('at load')", "redis.call('get','x')", "return x", "redis.log(1,'x')", "redis.register_function()", "redis.register_function('a')",
			"redis.register_function('a-b',function() end)", "redis.register_function('f9',1)", "redis.register_function{}", "redis.setresp(3)", "x=1")
	case 1:
		code = pick(r, "", "#!lua\n", "#!lua name=a-b\n", "#!bogus name=x\n", "#!lua name=x name=y\n", "#!lua bogus=1\n", "return 1") + "redis.register_function('f7',function() end)"
	case 2, 3, 4:
		code += "local n=0 redis.register_function('" + name + "',function(keys,args) n=n+1 return {n,#keys,#args,keys[1],args[1]} end)"
	case 5:
		code += "redis.register_function('" + name + "',function(keys,args) " + body + " end)"
	default:
		code += "redis.register_function{function_name='" + name + "',callback=function(keys,args) " + body + " end" + flags + "}"
	}
	call := join(pick(r, "FCALL", "FCALL", "FCALL", "FCALL_RO"), pick(r, name, name, name, strings.ToUpper(name)), strconv.Itoa(len(p.keys)), p.keys, p.args)
	load := join("FUNCTION", "LOAD", sometimes(r, 2, "REPLACE"), sometimes(r, 40, "x"), code)
	switch r.IntN(12) {
	case 0:
		return [][]string{pickRequest(r, join("FUNCTION", "DELETE", "lib"+lib), join("FUNCTION", "FLUSH", sometimes(r, 2, pick(r, "SYNC", "ASYNC", "x"))), join("FUNCTION", "KILL"),
			join("FUNCTION", "DUMP"), join("FUNCTION", "RESTORE", pick(r, "x", "", "\xf6\x00"), sometimes(r, 2, pick(r, "FLUSH", "APPEND", "REPLACE", "x"))), join("FUNCTION", "bogus"))}
	case 1:
		return [][]string{{"FUNCTION", "STATS"}}
	case 2:
		return [][]string{join("FUNCTION", "LIST", sometimes(r, 2, "LIBRARYNAME", pick(r, "lib*", "lib1", "x", "*")), sometimes(r, 2, "WITHCODE"), sometimes(r, 10, "x"))}
	case 3:
		return [][]string{{"MULTI"}, load, call, {"FUNCTION", "DELETE", "lib" + lib}, {"EXEC"}}
	case 4:
		return [][]string{call}
	}
	return [][]string{load, call, call}
}
