package difftest

import (
	"fmt"
	"math/rand/v2"
	"strconv"
	"strings"
)

// randomLuaNumber returns a number in Lua's syntax.
func randomLuaNumber(r *rand.Rand) string {
	switch r.IntN(12) {
	case 0:
		return pick(r, "1e15", "2^53", "-2^53", "1e100", "-1e300", "1/0", "-1/0", "0/0", "1e-300", "0.1", "1e14", "123456789012345", "-0.5", "3.99", "-3.99", "0x10", "4294967296", "2147483648")
	case 1:
		return strconv.FormatFloat(r.NormFloat64()*1000, 'g', 1+r.IntN(17), 64)
	case 2:
		return strconv.FormatInt(int64(r.Uint64())>>(11+r.IntN(50)), 10)
	}
	return strconv.Itoa(r.IntN(40) - 10)
}

func randomLuaString(r *rand.Rand) string {
	return luaQuote(r, pick(r, randomElement(r), randomWordOfText(r), randomNumber(r)))
}

func randomWordOfText(r *rand.Rand) string {
	return pick(r, "hello world", "key=value; k2 = v2", "  trim me  ", "THE (quick) [brown] %fox.", "a,b,,c", "x1y22z333", "", "\x00\x01\xff", "f(a(b)c)d", "\n\t", "äöü", "aaa", "abcabcabc")
}

// randomLuaValue returns a value in Lua's syntax. The order of its tables' fields is known: there is
// one at most.
func randomLuaValue(r *rand.Rand, depth int) string {
	n := 10
	if depth > 3 {
		n = 6
	}
	switch r.IntN(n) {
	case 0:
		return pick(r, "nil", "true", "false")
	case 1, 2:
		return randomLuaNumber(r)
	case 3, 4, 5:
		return randomLuaString(r)
	case 6:
		return "{[" + pick(r, luaQuote(r, "k"), luaQuote(r, "key 1"), "1.5", "-1", "true", "0") + "]=" + randomLuaValue(r, depth+1) + "}"
	}
	var all []string
	for range r.IntN(4) {
		all = append(all, randomLuaValue(r, depth+1))
	}
	return "{" + strings.Join(all, ",") + "}"
}

// randomLuaReply is randomLuaValue with the tables that stand for other replies.
func randomLuaReply(r *rand.Rand, depth int) string {
	if r.IntN(3) > 0 || depth > 3 {
		return randomLuaValue(r, depth)
	}
	text := randomLuaString(r)
	switch r.IntN(9) {
	case 0:
		return "{ok=" + text + "}"
	case 1:
		return "{err=" + pick(r, text, luaQuote(r, "MY text\nof it"), luaQuote(r, "short")) + "}"
	case 2:
		return "{double=" + strings.ReplaceAll(randomLuaNumber(r), "0/0", "0") + "}" // redis-server sends -nan
	case 3:
		return "{big_number=" + pick(r, "'12345678901234567890'", "'-5'", "5") + "}"
	case 4:
		return "{verbatim_string={format=" + pick(r, "'txt'", "'mkd'", "'x'", "'longer'", "1") + ",string=" + text + "}}"
	case 5:
		return "{map={[" + randomLuaString(r) + "]=" + randomLuaReply(r, depth+1) + "}}"
	case 6:
		return "{set={[" + randomLuaString(r) + "]=true}}"
	case 7:
		return "{map=" + pick(r, "{}", "1", "{1,2}") + "}"
	}
	return "{" + randomLuaReply(r, depth+1) + "," + randomLuaReply(r, depth+1) + "}"
}

// randomLibraryCall returns a call of a library's function. None of them makes C set errno to ERANGE,
// which redis-server's next SORT would take for its own: see spoils.
func randomLibraryCall(r *rand.Rand) string {
	switch r.IntN(8) {
	case 0:
		return randomJSON(r)
	case 1:
		return randomMsgpack(r)
	case 2:
		return randomStruct(r)
	case 3:
		return randomBitCall(r)
	case 4:
		return randomTableCall(r)
	case 5:
		return randomMath(r)
	}
	return randomStringCall(r)
}

func randomJSON(r *rand.Rand) string {
	switch r.IntN(6) {
	case 0, 1:
		return "cjson.encode(" + randomLuaValue(r, 0) + ")"
	case 2:
		return "cjson.decode(" + luaQuote(r, broken(r, randomJSONText(r, 0))) + ")"
	case 3:
		return "cjson.encode(cjson.decode(" + luaQuote(r, randomJSONText(r, 0)) + "))"
	case 4:
		return "cjson.encode({" + pick(r, "cjson.null", "[1]=1,[9]=2", "[1]=1,[50]=2", "function() end", "x=0/0", "1/0", "KEYS", "cjson.null,1") + "})"
	}
	return "cjson.decode(" + luaQuote(r, randomJSONText(r, 0)) + ")"
}

func randomJSONText(r *rand.Rand, depth int) string {
	blank := pick(r, "", "", "", " ", "\n\t")
	n := 8
	if depth > 3 {
		n = 5
	}
	switch r.IntN(n) {
	case 0:
		return blank + pick(r, "true", "false", "null")
	case 1, 2:
		return blank + pick(r, "0", "-1", "1.5", "1e3", "-0", "12345678901234567890", "1E-5", "0.1", strconv.Itoa(r.IntN(1000)))
	case 3, 4:
		return blank + `"` + pick(r, "", "text", `a\nb`, `\u00e4\u20ac`, `\ud83d\ude00`, `\"\\\/`, "ä", `\u0000`, "\x7f") + `"`
	case 5:
		return blank + `{"` + pick(r, "k", "", "key 1", `\u0041`) + `":` + randomJSONText(r, depth+1) + blank + "}"
	}
	var all []string
	for range r.IntN(4) {
		all = append(all, randomJSONText(r, depth+1))
	}
	return blank + "[" + strings.Join(all, ",") + blank + "]"
}

// broken returns a text of which something is missing or wrong, or not.
func broken(r *rand.Rand, s string) string {
	if s == "" {
		return s
	}
	i := r.IntN(len(s))
	switch r.IntN(3) {
	case 0:
		return s[:i]
	case 1:
		return s[:i] + pick(r, "x", "\x00", "\"", ",", "}", "1", "\\", "\xff") + s[i+1:]
	}
	return s[:i] + s[i+1:]
}

func randomMsgpack(r *rand.Rand) string {
	value := randomLuaValue(r, 0)
	switch r.IntN(6) {
	case 0, 1:
		return "cmsgpack.pack(" + pick(r, value, value+","+randomLuaValue(r, 2)) + ")"
	case 2, 3:
		return "cmsgpack.unpack(cmsgpack.pack(" + value + "," + randomLuaValue(r, 1) + "))"
	case 4:
		b := make([]byte, 1+r.IntN(12))
		for i := range b {
			b[i] = byte(r.Uint32())
			if r.IntN(2) == 0 {
				b[i] = byte(pick(r, "\x01", "\x81", "\x91", "\xa3", "\xc0", "\xc2", "\xca", "\xcb", "\xcc", "\xcd", "\xd0", "\xd9", "\xda", "\xdc", "\xde", "\xe0")[0])
			}
		}
		return "cmsgpack.unpack(" + luaQuote(r, string(b)) + ")"
	}
	return "cmsgpack." + pick(r, "unpack_one", "unpack_limit") + "(cmsgpack.pack(1," + value + ",2)," + pick(r, "0", "1", "2", "3", "-1", "50") + ")"
}

func randomStruct(r *rand.Rand) string {
	var format string
	var args []string
	for range 1 + r.IntN(4) {
		item := pick(r, "b", "B", "h", "H", "l", "L", "i4", "I2", "i8", "f", "d", "s", "c3", "x", "i1", "I3", "c0", ">", "<", "=", "!4", "z")
		format += item
		switch item[0] {
		case 's', 'c':
			args = append(args, randomLuaString(r))
		case 'x', '>', '<', '=', '!':
		default:
			args = append(args, strconv.Itoa(r.IntN(400)-100))
		}
	}
	values := strings.Join(args, ",")
	if values != "" {
		values = "," + values
	}
	switch r.IntN(4) {
	case 0:
		return "struct.size(" + luaQuote(r, format) + ")"
	case 1:
		return "struct.unpack(" + luaQuote(r, format) + "," + randomLuaString(r) + pick(r, "", ",1", ",2", ",9") + ")"
	case 2:
		return "struct.unpack(" + luaQuote(r, format) + ",struct.pack(" + luaQuote(r, format) + values + "))"
	}
	return "struct.pack(" + luaQuote(r, format) + values + ")"
}

func randomBitCall(r *rand.Rand) string {
	n := func() string {
		return pick(r, strconv.FormatInt(int64(int32(r.Uint32())), 10), strconv.Itoa(r.IntN(70)-3), "0xffffffff", "1.5", "-1.5", "2147483648", "4294967296", "'7'")
	}
	name := pick(r, "band", "bor", "bxor", "bnot", "lshift", "rshift", "arshift", "rol", "ror", "bswap", "tohex", "tobit")
	switch name {
	case "bnot", "bswap", "tobit":
		return "bit." + name + "(" + n() + ")"
	case "tohex":
		return "bit.tohex(" + n() + pick(r, "", ",4", ",-4", ",-8", ",0", ",20") + ")"
	}
	return "bit." + name + "(" + n() + "," + n() + pick(r, "", "", ","+n()) + ")"
}

func randomTableCall(r *rand.Rand) string {
	list := "{" + strings.Join(randomWords(r, 0, 8, randomLuaString), ",") + "}"
	numbers := "{" + strings.Join(randomWords(r, 0, 20, func(r *rand.Rand) string { return strconv.Itoa(r.IntN(30)) }), ",") + "}"
	at := strconv.Itoa(r.IntN(10) - 1)
	changed := func(t, change string) string { return "(function(t) " + change + " return t end)(" + t + ")" }
	return pick(r,
		"table.concat("+list+pick(r, "", ",','", ",',',2", ",',',1,3", ",1,9")+")", "table.concat("+randomLuaValue(r, 0)+")",
		changed(list, "table.insert(t,"+pick(r, "'x'", at+",'x'", "")+")"), changed(list, "t.r=table.remove(t"+pick(r, "", ","+at)+")"),
		changed(numbers, "table.sort(t)"), changed(numbers, "table.sort(t,function(a,b) return a>b end)"), changed(list, "table.sort(t)"),
		"unpack("+list+pick(r, "", ",2", ",2,3", ",-1,1")+")", "select("+pick(r, "'#'", "1", "2", "-1", "0", "9")+","+randomLuaValue(r, 2)+",2,3)",
		"#"+list, "table.getn("+list+")", "table.maxn("+numbers+")", "next({"+randomLuaNumber(r)+"})", "type("+randomLuaValue(r, 1)+")",
		"tostring("+pick(r, randomLuaNumber(r), randomLuaString(r), "nil", "true")+")",
		"tonumber("+pick(r, "' 12 '", "'0x1F'", "'1e3'", "'x'", "''", "'.5'", "'5.'", "'1 2'", randomLuaNumber(r), pick(r, "'101'", "'zz'", "'7f'", "'-11'", "' 1'", "'9'")+","+pick(r, "2", "10", "16", "36", "1", "37"))+")",
		"rawequal("+randomLuaString(r)+","+randomLuaString(r)+")", "("+randomLuaNumber(r)+")"+pick(r, "+", "-", "*", "/", "..", "==", "<", "<=")+"("+randomLuaNumber(r)+")", "("+strconv.Itoa(r.IntN(100)-50)+")%("+strconv.Itoa(1+r.IntN(9))+")",
		randomLuaString(r)+pick(r, "..", "==", "<", "<=", "~=")+randomLuaString(r))
}

func randomMath(r *rand.Rand) string {
	n := strconv.FormatFloat(r.NormFloat64()*20, 'f', r.IntN(4), 64)
	m := strconv.Itoa(1 + r.IntN(20))
	return pick(r, "math.floor("+n+")", "math.ceil("+n+")", "math.abs("+n+")", "math.max("+n+","+m+")", "math.min("+n+","+m+")", "math.fmod("+n+","+m+")", "math.mod("+n+","+m+")",
		"math.modf("+n+")", "math.sqrt("+m+")", "math.random("+m+")", "math.random()", "math.random(3,"+m+")", "(math.randomseed("+m+") or math.random(1000))", "math.floor('x')", "math.frexp("+n+")",
		"math.ldexp("+n+",3)", "math.deg(0)", "math.pow(2,"+m+")", "math.huge", "math.pi")
}

func randomStringCall(r *rand.Rand) string {
	text := randomLuaString(r)
	number := strconv.Itoa(r.IntN(14) - 4)
	pattern := luaQuote(r, pick(r, "%w+", "(%w+)=(%w+)", "^%s*(.-)%s*$", "%b()", "%f[%a]%a+", "[a-c]+", "[^,]*", ".", "a", "", "(a*)(b?)", "%d+$", "()b()", "%%", "[%]]", "x*", "%1", "(", "[a", "%", "(.)%1", "[%w_]-b", "^a"))
	replacement := pick(r, "'<%0>'", "'%1'", "'%2'", "''", "'%%'", "function(a,b) return b end", "{a='A',hello='H'}", "'%9'", "1", "nil", "function() return {} end")
	switch r.IntN(10) {
	case 0:
		return "string.gsub(" + text + "," + pattern + "," + replacement + pick(r, "", ",1", ",0", ",2") + ")"
	case 1:
		return "string.find(" + text + "," + pattern + pick(r, "", ",2", ",-3", ",1,true") + ")"
	case 2:
		return "string.match(" + text + "," + pattern + pick(r, "", ",2", ",-1", ",20") + ")"
	case 3:
		return "(function(s) local t={} for a,b in string.gmatch(s," + pattern + ") do t[#t+1]=tostring(a)..tostring(b) if #t>20 then break end end return t end)(" + text + ")"
	case 4, 5:
		return randomFormat(r)
	case 6:
		return "string.sub(" + text + "," + number + pick(r, "", ",-1", ",3", ","+number) + ")"
	case 7:
		return "string.byte(" + text + pick(r, "", ","+number, ",1,4", ",-2,-1") + ")"
	case 8:
		return pick(r, "string.rep("+text+","+number+")", "string.char(65,"+strconv.Itoa(r.IntN(300)-10)+")", "string.len("+text+")", "("+text+"):upper()", "string.lower("+text+")", "string.reverse("+text+")",
			"string.rep()", "string.len({})", "string.sub('x')", "string.char(65,66)")
	}
	return "string.format('%q'," + text + ")"
}

func randomFormat(r *rand.Rand) string {
	verb := pick(r, "d", "i", "u", "c", "x", "X", "o", "e", "E", "f", "g", "G", "s", "q", "%", "y")
	value := pick(r, randomLuaNumber(r), strconv.Itoa(r.IntN(2000)-1000))
	switch verb {
	case "s", "q":
		value = randomLuaString(r)
	case "u", "x", "X", "o", "c": // C does not say what a negative fraction becomes
		value = strconv.Itoa(r.IntN(200))
	case "d", "i":
		value = strconv.Itoa(r.IntN(2000) - 1000)
	}
	flags := pick(r, "", "", "-", "+", "0", " ", "#", "-0", "+ ")
	if verb == "q" {
		flags = ""
	}
	width := pick(r, "", "", "5", "12", ".3", "8.2", ".0", "100")
	if verb == "q" || verb == "%" {
		width = ""
	}
	return fmt.Sprintf("string.format(%s,%s)", luaQuote(r, "<%"+flags+width+verb+">"), value)
}
